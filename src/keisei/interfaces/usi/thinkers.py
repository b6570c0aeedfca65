"""How the engine's players find a move: by a network, by a search, or by any other policy.

Each is a ``Mind``. Its ``study`` holds a board and tells lines of play with scores.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from keisei.games.contract import Game
from keisei.games.registry import make_game
from keisei.games.shogi.board import Board
from keisei.games.shogi.mate import find_mate
from keisei.games.shogi.moves import Move
from keisei.interfaces.usi.engine import Mind, Study, Tell
from keisei.interfaces.usi.protocol import EngineOptions, Insight, Limits, Line
from keisei.native import core
from keisei.policies.contract import Policy, Situation, TrainedPolicy
from keisei.policies.search_player import SearchPlayer

__all__ = ["BoardStudy", "mind_of"]

_CP_SCALE = 600.0
"""How many hundredths of a pawn make a winning chance of 1 / (1 + 1/e), as other engines count."""
_MOST_CP = 9999
_SURE = 1 - 1e-7
_EXPECTED_PLIES = 4
"""Plies that a network's line goes on after its first move."""
_NEXT_DEPTH = 6
"""One more ply of search takes about this much more time, or more."""
_LONGEST_CALL = 1.0
"""Seconds of a call of the native search, which cannot be stopped. Deeper searches are not begun."""
_MATE_SCORE = core.MATE - 1000
"""Higher scores tell of a mate."""
_KEYS = 1 << 62


def mind_of(policy: Policy, options: EngineOptions, game_options: Mapping[str, Any]) -> Mind:
    """Gives the mind of a player. ``game_options`` are those of the game that it was trained on."""
    if isinstance(policy, SearchPlayer):
        return SearchMind(policy.depth, options)
    if hasattr(policy, "log_probabilities"):
        return NetworkMind(cast(TrainedPolicy, policy), options, make_game("shogi", **game_options))
    return PolicyMind(policy)


@dataclass(frozen=True)
class BoardStudy:
    """A board, and the function that thinks about it."""

    board: Board
    thinker: Callable[[Board, Limits, float | None, Tell, Callable[[], bool]], None]

    @property
    def turn(self) -> int:
        return int(self.board.turn)

    def settled(self) -> str | None:
        if self.board.can_declare_win():
            return "win"
        return None if self.board.legal_moves else "resign"

    def any_move(self) -> str:
        return next(iter(self.board.legal_moves)).usi()

    def think(self, limits: Limits, seconds: float | None, tell: Tell, stopped: Callable[[], bool]) -> None:
        self.thinker(self.board, limits, seconds, tell, stopped)

    def mate(self, stopped: Callable[[], bool]) -> str:
        try:
            moves = find_mate(self.board, stopped)
        except TimeoutError:
            return "timeout"
        return "nomate" if moves is None else " ".join(map(str, moves))


class NetworkMind:
    """Plays what the network's policy prefers. It looks at one position, and at those of its lines."""

    def __init__(self, policy: TrainedPolicy, options: EngineOptions, game: Game) -> None:
        self._policy, self._options, self._game = policy, options, game
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(
        self, board: Board, limits: Limits, seconds: float | None, tell: Tell, stopped: Callable[[], bool]
    ) -> None:
        ranked = self._ranked(board)
        value = float(self._policy.evaluate(*self._seen([board]))[0])
        moves = [*ranked][: self._options.lines]
        if self._options.temperature:
            moves = [*dict.fromkeys([self._draw(ranked), *moves])][: self._options.lines]
        best = Line((moves[0].usi(),), *_judged(value))
        tell(Insight(1, 1, (best,)))
        lines, nodes = [best], 1
        if len(moves) > 1:
            lines = self._valued(board, moves)
            nodes += len(moves)
        for plies in range(_EXPECTED_PLIES):
            if stopped() or not self._extend(board, lines):
                break
            nodes += len(lines)
            tell(Insight(plies + 2, nodes, tuple(lines)))

    def _ranked(self, board: Board) -> dict[Move, float]:
        """Gives all legal moves with the logarithms of their probabilities, the likeliest first."""
        found = self._policy.log_probabilities(*self._seen([board]))[0]
        moves = {move: float(found[board.action(move)]) for move in board.legal_moves}
        return dict(sorted(moves.items(), key=lambda item: -item[1]))

    def _draw(self, ranked: Mapping[Move, float]) -> Move:
        scaled = np.array([*ranked.values()]) / self._options.temperature
        weights = np.exp(scaled - scaled.max()).tolist()
        return self._random.choices([*ranked], weights)[0]

    def _valued(self, board: Board, moves: Sequence[Move]) -> list[Line]:
        """Values each move by the position after it."""
        after = [_after(board, [move]) for move in moves]
        values = self._policy.evaluate(*self._seen(after)).tolist()
        return [
            Line((move.usi(),), "mate 1", 1.0)
            if not position.legal_moves
            else Line((move.usi(),), *_judged(-value))
            for move, position, value in zip(moves, after, values, strict=True)
        ]

    def _extend(self, board: Board, lines: list[Line]) -> bool:
        """Adds the likeliest next move to each line. Gives whether there was any."""
        longer = False
        for index, line in enumerate(lines):
            end = _after(board, [Move.from_usi(move) for move in line.moves])
            if not end.is_game_over():
                reply = next(iter(self._ranked(end)))
                lines[index] = Line((*line.moves, reply.usi()), line.score, line.chance)
                longer = True
        return longer

    def _seen(self, boards: Sequence[Board]) -> tuple[Any, Any]:
        packed = np.frombuffer(b"".join(board.pack() for board in boards), np.uint8)
        return self._game.unpack(packed.reshape(len(boards), -1))


