"""One game of Ludo for people and tests. It is written for reading; ``keisei.games.ludo.game`` plays many at once.

>>> board = LudoBoard(seed=7)
>>> board.to_move, board.dice, board.legal_actions()
(1, (5, 6), [20, 21, 22, 23])
>>> board.play(20)
>>> board.tokens
((-1, -1, -1, -1), (0, -1, -1, -1))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Self

from keisei.errors import ConfigError, GameError, IllegalActionError
from keisei.games.ludo.picture import board_svg, board_text
from keisei.games.ludo.squares import HOME, SAFE_SQUARES, START, TOKENS, YARD, square_of
from keisei.games.options import whole_number
from keisei.games.randomness import KeyedRandom

__all__ = ["LudoBoard", "action_of", "split_action"]

ACTIONS = 6 * TOKENS
MOST_DICE = 3 + 2 * TOKENS * 4
"""A turn brings three dice at most. Each further roll costs a die and brings three; tokens that reach home or are
captured bring one, and no token does so twice in a turn. The core has the same limit for any number of players."""


def action_of(value: int, token: int) -> int:
    """Computes the number of the action that moves a token (0 … 3) by a die of this value (1 … 6)."""
    return TOKENS * (value - 1) + token


def split_action(action: int) -> tuple[int, int]:
    """Splits an action into the value of the die and the token."""
    return action // TOKENS + 1, action % TOKENS


class LudoBoard:
    """A game of Ludo. The same seed rolls the same dice.

    It plays like the game of this number and episode in ``make_game("ludo", seed=seed, …)``.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        players: int = 2,
        blocks: bool = False,
        capture_rolls: bool = True,
        game: int = 0,
        episode: int = 0,
    ) -> None:
        self.players = whole_number("players", players, 2, 4)
        self.blocks = blocks
        self.capture_rolls = capture_rolls
        self.tokens: tuple[tuple[int, ...], ...] = ((YARD,) * TOKENS,) * self.players
        """The positions of each player's four tokens, as their owner counts them."""
        self.dice: tuple[int, ...] = ()
        """The values in hand, sorted."""
        self.to_move = 0
        """The seat whose turn it is. It stays with the winner."""
        self.ply = 0
        """How many actions were played."""
        self._random = KeyedRandom(seed, game, episode)
        self._roll()
        self._pass_on()

    @classmethod
    def from_position(
        cls, tokens: Iterable[Sequence[int]], dice: Iterable[int], to_move: int = 0, **rules: Any
    ) -> Self:
        """Makes a board with these tokens and dice. ``rules`` are further keywords of ``LudoBoard``."""
        places = tuple(
            tuple(
                whole_number(f"the position of token {token} of seat {seat}", position, YARD, HOME)
                for token, position in enumerate(positions)
            )
            for seat, positions in enumerate(tokens)
        )
        board = cls(**{"players": len(places), **rules})
        board.tokens = places
        board.dice = tuple(sorted(whole_number("the value of a die", value, 1, 6) for value in dice))
        board.to_move = whole_number("to_move", to_move, 0, board.players - 1)
        board._check()
        return board

    @classmethod
    def from_packed(cls, packed: bytes, **rules: Any) -> Self:
        """Makes a board from a packed row of the batched game with the same rules. It accepts the same rows as
        ``unpack`` of this game."""
        if len(packed) not in (15, 19, 23):
            raise GameError(
                f"a packed row of Ludo has 15, 19 or 23 bytes for 2, 3 or 4 players, got {len(packed)}"
            )
        dice = [value for value in range(1, 7) for _ in range(packed[value])]
        places = [byte - 1 for byte in packed[7:]]
        tokens = [places[first : first + TOKENS] for first in range(0, len(places), TOKENS)]
        try:
            return cls.from_position(tokens, dice, packed[0], **rules)
        except ConfigError as error:
            raise GameError(
                f"the packed row is no possible Ludo position: {error}. Either the row was damaged, or its game has "
                f"other rules"
            ) from error

    # What may be played, and what it does ------------------------------------------------------------

    @property
    def winner(self) -> int | None:
        """The seat with all tokens at home; None while the game continues."""
        home = (HOME,) * TOKENS
        return next((seat for seat, positions in enumerate(self.tokens) if positions == home), None)

    def legal_actions(self) -> list[int]:
        """Lists the numbers of the legal actions, in ascending order. There are none when the game is over."""
        if self.winner is not None:
            return []
        return [
            action_of(value, token)
            for value in sorted(set(self.dice))
            for token in range(TOKENS)
            if self._why_not(value, token) is None
        ]

    def play(self, action: int) -> None:
        """Plays a legal action. Any other raises ``IllegalActionError``, and the board does not change."""
        reason = self.why_illegal(index(action))
        if reason is not None:
            raise IllegalActionError(f"action {action} is not legal: {reason}")
        value, token = split_action(index(action))
        self._random.move_to(self.ply)
        self.ply += 1
        self._use_die(value)
        position = self._destination(self.tokens[self.to_move][token], value)
        self._put(self.to_move, token, position)
        captured = self._capture(position)
        if self.winner is not None:
            return
        if position == HOME or (captured and self.capture_rolls):
            self._roll()
        self._pass_on()

    def why_illegal(self, action: int) -> str | None:
        """Says which rule forbids an action; None if it is legal."""
        if not 0 <= action < ACTIONS:
            return f"actions are 0 … {ACTIONS - 1}"
        return "the game is over" if self.winner is not None else self._why_not(*split_action(action))

    def _why_not(self, value: int, token: int) -> str | None:
        """Says why a die cannot move a token of the seat to move; None if it can."""
        if value not in self.dice:
            return f"the dice in hand are {' '.join(map(str, self.dice))}"
        position = self.tokens[self.to_move][token]
        if position == YARD and value != 6:
            return "a token leaves the yard with a six"
        if position == HOME:
            return "the token is at home"
        destination = self._destination(position, value)
        if destination > HOME:
            return f"home is {HOME - position} squares away, and needs the exact count"
        if self.blocks and any(self._is_blocked(step) for step in range(position + 1, destination + 1)):
            return "a block is in the way"
        return None

    @staticmethod
    def _destination(position: int, value: int) -> int:
        return START if position == YARD else position + value

    def _is_blocked(self, position: int) -> bool:
        """Checks if two tokens of one other player block this position, as the seat to move counts it."""
        square = square_of(self.to_move, position, self.players)
        return square is not None and any(len(self._on(seat, square)) >= 2 for seat in self._others())

    def _others(self) -> list[int]:
        """Lists the other seats, in the order of play."""
        return [(self.to_move + step) % self.players for step in range(1, self.players)]

    def _on(self, seat: int, square: int) -> list[int]:
        """Finds the tokens of a seat that stand on a square of the loop."""
        positions = self.tokens[seat]
        return [token for token in range(TOKENS) if square_of(seat, positions[token], self.players) == square]

    def _capture(self, position: int) -> bool:
        """Sends one token of another player back from here, unless the square is safe."""
        square = square_of(self.to_move, position, self.players)
        if square is None or square in SAFE_SQUARES:
            return False
        for seat in self._others():
            for token in self._on(seat, square):
                self._put(seat, token, YARD)
                return True
        return False

    def _put(self, seat: int, token: int, position: int) -> None:
        positions = list(self.tokens[seat])
        positions[token] = position
        self.tokens = (*self.tokens[:seat], tuple(positions), *self.tokens[seat + 1 :])

    # Dice ---------------------------------------------------------------------------------------------

    def _use_die(self, value: int) -> None:
        dice = list(self.dice)
        dice.remove(value)
        self.dice = tuple(dice)

    def _roll(self) -> None:
        """Adds a roll to the dice in hand. A six rolls again, up to three dice; three sixes bring nothing."""
        rolled: list[int] = []
        while len(rolled) < 3 and (not rolled or rolled[-1] == 6):
            rolled.append(1 + self._random.integer(6))
        if rolled != [6, 6, 6]:
            self.dice = tuple(sorted((*self.dice, *rolled)))

    def _pass_on(self) -> None:
        """Passes the turn until the seat to move can play a die."""
        while not self.legal_actions():
            self.dice = ()
            self.to_move = (self.to_move + 1) % self.players
            self._roll()

    # Checks and pictures ------------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuses a position that no game can reach, as ``Position::unpack`` of the core does."""
        if [len(positions) for positions in self.tokens] != [TOKENS] * self.players:
            raise ConfigError(f"each of the {self.players} players has {TOKENS} tokens, got {self.tokens}")
        if len(self.dice) > MOST_DICE:
            raise ConfigError(
                f"a turn brings at most {MOST_DICE} dice, got {len(self.dice)}; put fewer into the hand"
            )
        self._check_winner()
        if self.winner is None and not self.legal_actions():
            raise ConfigError(
                f"seat {self.to_move} cannot play {self.dice}, so its turn has passed; name the seat that can play"
            )

    def _check_winner(self) -> None:
        won = [seat for seat, positions in enumerate(self.tokens) if set(positions) == {HOME}]
        if len(won) > 1:
            raise ConfigError(
                f"a game ends with its first winner, but seats {' and '.join(map(str, won))} have all tokens at home; "
                f"leave at least one token of the others on its way"
            )
        if won and won != [self.to_move]:
            raise ConfigError(
                f"seat {won[0]} has won, so it stays the one to move; got to_move {self.to_move}, give {won[0]}"
            )

    def __str__(self) -> str:
        return board_text(self)

    def __repr__(self) -> str:
        return f"<LudoBoard {self.tokens}, dice {self.dice}, seat {self.to_move} to move>"

    def _repr_svg_(self) -> str:
        """Notebooks show the board as a picture."""
        return board_svg(self)
