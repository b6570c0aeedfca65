"""How the engine's players find a move: by a network, by a search, or by any other policy.

Each is a ``Mind``. Its ``study`` holds a board and reports lines of play with scores.
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
from keisei.interfaces.usi.engine import Mind, Study, Task
from keisei.interfaces.usi.protocol import Insight, Line
from keisei.native import core
from keisei.policies.contract import Policy, Situation, TrainedPolicy
from keisei.policies.players.search_player import SearchPlayer

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
"""Higher scores mean a mate."""
_KEYS = 1 << 62


def mind_of(policy: Policy, game_options: Mapping[str, Any] | None = None) -> Mind:
    """Makes the mind of a player. ``game_options`` are those of the game that it was trained on."""
    if isinstance(policy, SearchPlayer):
        return SearchMind(policy.depth)
    if hasattr(policy, "log_probabilities"):
        return NetworkMind(cast(TrainedPolicy, policy), make_game("shogi", **(game_options or {})))
    return PolicyMind(policy)


@dataclass(frozen=True)
class BoardStudy:
    """A board, and the function that thinks about it."""

    board: Board
    thinker: Callable[[Board, Task], None]

    @property
    def turn(self) -> int:
        return int(self.board.turn)

    def settled(self) -> str | None:
        if self.board.can_declare_win():
            return "win"
        return None if self.board.legal_moves else "resign"

    def any_move(self) -> str:
        return next(iter(self.board.legal_moves)).usi()

    def think(self, task: Task) -> None:
        self.thinker(self.board, task)

    def mate(self, stopped: Callable[[], bool]) -> str:
        try:
            moves = find_mate(self.board, stopped)
        except TimeoutError:
            return "timeout"
        return "nomate" if moves is None else " ".join(map(str, moves))


class NetworkMind:
    """Plays what the network's policy prefers. It looks at one position, and at those of its lines."""

    def __init__(self, policy: TrainedPolicy, game: Game) -> None:
        self._policy, self._game = policy, game
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(self, board: Board, task: Task) -> None:
        ranked, options = self._ranked(board), task.options
        value = float(self._policy.evaluate(*self._seen([board]))[0])
        moves = [*ranked][: options.lines]
        if options.temperature:
            moves = [*dict.fromkeys([self._draw(ranked, options.temperature), *moves])][: options.lines]
        best = Line((moves[0].usi(),), *_judged(value))
        task.tell(Insight(1, 1, (best,)))
        lines, nodes = [best], 1
        if len(moves) > 1:
            lines = self._valued(board, moves)
            nodes += len(moves)
        for plies in range(_EXPECTED_PLIES):
            if task.stopped() or not self._extend(board, lines):
                break
            nodes += len(lines)
            task.tell(Insight(plies + 2, nodes, tuple(lines)))

    def _ranked(self, board: Board) -> dict[Move, float]:
        """Ranks all legal moves by the logarithms of their probabilities, the likeliest first."""
        found = self._policy.log_probabilities(*self._seen([board]))[0]
        moves = {move: float(found[board.action(move)]) for move in board.legal_moves}
        return dict(sorted(moves.items(), key=lambda item: -item[1]))

    def _draw(self, ranked: Mapping[Move, float], temperature: float) -> Move:
        scaled = np.array([*ranked.values()]) / temperature
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
        """Adds the likeliest next move to each line. Returns whether there was any."""
        ends = [_after(board, [Move.from_usi(move) for move in line.moves]) for line in lines]
        open_ends = [index for index, end in enumerate(ends) if not end.is_game_over()]
        if not open_ends:
            return False
        found = self._policy.log_probabilities(*self._seen([ends[index] for index in open_ends]))
        for index, action in zip(open_ends, found.argmax(axis=1).tolist(), strict=True):
            reply, line = ends[index].move_from_action(action), lines[index]
            lines[index] = Line((*line.moves, reply.usi()), line.score, line.chance)
        return True

    def _seen(self, boards: Sequence[Board]) -> tuple[Any, Any]:
        packed = np.frombuffer(b"".join(board.pack() for board in boards), np.uint8)
        return self._game.unpack(packed.reshape(len(boards), -1))


