"""The player of a run, for your own programs: ``keisei.load("runs/NAME")``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from keisei.errors import PolicyError
from keisei.games.contract import Array, BoolArray, FloatArray, Game, GameSpec, IntArray
from keisei.games.offers import PackedBoard
from keisei.games.registry import make_game
from keisei.policies.agents_policy import AgentsPolicy
from keisei.policies.contract import TrainedPolicy
from keisei.policies.players.finding import RUNS, RunGame
from keisei.policies.players.saved_player import find_player
from keisei.policies.sampling import sample

__all__ = ["TrainedPlayer", "load"]

Move = TypeVar("Move")


def load(
    run: str | Path, *, root: str | Path = RUNS, seed: int = 0, seat: int | None = None, trust: bool = False
) -> TrainedPlayer:
    """Loads the player of a run or of a checkpoint.

    ``run`` is the path of a run, its name below ``root``, ``RUN@best``, ``RUN@latest``, ``RUN@42``, or the path of a
    checkpoint, which may have been copied from another machine. A run plays with its best checkpoint, or with its
    latest if none is marked best. ``seed`` is for the draws of ``predict`` and ``play`` at a temperature above 0. Of
    independent agents, ``seat`` names one. With ``trust``, the run or the checkpoint may import the game and the
    networks that it names: do this only for runs of people whom you trust with this machine.
    """
    saved = find_player(str(run), Path(root), trust=trust)
    policy = saved.policy()
    if seat is not None:
        policy = _of_seat(policy, seat, saved.name)
    return TrainedPlayer(saved.name, saved.game, policy, seed)


def _of_seat(policy: TrainedPolicy, seat: int, run: str) -> TrainedPolicy:
    if not isinstance(policy, AgentsPolicy):
        raise PolicyError(f"seat = {seat}: one network plays all seats of {run}; leave seat out")
    return policy.of_seat(seat)


class TrainedPlayer:
    """Plays with the weights of a checkpoint.

    All methods take one row or a batch of rows, as ``Game.observe`` and ``Game.legal`` give them. For one row they
    give one result, for a batch an array with one result for each row.
    """

    def __init__(self, name: str, game: RunGame, policy: TrainedPolicy, seed: int = 0) -> None:
        self.name = name
        """The run and the update, such as ``first@42``."""
        self.spec: GameSpec = game.spec
        """The game that it plays."""
        self.policy = policy
        """The policy, for matches and for your own loops; see ``keisei.evaluation.Player``."""
        self._game = game
        self._random = np.random.default_rng(seed)
        self._unpacker: Game | None = None

    def game(self, *, batch: int = 1, seed: int = 0, first_game: int = 0) -> Game:
        """Makes the game of the run, with the same options."""
        options = dict(self._game.options)
        return make_game(self._game.name, batch=batch, seed=seed, first_game=first_game, **options)

    def predict(
        self, observations: ArrayLike, legal: ArrayLike, *, temperature: float = 0.0
    ) -> int | IntArray:
        """Chooses a legal action for each row: the best one at temperature 0, else one drawn from
        softmax(logits / temperature). Returns an int for one row and int32 [n] for a batch."""
        rows, masks, alone = self._rows(observations, legal)
        actions = self._actions(rows, masks, temperature)
        return int(actions[0]) if alone else actions

    def probabilities(self, observations: ArrayLike, legal: ArrayLike) -> FloatArray:
        """[num_actions] or [n, num_actions]: the probability of each action; 0 for actions that are not legal."""
        rows, masks, alone = self._rows(observations, legal)
        found: FloatArray = np.exp(self.policy.log_probabilities(rows, masks))
        return found[0] if alone else found

    def values(self, observations: ArrayLike, legal: ArrayLike) -> float | FloatArray:
        """Estimates the return of the seat that acts in each row. Returns a float for one row and float32 [n] for a
        batch."""
        rows, masks, alone = self._rows(observations, legal)
        found = self.policy.evaluate(rows, masks)
        return float(found[0]) if alone else found

    def play(self, board: PackedBoard[Move], *, temperature: float = 0.0) -> Move:
        """Chooses a move on a board of the run's game. The board does not change."""
        rows, masks = self._seen(board)
        if not masks.any():
            raise PolicyError("the game on this board is over: no move is legal, so there is none to choose")
        return board.move_from_action(int(self._actions(rows, masks, temperature)[0]))

    def __repr__(self) -> str:
        return f"<TrainedPlayer {self.name} of {self.spec.name}>"

    def _actions(self, rows: Array, masks: BoolArray, temperature: float) -> IntArray:
        draws = self._random.random(len(rows)) if temperature else np.zeros(len(rows))
        return sample(self.policy.log_probabilities(rows, masks), masks, draws, temperature)[0]

    def _rows(self, observations: ArrayLike, legal: ArrayLike) -> tuple[Array, BoolArray, bool]:
        """Checks what was given. Returns observations and masks as batches, and whether it was one row."""
        rows = _converted(observations, self.spec.observation.dtype, f"observations of {self.spec.name}")
        masks = _converted(legal, np.dtype(np.bool_), "masks of legal actions")
        one, actions = self.spec.observation.shape, (self.spec.num_actions,)
        alone = rows.shape == one
        if not alone and rows.shape[1:] != one:
            batch = ", ".join(map(str, ("rows", *one)))
            raise PolicyError(
                f"observations of {self.spec.name} have the shape {one} for one row and ({batch}) for a batch; got "
                f"{rows.shape}"
            )
        expected = actions if alone else (len(rows), *actions)
        if masks.shape != expected:
            raise PolicyError(
                f"legal has one entry for each action of {self.spec.name}: the shape must be {expected} for these "
                f"observations, got {masks.shape}"
            )
        if not masks.any(axis=-1).all():
            raise PolicyError("legal marks no action in some row; every row needs at least one")
        return (rows[None], masks[None], True) if alone else (rows, masks, False)

    def _seen(self, board: PackedBoard[Any]) -> tuple[Array, BoolArray]:
        """Makes a batch of one from what the policy sees of a board."""
        if not isinstance(board, PackedBoard):
            raise PolicyError(
                f"play takes a board with pack() and move_from_action(), got {type(board).__name__}; for other "
                f"games, predict takes observations and masks"
            )
        packed = np.frombuffer(board.pack(), np.uint8)[None]
        if packed.shape[1] != self.spec.packed_bytes:
            raise PolicyError(f"{self.name} plays {self.spec.name}, and this is a board of another game")
        if self._unpacker is None:
            self._unpacker = self.game()
        return self._unpacker.unpack(packed)


def _converted(values: ArrayLike, dtype: np.dtype[Any], what: str) -> Array:
    """Converts an array to this type. Only floats may be rounded."""
    given = np.asarray(values)
    if given.dtype == dtype:
        return given
    if given.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):  # NaN is no integer; the comparison finds it
            converted = given.astype(dtype)
        if dtype.kind == "f" or np.array_equal(converted, given):
            return converted
    raise PolicyError(f"{what} are {dtype}; these {given.dtype} values do not fit that type")
