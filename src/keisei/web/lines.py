"""A game as the line of its actions. Every position of it can be shown, and judged by a policy.

Nothing is kept between two requests: a line is played again from its actions, which takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from keisei.errors import GameError
from keisei.games.automatic_faces import AutomaticFace, live_face
from keisei.games.contract import Array, ByteArray, GameSpec, Step
from keisei.games.faces import face_of_rows
from keisei.games.offers import Choice
from keisei.games.registry import make_game
from keisei.policies.contract import Policy
from keisei.runs.live import Glimpse

__all__ = ["FAVOURITES", "LONGEST", "Judgement", "Line", "Moment", "glimpse_frames", "judge"]

LONGEST = 10_000
"""Actions of a line."""
FAVOURITES = 5
"""How many of a policy's favourite moves are shown."""
_MOST_NAMED = 3
"""Moves of one step that are all named."""
MOST_FRAMES = 16
"""Pictures of a self-play game that are sent at once."""


@dataclass(frozen=True)
class Moment:
    """A position of a game: the seats that act, and what each of them sees."""

    seats: tuple[int, ...]
    packed: tuple[bytes, ...]

    def row_of(self, seat: int) -> int:
        """Finds the row of a seat if it acts, else the first row."""
        return self.seats.index(seat) if seat in self.seats else 0

    def seen_by(self, seat: int) -> tuple[bytes, int]:
        """Finds what a seat sees if it acts, else what the first seat that acts sees, and that seat."""
        row = self.row_of(seat)
        return self.packed[row], self.seats[row]


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
        self._made_from = game, options, seed, number
        self.game = make_game(game, batch=1, seed=seed, first_game=number, **options)
        self.face = live_face(self.game)
        self.moments = [self._now()]
        self.steps: list[list[Choice]] = []
        """What the seats that acted chose, step by step."""
        self.returns = [[0.0] * self.game.spec.seats]
        """[moments][seats]: the sum of the rewards until then."""
        self.end: Step | None = None
        rest = list(actions)
        while rest and self.end is None:
            rows = len(self.game.rows())
            self.play(rest[:rows])
            rest = rest[rows:]
        if rest:
            raise GameError(f"{len(rest)} actions follow after the game has ended")

    @property
    def now(self) -> Moment:
        return self.moments[-1]

    @property
    def actions(self) -> list[int]:
        return [choice.action for step in self.steps for choice in step]

    def legal(self, seat: int) -> list[int]:
        """Lists the legal actions of a seat, or of the first that acts; none when the game is over."""
        if self.end is not None:
            return []
        return np.flatnonzero(self.game.legal()[self.now.row_of(seat)]).tolist()

    def play(self, actions: Sequence[int]) -> None:
        """Plays one step: one action, or those of all seats that act at once."""
        here = self.now
        if self.end is not None:
            raise GameError("the game is over, so nothing can be played")
        chosen = _checked(actions, self.game.spec.num_actions)
        if len(chosen) != len(here.seats):
            raise GameError(f"{len(here.seats)} seats act at once, and {len(chosen)} actions are given")
        if not self.game.legal()[np.arange(len(chosen)), chosen].all():
            raise GameError(f"action {actions[0]} is not legal after {len(self.actions)} actions")
        self.steps.append(
            [
                self.face.choices(packed, seat, [action])[0]
                for packed, seat, action in zip(here.packed, here.seats, chosen, strict=True)
            ]
        )
        step = self.game.step(np.array(actions, np.int32))
        rewards = step.rewards[0].tolist()
        self.returns.append([before + now for before, now in zip(self.returns[-1], rewards, strict=True)])
        if step.done[0]:
            self.end = step
            self.moments.append(_moment(step.final.seat, step.final.packed))
        else:
            self.moments.append(self._now())

    def _now(self) -> Moment:
        return _moment(self.game.rows().seat, self.game.pack())

    def _until(self, at: int) -> Line:
        """Makes a line that ends here. An automatic face shows only the last position of its line."""
        if at == len(self.steps) or not isinstance(self.face, AutomaticFace):
            return self
        game, options, seed, number = self._made_from
        actions = [choice.action for step in self.steps[:at] for choice in step]
        return Line(game, options, actions, seed, number)

    def frame(self, at: int | None = None, view: int = 0, policy: Policy | None = None) -> dict[str, Any]:
        """Describes a position of the line for a page: by default the last one."""
        plies = len(self.steps)
        at = plies if at is None else max(0, min(at, plies))
        line = self._until(at)
        spec, face, here = self.game.spec, line.face, self.moments[at]
        packed, seat = here.seen_by(view)
        last = self.steps[at - 1][0] if at else None
        over = at == plies and self.end is not None
        judged = Judgement(None) if policy is None or over else judge(line, packed, seat, policy)
        return {
            "svg": face.svg(packed, seat, view=view, last=last),
            "caption": face.caption(view) if isinstance(face, AutomaticFace) else "",
            "legend": face.legend(view) if isinstance(face, AutomaticFace) else [],
            "look": {"name": spec.name, "css": face.style},
            "seat": seat,
            "seats": list(face.seats),
            "acting": list(here.seats),
            "is_duel": is_duel(spec),
            "scale": scale(spec),
            "has_sides": face.has_sides,
            "ply": at,
            "plies": plies,
            "moves": self._moves(view),
            "returns": self.returns[at] if spec.scored_by_rewards else [],
            "text": face.text(packed, seat),
            "over": over,
            "result": self.result() if over else None,
            "value": judged.value,
            "favourites": judged.favourites,
        }

    def _moves(self, view: int) -> list[str]:
        """Names the moves of all steps. Of many that are made at once, it names that of ``view``."""
        names = []
        for moment, step in zip(self.moments, self.steps, strict=False):
            if len(step) <= _MOST_NAMED:
                names.append(" / ".join(choice.name for choice in step))
            else:
                names.append(step[moment.row_of(view)].name if view in moment.seats else "–")
        return names

    def result(self) -> dict[str, Any]:
        """Says how the game ended."""
        assert self.end is not None
        spec = self.game.spec
        scores = [float(score) for score in self.end.scores[0]]
        best = [seat for seat, score in enumerate(scores) if score == max(scores)]
        has_winner = len(best) == 1 and not self.end.truncated[0] and len(scores) > 1
        ending = spec.endings[self.end.ending[0]]
        return {
            "scores": scores,
            "winner": best[0] if has_winner else None,
            "ending": ending.replace("_", " "),
        }