class SearchMind:
    """Searches deeper and deeper, up to its depth, and counts material."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(self, board: Board, task: Task) -> None:
        started = time.monotonic()
        roots = _Roots(board, self._random)
        most_nodes = min((n for n in (task.limits.nodes, task.options.nodes) if n), default=0)
        for depth in range(1, self._deepest(task) + 1):
            begun = time.monotonic()
            if not roots.deepen(depth, lambda: task.stopped() or 0 < most_nodes <= roots.nodes):
                break
            task.tell(Insight(depth, roots.nodes, roots.lines(task.options.lines, depth)))
            now = time.monotonic()
            next_takes = _NEXT_DEPTH * (now - begun)
            too_long = task.seconds is not None and now - started + next_takes > task.seconds
            if too_long or roots.decided or next_takes > _LONGEST_CALL * len(roots.scores):
                break

    def _deepest(self, task: Task) -> int:
        wanted = [depth for depth in (task.limits.depth, task.options.depth) if depth]
        if wanted:
            return min(*wanted, core.MAX_SEARCH_DEPTH)
        return core.MAX_SEARCH_DEPTH if task.limits.infinite or task.limits.nodes else self._depth


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
        """Whether there is only one move, or the best one mates."""
        return len(self.scores) == 1 or abs(next(iter(self.scores.values()))) > _MATE_SCORE

    def deepen(self, depth: int, stopped: Callable[[], bool]) -> bool:
        """Searches all moves to a depth. Returns False and keeps the old scores if it was stopped."""
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
            found[move] = _before(score)
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
        """Makes a line of each of the best moves and the replies that follow it."""
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
        """Computes the score for the side to move, and its best action."""
        keys = np.array([board.key % _KEYS], np.uint64)
        packed = np.frombuffer(board.pack(), np.uint8)[None]
        actions, scores, nodes = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint64)
        core.search(packed, depth, keys, actions, scores, nodes)
        self.nodes += int(nodes[0])
        return int(scores[0]), int(actions[0])


class PolicyMind:
    """Plays what any policy decides. It reports no score."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._random = random.Random()

    def study(self, position: str) -> Study:
        return BoardStudy(Board.from_usi_position(position), self._think)

    def _think(self, board: Board, task: Task) -> None:
        seed = self._random.randrange(_KEYS)
        situation = Situation(make_game("shogi", seed=seed, start=board.sfen()), seed, 0)
        action = int(self._policy.act(situation).actions[0])
        task.tell(Insight(1, 1, (Line((board.move_from_action(action).usi(),)),)))


def _after(board: Board, moves: Sequence[Move]) -> Board:
    copy = board.copy()
    for move in moves:
        copy.push(move)
    return copy


def _before(score: int) -> int:
    """Converts the score of a position to one ply earlier, for the other side. A mate is then one ply further away."""
    return -score + (score > _MATE_SCORE) - (score < -_MATE_SCORE)


def _judged(value: float) -> tuple[str, float]:
    """Converts a value between -1 and 1 to a score and a winning chance."""
    chance = (1 + max(-_SURE, min(_SURE, value))) / 2
    score = _CP_SCALE * math.log(chance / (1 - chance))
    return f"cp {round(max(-_MOST_CP, min(_MOST_CP, score)))}", chance


def _counted(score: int) -> tuple[str, float]:
    """Converts the native core's score, which counts pawns, to a score and a winning chance."""
    plies = core.MATE - abs(score)
    if plies < core.MATE - _MATE_SCORE:
        return (f"mate {plies}", 1.0) if score > 0 else (f"mate -{plies}", 0.0)
    return f"cp {100 * score}", 1 / (1 + math.exp(-100 * score / _CP_SCALE))
