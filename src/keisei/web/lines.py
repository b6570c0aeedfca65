"""A game as the line of its actions. Every position of it can be shown, and judged by a policy.

Nothing is kept between two requests: a line is played again from its actions, which takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from keisei.errors import GameError
from keisei.games.contract import GameSpec, Step
from keisei.games.faces import Choice, face_of
from keisei.games.registry import make_game
from keisei.policies.contract import Policy
from keisei.runs.live import Glimpse

__all__ = ["FAVOURITES", "Judgement", "Line", "Moment", "glimpse_frames", "judge"]

LONGEST = 10_000
"""Actions of a line."""
FAVOURITES = 5
"""How many of a policy's favourite moves are shown."""
MOST_FRAMES = 16
"""Pictures of a self-play game that are sent at once."""


@dataclass(frozen=True)
class Moment:
    """A position of a game, and the seat that acts."""

    packed: bytes
    seat: int


@dataclass(frozen=True)
class Judgement:
    """What a policy thinks of a position."""

    value: float | None
    """For the seat that acts; None if it has no opinion."""
    favourites: list[dict[str, Any]] = field(default_factory=list)
    """Choices with their probabilities, the best first."""


class Line:
    """A game from its beginning to the last of its actions."""

    def __init__(
        self, game: str, options: Mapping[str, Any], actions: Sequence[int], seed: int = 0, number: int = 0
    ) -> None:
        if len(actions) > LONGEST:
            raise GameError(f"a game has at most {LONGEST} actions here, got {len(actions)}")
        self.game = make_game(game, batch=1, seed=seed, first_game=number, **options)
        self.face = face_of(self.game.spec)
        self.moments = [self._now()]
        self.choices: list[Choice] = []
        self.actions: list[int] = []
        self.end: Step | None = None
        rest = list(actions)
        while rest and self.end is None:
            rows = len(self.game.rows())
            self.play(rest[:rows])
            rest = rest[rows:]
        if rest:
            raise GameError(f"{len(rest)} actions follow after the game has ended")

    @property
    def seat(self) -> int:
        return self.moments[-1].seat

    @property
    def legal(self) -> list[int]:
        """The legal actions of the seat that acts; none when the game is over."""
        return [] if self.end is not None else np.flatnonzero(self.game.legal()[0]).tolist()

    def play(self, actions: Sequence[int]) -> None:
        """Plays one step: one action, or those of all seats that act at once."""
        here = self.moments[-1]
        chosen = _checked(actions, self.game.spec.num_actions)
        are_legal = self.game.legal()[np.arange(len(chosen)), chosen].all()
        if not are_legal or len(chosen) != len(self.game.rows()):
            raise GameError(f"action {actions[0]} is not legal after {len(self.actions)} actions")
        self.choices += self.face.choices(here.packed, here.seat, actions[:1])
        step = self.game.step(np.array(actions, np.int32))
        self.actions += actions
        if step.done[0]:
            self.end = step
            self.moments.append(Moment(step.final.packed[0].tobytes(), int(step.final.seat[0])))
        else:
            self.moments.append(self._now())

    def _now(self) -> Moment:
        return Moment(self.game.pack()[0].tobytes(), int(self.game.rows().seat[0]))

    def frame(self, at: int | None = None, view: int = 0, policy: Policy | None = None) -> dict[str, Any]:
        """Gives a position of the line for a page: by default the last one."""
        at = len(self.moments) - 1 if at is None else max(0, min(at, len(self.moments) - 1))
        here, is_last = self.moments[at], at == len(self.moments) - 1
        last = self.choices[at - 1] if at else None
        over = is_last and self.end is not None
        judged = Judgement(None) if policy is None or over else judge(self, here, policy)
        return {
            "svg": self.face.svg(here.packed, here.seat, view=view, last=last),
            "look": {"name": self.game.spec.name, "css": self.face.style},
            "seat": here.seat,
            "seats": list(self.face.seats),
            "is_duel": _is_duel(self.game.spec),
            "has_sides": self.face.has_sides,
            "ply": at,
            "plies": len(self.moments) - 1,
            "moves": [choice.name for choice in self.choices],
            "text": self.face.text(here.packed, here.seat),
            "over": over,
            "result": self.result() if over else None,
            "value": judged.value,
            "favourites": judged.favourites,
        }

    def result(self) -> dict[str, Any]:
        """Says how the game ended."""
        assert self.end is not None
        scores = [float(score) for score in self.end.scores[0]]
        best = [seat for seat, score in enumerate(scores) if score == max(scores)]
        winner = best[0] if len(best) == 1 and not self.end.truncated[0] else None
        ending = self.game.spec.endings[self.end.ending[0]]
        return {"scores": scores, "winner": winner, "ending": ending.replace("_", " ")}


def _is_duel(spec: GameSpec) -> bool:
    """Whether what is good for one seat is bad for the other. Rewards need not add up to 0: a draw may cost both."""
    return spec.seats == 2 and not spec.scored_by_rewards


def _checked(actions: Sequence[int], most: int) -> list[int]:
    if not all(isinstance(action, int) and 0 <= action < most for action in actions):
        raise GameError(f"an action is a whole number in 0 … {most - 1}, got {list(actions)!r}")
    return list(actions)


def judge(line: Line, moment: Moment, policy: Policy) -> Judgement:
    """Asks a policy for the value of a position and its favourite moves. Players without a network have neither."""
    log_probabilities = getattr(policy, "log_probabilities", None)
    if log_probabilities is None:
        return Judgement(None)
    packed = np.frombuffer(moment.packed, np.uint8)[None]
    observations, legal = line.game.unpack(packed)
    shares = np.exp(log_probabilities(observations, legal)[0])
    best = [int(action) for action in np.argsort(-shares)[:FAVOURITES] if legal[0, action]]
    choices = line.face.choices(moment.packed, moment.seat, best)
    favourites = [asdict(choice) | {"probability": float(shares[choice.action])} for choice in choices]
    return Judgement(float(policy.evaluate(observations, legal)[0]), favourites)


def glimpse_frames(game: str, options: Mapping[str, Any], glimpse: Glimpse) -> dict[str, Any]:
    """Gives the last plies of a self-play game as pictures, the newest last. It shows the last game of the glimpse."""
    made = make_game(game, batch=1, **options)
    face = face_of(made.spec)
    first = max(
        (at for at in range(1, len(glimpse.plies)) if glimpse.plies[at] <= glimpse.plies[at - 1]), default=0
    )
    frames: list[dict[str, Any]] = []
    last: Choice | None = None
    for at in range(max(first, len(glimpse.plies) - MOST_FRAMES), len(glimpse.plies)):
        packed, seat = bytes.fromhex(glimpse.packed[at]), glimpse.seats[at]
        svg = face.svg(packed, seat, last=last)
        (last,) = face.choices(packed, seat, [glimpse.actions[at]])
        value = {"seat": seat, "value": glimpse.values[at], "ply": glimpse.plies[at], "move": last.name}
        frames.append({"svg": svg, **value})
    return {
        "table": glimpse.table,
        "look": {"name": made.spec.name, "css": face.style},
        "seats": list(face.seats),
        "is_duel": _is_duel(made.spec),
        "frames": frames,
    }
