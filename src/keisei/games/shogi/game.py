"""Shogi as a batch of games, on top of the native core."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from keisei.config import Settings, parse_settings
from keisei.errors import GameError, IllegalActionError
from keisei.games.contract import Array, BoolArray, ByteArray, GameSpec, IntArray, ObservationSpec
from keisei.games.native_batch import NativeBatch
from keisei.games.shogi import lookahead, meaning
from keisei.games.shogi.board import Board
from keisei.games.shogi.face import ShogiFace
from keisei.games.shogi.match_records import ShogiRecords
from keisei.games.shogi.moves import Color
from keisei.games.shogi.picture import board_text_from
from keisei.games.shogi.sfen import STARTING_SFEN, native_position, parse_sfen
from keisei.native import core

__all__ = ["ShogiGame", "ShogiOptions"]

_LARGEST = 1_000_000
"""The largest reward. Rewards are float32, and much larger ones lose digits or become infinite."""
_Reward: TypeAlias = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]
_Weight: TypeAlias = Annotated[float, Field(ge=0, le=_LARGEST)]


class ShogiOptions(Settings):
    """The options of a game of Shogi."""

    max_plies: Annotated[int, Field(ge=1, le=4096)] = 512
    """The most plies of a game."""
    limit: Literal["cut", "draw"] = "cut"
    """What happens to a game that reaches ``max_plies``: it is cut off (truncated, a learner bootstraps), or a
    draw."""
    start: str = STARTING_SFEN
    """The position that every game starts from, as SFEN."""
    declaration: bool = False
    """A side that can declare a win by the 27-point rule on its turn wins."""
    win: _Reward = 1.0
    """Reward of the winner."""
    loss: _Reward = -1.0
    """Reward of the loser."""
    draw: _Reward = 0.0
    """Reward of both sides for a draw: by repetition, and at ``max_plies`` where that is a draw."""
    ply_cost: _Weight = 0.0
    """Cost of every ply, for both sides."""
    material: _Weight = 0.0
    """Weight of the potential-based reward for material. With 1, a whole set of pieces is worth 1."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The learner's discount. The potential needs it, so that it does not change the best play."""
    keep_material: bool = False
    """Keep the reward for material when the rules end a game, instead of taking it back. Beginners learn from it
    faster, but material then has a small value of its own."""

    @field_validator("start")
    @classmethod
    def _can_be_played(cls, start: str) -> str:
        if native_position(parse_sfen(start), start).ending()[0]:
            raise ValueError("no game can start here: the side to move has no legal move")
        return start

    @model_validator(mode="after")
    def _is_not_over(self) -> ShogiOptions:
        if self.declaration and Board(self.start).can_declare_win():
            raise ValueError(
                f"no game with declaration can start from {self.start!r}: the side to move may declare a win "
                f"at once"
            )
        return self

    @property
    def zero_sum(self) -> bool:
        return self.win == -self.loss and self.draw == 0 and self.ply_cost == 0


class ShogiGame(NativeBatch):
    """Japanese chess, all rules, many games at once. See docs/games/shogi.md for planes and actions."""

    OPTION_NAMES = tuple(ShogiOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(ShogiOptions, options, "the options of shogi")
        games = core.Batch(
            batch, seed, first_game, Board(o.start).pack(), o.max_plies, o.declaration, o.limit == "draw",
            o.win, o.loss, o.draw, o.ply_cost, o.material, o.discount, o.keep_material,
        )  # fmt: skip
        super().__init__(batch, games, _spec(o), o.model_dump())

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """See ``LooksAhead``. Repetition, the 27-point rule and the ply limit are ignored."""
        return lookahead.grab(self._packed_rows(selected), keys)

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return lookahead.search(self._packed_rows(selected), depth, keys)

    def move_name(self, action: int, game: int = 0) -> str:
        """Writes a move in USI."""
        return self._board(game).move_from_action(action).usi()

    def read_move(self, text: str, game: int = 0) -> list[int]:
        """Reads a move as people type it. See ``keisei.games.shogi.typed_moves``."""
        from keisei.games.shogi.typed_moves import read_typed_move

        board = self._board(game)
        return [board.action(move) for move in read_typed_move(board, text)]

    def move_examples(self, action: int, game: int = 0) -> list[str]:
        from keisei.games.shogi.typed_moves import written_moves

        board = self._board(game)
        return written_moves(board, board.move_from_action(action))

    def text_from(self, seat: int, game: int = 0) -> str:
        """Draws the board of a game with a side at the bottom."""
        return board_text_from(self._board(game).setup, Color(seat))

    def last_text_from(self, seat: int, game: int = 0) -> str:
        return board_text_from(Board.from_packed(self._last.of(game)).setup, Color(seat))

    def observation_meaning(self) -> list[str]:
        return meaning.plane_meaning()

    def action_meaning(self) -> list[str]:
        return meaning.action_meaning()

    def _board(self, game: int) -> Board:
        return Board.from_packed(self.pack()[game].tobytes())

    def _packed_rows(self, selected: IntArray | None) -> ByteArray:
        packed = self.pack()
        return packed if selected is None else packed[selected]

    def _expand(self, packed: ByteArray, observations: Array, legal: BoolArray) -> None:
        bad = core.expand(packed, self.options.max_plies, observations, legal)
        if bad >= 0:
            raise GameError(f"row {bad} of the packed rows is not a possible Shogi position; it was damaged")

    def _draw(self, packed: bytes) -> str:
        """Draws a board as KIF does."""
        return str(Board.from_packed(packed))

    def _refuse(self, row: int, action: int) -> NoReturn:
        raise IllegalActionError(
            f"action {action} in row {row} is not legal in {self._board(row).sfen()!r}; take one that legal() marks"
        )


def _spec(options: ShogiOptions) -> GameSpec:
    planes = ObservationSpec(
        (core.PLANES, 9, 9), np.dtype(np.uint8), scale=core.PLANE_SCALES, flat=core.FLAT_PLANES
    )
    return GameSpec(
        name="shogi",
        seats=2,
        num_actions=core.ACTIONS,
        observation=planes,
        packed_bytes=core.PACKED_BYTES,
        zero_sum=options.zero_sum,
        max_plies=options.max_plies,
        endings=core.ENDINGS,
        plane_actions=True,
        record_format=ShogiRecords(),
        face=ShogiFace(),
    )
