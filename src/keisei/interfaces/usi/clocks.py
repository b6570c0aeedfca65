"""The clocks of a game between engines."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Clock", "TimeControl"]

GRACE = 0.3
"""Seconds that a move may be late, since pipes and a busy machine take time too."""


@dataclass(frozen=True)
class TimeControl:
    """How much time each side has, in seconds."""

    time: float = 0.0
    """For the whole game."""
    byoyomi: float = 1.0
    """For each move after that."""
    increment: float = 0.0
    """Added after each move."""


class Clock:
    """The time of both sides in one game."""

    def __init__(self, control: TimeControl) -> None:
        self.control = control
        self.left = [control.time + control.increment] * 2

    def most_seconds(self, turn: int) -> float:
        """Computes how long a move may take at most."""
        return self.left[turn] + self.control.byoyomi

    def words(self) -> str:
        """Writes the words after ``go``."""
        black, white = (round(1000 * left) for left in self.left)
        gain, byoyomi = round(1000 * self.control.increment), round(1000 * self.control.byoyomi)
        bonus = f"binc {gain} winc {gain}" if gain else f"byoyomi {byoyomi}"
        return f"btime {black} wtime {white} {bonus}"

    def take(self, turn: int, seconds: float) -> bool:
        """Subtracts the time of a move. Returns False if it was too long."""
        if seconds > self.most_seconds(turn) + GRACE:
            return False
        self.left[turn] = max(0.0, self.left[turn] - seconds) + self.control.increment
        return True
