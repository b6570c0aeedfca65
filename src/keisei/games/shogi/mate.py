"""Searches for a mate by checks alone, as in a tsume problem: ever deeper, until a mate is found or ruled out."""

from __future__ import annotations

from collections.abc import Callable

from keisei.games.shogi.board import Board
from keisei.games.shogi.moves import Move

__all__ = ["MOST_PLIES", "find_mate"]

MOST_PLIES = 63


def find_mate(board: Board, stopped: Callable[[], bool] = lambda: False) -> list[Move] | None:
    """Finds the shortest mate by checks, with the longest defence; None if there is none.

    Raises ``TimeoutError`` if it is stopped, or if a mate would need more than ``MOST_PLIES``.
    """
    search = _MateSearch(board.copy(), stopped)
    for plies in range(1, MOST_PLIES + 1, 2):
        line, cut = search.attack(plies)
        if line is not None or not cut:
            return line
    raise TimeoutError(f"no mate in {MOST_PLIES} plies; a longer one is possible")


class _MateSearch:
    """Both methods return the line of a mate within some plies (None if there is none), and whether more plies might
    find one."""

    def __init__(self, board: Board, stopped: Callable[[], bool]) -> None:
        self._board, self._stopped = board, stopped
        self._failed: dict[tuple[int, int], bool] = {}
        """Positions without a mate within some plies, and whether more plies might find one."""

    def attack(self, plies: int) -> tuple[list[Move] | None, bool]:
        if self._stopped():
            raise TimeoutError("the search for a mate was stopped")
        place = self._board.key, plies
        if place in self._failed:
            return None, self._failed[place]
        cut = False
        for move in sorted(self._board.legal_moves):
            self._board.push(move)
            line, deeper = self._defend(plies - 1) if self._board.is_check() else (None, False)
            self._board.pop()
            if line is not None:
                return [move, *line], False
            cut |= deeper
        self._failed[place] = cut
        return None, cut

    def _defend(self, plies: int) -> tuple[list[Move] | None, bool]:
        moves = sorted(self._board.legal_moves)
        if not moves:
            return [], False
        if plies == 0:
            return None, True
        longest: list[Move] = []
        for move in moves:
            self._board.push(move)
            line, cut = self.attack(plies - 1)
            self._board.pop()
            if line is None:
                return None, cut
            longest = max(longest, [move, *line], key=len)
        return longest, False