class SearchMind:
    """Searches deeper and deeper, up to its depth, and counts material."""

    def __init__(self, depth: int, options: EngineOptions) -> None:
        self._depth, self._options = depth, options
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(
        self, board: Board, limits: Limits, seconds: float | None, tell: Tell, stopped: Callable[[], bool]
    ) -> None:
        started = time.monotonic()
        roots = _Roots(board, self._random)
        deepest = self._deepest(limits)
        most_nodes = min((nodes for nodes in (limits.nodes, self._options.nodes) if nodes), default=0)
        for depth in range(1, deepest + 1):
            begun = time.monotonic()
            if not roots.deepen(depth, lambda: stopped() or 0 < most_nodes <= roots.nodes):
                break
            tell(Insight(depth, roots.nodes, roots.lines(self._options.lines, depth)))
            took, now = time.monotonic() - begun, time.monotonic()
            too_long = seconds is not None and (now - started) + _NEXT_DEPTH * took > seconds
            if too_long or roots.decided or _NEXT_DEPTH * took > _LONGEST_CALL * len(roots.scores):
                break

    def _deepest(self, limits: Limits) -> int:
        wanted = [depth for depth in (limits.depth, self._options.depth) if depth]
        if wanted:
            return min(*wanted, core.MAX_SEARCH_DEPTH)
        return core.MAX_SEARCH_DEPTH if limits.infinite or limits.nodes else self._depth


class _Roots:
    """The moves of a position and their scores, the best first. Equal ones are in a random order."""

    def __init__(self, board: Board, lots: random.Random) -> None:
        self._board = board
        moves = sorted(board.legal_moves)
        lots.shuffle(moves)
        self._after = {move: _after(board, [move]) for move in moves}
        self.scores: dict[Move, int] = dict.fromkeys(moves, 0)
        self._replies: dict[Move, int] = {}
        """The action that answers a move, as far as one is known."""
        self.nodes = 0

    @property
    def decided(self) -> bool:
        """Whether one move is all there is, or the best one mates."""
        return len(self.scores) == 1 or abs(next(iter(self.scores.values()))) > _MATE_SCORE

    def deepen(self, depth: int, stopped: Callable[[], bool]) -> bool:
        """Searches all moves to a depth. Gives False, and keeps the scores as they were, if it was stopped."""
        if depth == 1:
            return self._glance()
        found: dict[Move, int] = {}
        replies: dict[Move, int] = {}
        for move, after in self._after.items():
            if stopped():
                return False
            if not after.legal_moves:
                found[move] = core.MATE - 1
                continue
            score, replies[move] = self._search(after, depth - 1)
            found[move] = (
                -score + (score > _MATE_SCORE) - (score < -_MATE_SCORE)
            )  # a mate is one ply further away
        ranked = sorted(self.scores, key=lambda move: -found[move])
        self.scores, self._replies = {move: found[move] for move in ranked}, replies
        return True

    def _glance(self) -> bool:
        """Finds the best move by one ply. The scores of the others are not known."""
        score, action = self._search(self._board, 1)
        best = self._board.move_from_action(action)
        self.scores = {best: score} | self.scores | {best: score}
        return True

    def lines(self, count: int, depth: int) -> tuple[Line, ...]:
        """Gives the best moves with what follows them."""
        best = [*self.scores][: count if depth > 1 else 1]
        return tuple(
            Line(tuple(map(str, self._line(move, depth))), *_counted(self.scores[move])) for move in best
        )

    def _line(self, move: Move, depth: int) -> list[Move]:
        """Follows the best replies, with less depth each."""
        line, board, left = [move], self._after[move].copy(), depth - 1
        action = self._replies.get(move, -1) if left else -1
        while left and action >= 0:
            line.append(board.move_from_action(action))
            board.push(line[-1])
            left -= 1
            action = self._search(board, left)[1] if left and board.legal_moves else -1
        return line

    def _search(self, board: Board, depth: int) -> tuple[int, int]:
        """Gives the score for the side to move, and its best action."""
        keys = np.array([board.key % _KEYS], np.uint64)
        packed = np.frombuffer(board.pack(), np.uint8)[None]
        actions, scores, nodes = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint64)
        core.search(packed, depth, keys, actions, scores, nodes)
        self.nodes += int(nodes[0])
        return int(scores[0]), int(actions[0])


class PolicyMind:
    """Plays what any policy decides. It tells no score."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(
        self, board: Board, limits: Limits, seconds: float | None, tell: Tell, stopped: Callable[[], bool]
    ) -> None:
        seed = self._random.randrange(_KEYS)
        situation = Situation(make_game("shogi", seed=seed, start=board.sfen()), seed, 0)
        action = int(self._policy.act(situation).actions[0])
        tell(Insight(1, 1, (Line((board.move_from_action(action).usi(),)),)))


def _after(board: Board, moves: Sequence[Move]) -> Board:
    copy = board.copy()
    for move in moves:
        copy.push(move)
    return copy


def _judged(value: float) -> tuple[str, float]:
    """Gives the score and the winning chance of a value between -1 and 1."""
    chance = (1 + max(-_SURE, min(_SURE, value))) / 2
    score = _CP_SCALE * math.log(chance / (1 - chance))
    return f"cp {round(max(-_MOST_CP, min(_MOST_CP, score)))}", chance


def _counted(score: int) -> tuple[str, float]:
    """Gives the score and the winning chance of the native core's score, which counts pawns."""
    plies = core.MATE - abs(score)
    if plies < core.MATE - _MATE_SCORE:
        return (f"mate {plies}", 1.0) if score > 0 else (f"mate -{plies}", 0.0)
    return f"cp {100 * score}", 1 / (1 + math.exp(-100 * score / _CP_SCALE))
