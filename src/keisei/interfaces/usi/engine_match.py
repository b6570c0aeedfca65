"""Matches in which another program's engine plays: one game after the other, with clocks.

An engine that crashes, thinks too long, or plays an illegal move loses the game. The match goes on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from keisei.errors import ConfigError, EngineError, EngineTimeoutError, NotationError
from keisei.evaluation.results import MatchResult, PlayedGame
from keisei.games.registry import make_game
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.interfaces.usi.client import UsiClient
from keisei.interfaces.usi.clocks import GRACE, Clock, TimeControl
from keisei.interfaces.usi.engine import Mind, Task
from keisei.interfaces.usi.protocol import EngineOptions, Insight, Limits

__all__ = ["Contestant", "EngineContestant", "MatchSettings", "MindContestant", "play_engines"]

CRASHED = "crashed"
_MOST_OPENINGS = 100


class Contestant(Protocol):
    """A player of such a match."""

    @property
    def name(self) -> str: ...

    def begin(self) -> None:
        """Prepares for a new game."""
        ...

    def choose(self, position: str, clock: Clock, turn: int) -> str:
        """Chooses a move, ``resign`` or ``win``."""
        ...

    def finish(self, result: str) -> None:
        """Is told the result: ``win``, ``lose`` or ``draw``."""
        ...


@dataclass(frozen=True)
class EngineContestant:
    """The engine of another program."""

    name: str
    client: UsiClient

    def begin(self) -> None:
        self.client.new_game()

    def choose(self, position: str, clock: Clock, turn: int) -> str:
        return self.client.go(position, clock.words(), clock.most_seconds(turn) + GRACE)

    def finish(self, result: str) -> None:
        self.client.game_over(result)


@dataclass(frozen=True)
class MindContestant:
    """A player of our own."""

    name: str
    mind: Mind
    options: EngineOptions = field(default_factory=EngineOptions)

    def begin(self) -> None:
        """A player of ours has nothing to prepare."""

    def choose(self, position: str, clock: Clock, turn: int) -> str:
        study, found = self.mind.study(position), list[Insight]()
        verdict = study.settled()
        if verdict is not None:
            return verdict
        limits = Limits.parse(clock.words().split())
        wish, most = limits.seconds(turn, self.options) or (None, clock.most_seconds(turn))
        deadline = time.monotonic() + most
        study.think(Task(self.options, limits, wish, found.append, lambda: time.monotonic() > deadline))
        return found[-1].lines[0].moves[0] if found else study.any_move()

    def finish(self, result: str) -> None:
        """A player of ours does not remember games."""


@dataclass(frozen=True)
class MatchSettings:
    """How a match is played."""

    games: int
    seed: int = 0
    opening_plies: int = 4
    max_plies: int = 512
    """The ply at which a game is a draw."""
    control: TimeControl = field(default_factory=TimeControl)


@dataclass(frozen=True)
class _End:
    """How a game ended: the ending, and the score of black."""

    ending: str
    black: float


def play_engines(
    first: Contestant,
    second: Contestant,
    settings: MatchSettings,
    on_game: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Plays a match. Games come in pairs with the same opening, in which the players change seats."""
    if settings.games < 2 or settings.games % 2:
        raise ConfigError(f"games come in pairs, so that both players have both seats; got {settings.games}")
    for player in (first, second):
        player.begin()  # an engine that cannot start is an error, not a lost game
    played: list[PlayedGame] = []
    for number in range(settings.games):
        seat = number % 2
        board = _opening(settings, number // 2)
        end = _play(board, (first, second) if seat == 0 else (second, first), settings)
        actions = tuple(_actions(board))
        scores = (end.black, -end.black)
        played.append(PlayedGame(number // 2, seat, scores, len(actions), end.ending, False, actions))
        if on_game is not None:
            on_game(number + 1, settings.games)
    return MatchResult(
        game="shogi",
        players=(first.name, second.name),
        seed=settings.seed,
        opening_plies=settings.opening_plies,
        games=tuple(played),
        record_format=make_game("shogi").spec.record_format,
    )


def _opening(settings: MatchSettings, pair: int) -> Board:
    """Plays random plies, the same in both games of a pair. An opening that ends the game is drawn again."""
    lots = random.Random(f"{settings.seed} {pair}")
    for _ in range(_MOST_OPENINGS):
        board = Board()
        for _ in range(settings.opening_plies):
            if board.is_game_over():
                break
            board.push(lots.choice(sorted(board.legal_moves)))
        if not board.is_game_over():
            return board
    raise ConfigError(f"games end within {settings.opening_plies} random plies; lower the opening plies")


def _play(board: Board, players: tuple[Contestant, Contestant], settings: MatchSettings) -> _End:
    """Plays one game on the board, black's player first."""
    clock = Clock(settings.control)
    for seat, player in enumerate(players):
        try:
            player.begin()
        except EngineError:
            return _told(players, _lost(CRASHED, seat))
    while (end := _ended(board, settings)) is None:
        turn = int(board.turn)
        end = _move(board, players[turn], clock, turn)
        if end is not None:
            break
    return _told(players, end)


def _move(board: Board, player: Contestant, clock: Clock, turn: int) -> _End | None:
    """Plays one move. Returns the end of the game if there is none."""
    began = time.monotonic()
    try:
        answer = player.choose(_position(board), clock, turn)
    except EngineTimeoutError:
        return _lost(Termination.TIME_UP.value, turn)
    except EngineError:
        return _lost(CRASHED, turn)
    if not clock.take(turn, time.monotonic() - began):
        return _lost(Termination.TIME_UP.value, turn)
    if answer == "resign":
        return _lost(Termination.RESIGNATION.value, turn)
    if answer == "win":
        rightly = board.can_declare_win()
        return _lost(Termination.DECLARATION.value, 1 - turn) if rightly else _illegal(turn)
    try:
        board.push_usi(answer)
    except NotationError:
        return _illegal(turn)
    return None


def _ended(board: Board, settings: MatchSettings) -> _End | None:
    outcome = board.outcome()
    if outcome is not None:
        return _End(outcome.termination.value, _score(outcome))
    return _End(Termination.MAX_PLIES.value, 0.0) if board.ply >= settings.max_plies else None


def _score(outcome: Outcome) -> float:
    return 0.0 if outcome.winner is None else 1.0 - 2.0 * int(outcome.winner)


def _lost(ending: str, seat: int) -> _End:
    return _End(ending, -1.0 if seat == 0 else 1.0)


def _illegal(seat: int) -> _End:
    return _lost(Termination.ILLEGAL_MOVE.value, seat)


def _told(players: tuple[Contestant, Contestant], end: _End) -> _End:
    """Tells both players how the game ended."""
    for seat, player in enumerate(players):
        score = end.black if seat == 0 else -end.black
        player.finish("draw" if score == 0 else "win" if score > 0 else "lose")
    return end


def _position(board: Board) -> str:
    moves = " ".join(map(str, board.move_stack))
    return f"startpos moves {moves}" if moves else "startpos"


def _actions(board: Board) -> Iterator[int]:
    """Yields the actions of all moves on a board from the usual start."""
    replay = Board()
    for move in board.move_stack:
        yield replay.action(move)
        replay.push(move)
