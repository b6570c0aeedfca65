"""Repetition against a slow and obvious reading of the rule.

When a position (pieces, hands and side to move) stands for the fourth time, the game is over. If every
move of one side since the first time gave check, that side loses; otherwise, and if both sides did so,
it is a draw.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from keisei.games.shogi import BLACK, WHITE, Board, Color, Move, Outcome, Termination

# Few pieces, so that random play comes back often, and checks by rook, bishop and lance are common.
STARTS = [
    "4k4/9/9/9/9/9/9/9/4K4 b - 1",
    "8k/9/9/9/9/9/9/9/R7K b - 1",
    "k8/9/9/9/9/9/9/9/K7R w - 1",
    "kr7/9/9/9/9/9/9/9/7RK b - 1",
    "4k4/9/9/4r4/9/4R4/9/9/4K4 b - 1",
    "1kb6/9/9/9/9/9/9/6BK1/9 w - 1",
    "lk7/pp7/9/9/9/9/9/7PP/7KL b - 1",
    "k8/9/1+R7/9/9/9/7+r1/9/8K b - 1",
]


Position = tuple[bytes, bytes, Color]


def position_of(board: Board) -> Position:
    """Exactly what must be equal: pieces, hands and side to move. No hash is involved."""
    setup = board.setup
    return setup.board, setup.hands, setup.turn


class History:
    """All positions of a game, and for each ply whether its move gave check."""

    def __init__(self, board: Board) -> None:
        self.positions = [position_of(board)]
        self.checks: list[bool] = []
        self.movers: list[Color] = []

    def add(self, mover: Color, board: Board) -> None:
        self.positions.append(position_of(board))
        self.checks.append(board.is_check())
        self.movers.append(mover)

    def times(self) -> int:
        return self.positions.count(self.positions[-1])

    def judge(self) -> Outcome | None:
        if self.times() < 4:
            return None
        first = self.positions.index(self.positions[-1])
        always = {
            color: all(
                check
                for check, mover in zip(self.checks[first:], self.movers[first:], strict=True)
                if mover is color
            )
            for color in Color
        }
        if always[BLACK] == always[WHITE]:
            return Outcome(Termination.REPETITION, None)
        return Outcome(Termination.PERPETUAL_CHECK, WHITE if always[BLACK] else BLACK)


def _play(start: str, rng: random.Random, plies: int) -> Outcome | None:
    """One random game that likes to check and to come back, compared at every ply."""
    board = Board(start)
    history = History(board)
    checking_side = rng.choice([BLACK, WHITE, None])
    seen = Counter(history.positions)
    for _ in range(plies):
        mover = board.turn
        board.push(_choose(board, rng, seen, checks_wanted=mover is checking_side))
        history.add(mover, board)
        seen[history.positions[-1]] += 1
        assert board.repetitions() == history.times() - 1
        outcome = board.outcome()
        if not board.legal_moves:
            assert outcome == Outcome(Termination.NO_LEGAL_MOVES, mover)
            return outcome
        assert outcome == history.judge()
        if outcome is not None:
            return outcome
    return None


def _choose(board: Board, rng: random.Random, seen: Counter[Position], checks_wanted: bool) -> Move:
    """A random move; often one that gives check or that leads to a position already seen."""
    moves = list(board.legal_moves)
    wanted: list[Move] = []
    if rng.random() < 0.9:
        for move in moves:
            board.push(move)
            known = seen[position_of(board)]
            if board.is_check() if checks_wanted else known:
                wanted.append(move)
                wanted += [move] * (5 * known)
            board.pop()
    return rng.choice(wanted or moves)


@pytest.mark.parametrize("start", STARTS)
def test_random_shuffling(start: str) -> None:
    rng = random.Random(start)
    ends: Counter[str] = Counter()
    for _ in range(200):
        outcome = _play(start, rng, plies=80)
        ends["none" if outcome is None else outcome.termination.value] += 1
    assert ends["repetition"] > 0  # or the test would show nothing


def test_random_shuffling_reaches_perpetual_check() -> None:
    rng = random.Random(0)
    winners: Counter[Color | None] = Counter()
    for _ in range(500):
        outcome = _play(rng.choice(STARTS[1:5]), rng, plies=60)
        if outcome is not None and outcome.termination is Termination.PERPETUAL_CHECK:
            winners[outcome.winner] += 1
    assert winners[BLACK] >= 5
    assert winners[WHITE] >= 5


def _push_all(board: Board, moves: str) -> list[Outcome | None]:
    outcomes = []
    for text in moves.split():
        board.push_usi(text)
        outcomes.append(board.outcome())
    return outcomes


def test_cycles_of_different_lengths() -> None:
    short = "2h1h 8b9b 1h2h 9b8b "
    long = "2h3h 8b7b 3h4h 7b6b 4h2h 6b8b "
    outcomes = _push_all(Board(), short + long + short)
    assert outcomes[:-1] == [None] * 13
    assert outcomes[-1] == Outcome(Termination.REPETITION, None)


def test_one_quiet_move_between_the_first_and_the_last_makes_it_a_draw() -> None:
    checks = "4e5e 5a4a 5e4e 4a5a "  # black checks with every move, and it repeats
    quiet = "4e3e 5a5b 3e4e 5b5a "  # black moves without check
    start = "4k4/9/9/9/5R3/9/9/9/4K4 b - 1"
    assert _push_all(Board(start), checks * 3)[-1] == Outcome(Termination.PERPETUAL_CHECK, WHITE)
    assert _push_all(Board(start), checks + quiet + checks)[-1] == Outcome(Termination.REPETITION, None)
    assert _push_all(Board(start), quiet + checks * 2)[-1] == Outcome(Termination.REPETITION, None)
    # Quiet moves before the first occurrence do not count. The rook comes to 4e from 4f.
    before = Board("4k4/9/9/9/9/5R3/9/9/4K4 w - 1")
    assert _push_all(before, "5a5b 4f4e 5b5a " + checks * 3)[-1] == Outcome(
        Termination.PERPETUAL_CHECK, WHITE
    )


def test_hands_and_turn_belong_to_the_position() -> None:
    """The same board with other hands is another position."""
    board = Board("4k4/9/9/9/9/9/9/9/R3K4 b P 1")
    assert board.repetitions() == 0
    _push_all(board, "9i8i 5a4a 8i9i 4a5a")
    assert board.repetitions() == 1
    _push_all(board, "P*5e 5a4a")
    assert board.repetitions() == 0


def test_taking_back_forgets_the_repetition() -> None:
    board = Board()
    outcomes = _push_all(board, "2h1h 8b9b 1h2h 9b8b " * 3)
    assert outcomes[-1] is not None
    board.pop()
    assert board.outcome() is None
    board.push_usi("9b8b")
    assert board.outcome() == outcomes[-1]
    for _ in range(12):
        board.pop()
    assert board.repetitions() == 0