def _moment(seats: Array, packed: ByteArray) -> Moment:
    return Moment(tuple(seats.tolist()), tuple(row.tobytes() for row in packed))


def is_duel(spec: GameSpec) -> bool:
    """Checks if what is good for one seat is bad for the other. Rewards need not add up to 0: a draw may cost both."""
    return spec.seats == 2 and not spec.scored_by_rewards


def scale(spec: GameSpec) -> str:
    """Says what a value is: the ``chance`` of winning, a ``score`` from -1 (a loss) to 1 (a win), or a ``return``."""
    return "chance" if is_duel(spec) else "return" if spec.scored_by_rewards else "score"


def _checked(actions: Sequence[int], most: int) -> list[int]:
    if not all(isinstance(action, int) and 0 <= action < most for action in actions):
        raise GameError(f"an action is a whole number in 0 … {most - 1}, got {list(actions)!r}")
    return list(actions)


def judge(line: Line, packed: bytes, seat: int, policy: Policy) -> Judgement:
    """Asks a policy for the value of what a seat sees, and for its favourite moves. Players without a network have
    neither."""
    of_seat = getattr(policy, "of_seat", None)  # of independent agents, the one that sits there
    policy = policy if of_seat is None else of_seat(seat)
    log_probabilities = getattr(policy, "log_probabilities", None)
    if log_probabilities is None:
        return Judgement(None)
    observations, legal = line.game.unpack(np.frombuffer(packed, np.uint8)[None])
    shares = np.exp(log_probabilities(observations, legal)[0])
    best = [int(action) for action in np.argsort(-shares)[:FAVOURITES] if legal[0, action]]
    choices = line.face.choices(packed, seat, best)
    favourites = [asdict(choice) | {"probability": float(shares[choice.action])} for choice in choices]
    return Judgement(float(policy.evaluate(observations, legal)[0]), favourites)


def glimpse_frames(game: str, options: Mapping[str, Any], glimpse: Glimpse) -> dict[str, Any]:
    """Describes the last plies of a self-play game as pictures, the newest last. It shows the last game of the
    glimpse."""
    made = make_game(game, batch=1, **options)
    face = face_of_rows(made)
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
        "is_duel": is_duel(made.spec),
        "scale": scale(made.spec),
        "frames": frames,
    }
