"""The batch of Shogi games: the contract, endings and rewards."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keisei import check_game, make_game
from keisei.errors import ContractError
from keisei.games import Game, Step
from keisei.games.shogi import BLACK, STARTING_SFEN, WHITE, Board, Color, Move, Termination
from keisei.games.shogi.game import ShogiGame

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
ROOKS_ALONE = "kr7/9/9/9/9/9/9/9/7RK b - 1"
ROOK_AND_GOLDS = "4k4/9/9/9/4R4/9/9/9/4K4 w 2G 1"
# Black has 28 points and may declare as soon as white has moved; white has 27 in the second.
BLACK_ENTERED = "+P+P+P+PK+P+P+P+P/+P+B7/9/9/9/9/9/9/4k4 w RB4P2g 1"
WHITE_ENTERED = "4K4/9/9/9/9/9/9/7+b+p/+p+p+p+pk+p+p+p+p b 2Grb3p 1"


class Line:
    """One game driven by moves in USI, with a board alongside."""

    def __init__(self, start: str = STARTING_SFEN, **options: Any) -> None:
        self.game = make_game("shogi", start=start, **options)
        self.board = Board(start)

    def play(self, moves: str) -> Step:
        """Gives the last step; no game may end before it."""
        texts = moves.split()
        for index, text in enumerate(texts):
            action = self.board.action(Move.from_usi(text))
            self.board.push_usi(text)
            step = self.game.step(np.array([action]))
            assert index == len(texts) - 1 or not step.done[0], f"over after {text} at ply {index + 1}"
        return step

    def ending(self, step: Step) -> str:
        return self.game.spec.endings[int(step.ending[0])]


# The contract.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"declaration": True, "max_plies": 150, "material": 0.5, "discount": 0.99},
        {"max_plies": 60, "limit": "draw", "draw": -0.5, "material": 1.0, "keep_material": True},
        {"max_plies": 1},
        {"max_plies": 7, "ply_cost": 0.01, "draw": -0.5},
        {"start": ROOKS_ALONE, "max_plies": 60},
        {"start": BLACK_ENTERED, "declaration": True},
    ],
    ids=["plain", "all options", "limit draws", "one ply", "short", "bare board", "over at once"],
)
def test_the_contract(options: dict[str, Any]) -> None:
    check_game("shogi", steps=100, **options)


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        ((*range(34, 54), 33), "observation.flat names plane 33, whose squares must then have one value"),
        ((34, 54), "observation.flat must name planes from 0 to 53, each once; got (34, 54)"),
        ((34, -1), "observation.flat must name planes from 0 to 53"),
        ((34, 34), "observation.flat must name planes from 0 to 53, each once"),
    ],
)
def test_a_false_claim_of_flat_planes_is_found(flat: tuple[int, ...], message: str) -> None:
    class Claims(ShogiGame):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.spec = replace(self.spec, observation=replace(self.spec.observation, flat=flat))

    with pytest.raises(ContractError, match=re.escape(message)):
        check_game(Claims, steps=1, max_plies=20)


def test_the_spec() -> None:
    spec = make_game("shogi").spec
    assert (spec.name, spec.seats, spec.num_actions, spec.packed_bytes) == ("shogi", 2, 2187, 64)
    assert spec.observation.shape == (54, 9, 9)
    assert spec.observation.dtype == np.uint8
    assert spec.max_plies == 512
    assert not spec.simultaneous
    assert spec.endings == (
        "unfinished", "no_legal_moves", "repetition", "perpetual_check", "declaration", "max_plies",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "zero_sum"),
    [
        ({}, True),
        ({"win": 3, "loss": -3, "material": 2, "discount": 0.9}, True),
        ({"loss": -2}, False),
        ({"draw": -0.1}, False),
        ({"ply_cost": 0.001}, False),
    ],
)
def test_what_is_zero_sum(options: dict[str, Any], zero_sum: bool) -> None:
    assert make_game("shogi", **options).spec.zero_sum is zero_sum


# Endings and the rewards that they pay.

REWARDS: dict[str, Any] = {"win": 2.0, "loss": -3.0, "draw": 0.5, "ply_cost": 0.25}


def assert_ended(line: Line, step: Step, ending: str, winner: Color | None) -> None:
    """A game that the rules ended: result, rewards of ``REWARDS``, restart and final row."""
    assert line.ending(step) == ending
    assert step.terminated[0]
    assert not step.truncated[0]
    scores = [0, 0] if winner is None else [1 if seat is winner else -1 for seat in Color]
    assert step.scores[0].tolist() == scores
    paid = {1: 2.0, -1: -3.0, 0: 0.5}
    assert step.rewards[0].tolist() == [paid[score] - 0.25 for score in scores]
    assert_restarted(line, step)


def assert_restarted(line: Line, step: Step) -> None:
    plies = len(line.board.move_stack)
    assert step.plies.tolist() == [plies]
    assert step.final.game.tolist() == [0]
    assert step.final.seat.tolist() == [line.board.turn]
    assert step.final.packed[0].tobytes() == line.board.pack()
    rows = line.game.rows()
    assert (rows.episode[0], rows.ply[0]) == (1, 0)
    fresh = make_game("shogi", start=line.game.options.start)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(line.game.pack(), fresh.pack())


@pytest.mark.parametrize(
    ("start", "move", "winner"),
    [
        (MATE_IN_ONE, "G*5b", BLACK),
        ("4k4/9/9/9/9/9/4p4/9/4K4 w g 1", "G*5h", WHITE),
        ("8k/6G2/9/7G1/9/9/9/9/4K4 b - 1", "2d2c", BLACK),  # not in check, and no move: lost too
    ],
)
def test_no_legal_move_loses(start: str, move: str, winner: Color) -> None:
    line = Line(start, **REWARDS)
    assert_ended(line, line.play(move), "no_legal_moves", winner)
    assert line.board.outcome() is not None


def test_fourfold_repetition_is_a_draw() -> None:
    line = Line(**REWARDS)
    step = line.play(3 * "2h1h 8b9b 1h2h 9b8b ")
    assert_ended(line, step, "repetition", None)


@pytest.mark.parametrize(
    ("start", "cycle", "winner"),
    [
        ("4k4/9/9/9/4R4/9/9/9/4K4 w - 1", "5a4a 5e4e 4a5a 4e5e ", WHITE),
        ("4k4/9/9/9/4r4/9/9/9/4K4 b - 1", "5i4i 5e4e 4i5i 4e5e ", BLACK),
    ],
)
def test_perpetual_check_loses(start: str, cycle: str, winner: Color) -> None:
    line = Line(start, **REWARDS)
    assert_ended(line, line.play(3 * cycle), "perpetual_check", winner)


def test_a_quiet_move_among_the_checks_makes_it_a_draw() -> None:
    line = Line("4k4/9/9/9/4R4/9/9/9/4K4 w - 1", **REWARDS)
    checks, quiet = "5a4a 5e4e 4a5a 4e5e ", "5a4a 5e6e 4a5a 6e5e "
    assert_ended(line, line.play(checks + quiet + checks), "repetition", None)


@pytest.mark.parametrize(
    ("start", "move", "winner"), [(BLACK_ENTERED, "5i4i", BLACK), (WHITE_ENTERED, "5a4a", WHITE)]
)
def test_declaration(start: str, move: str, winner: Color) -> None:
    line = Line(start, declaration=True, **REWARDS)
    assert_ended(line, line.play(move), "declaration", winner)


@pytest.mark.parametrize(
    "start",
    [
        BLACK_ENTERED.replace("RB4P", "RB3P"),
        WHITE_ENTERED.replace("rb3p", "rb2p"),
        BLACK_ENTERED.replace("/+P+B7", "/1+B7"),
    ],
)
def test_a_point_or_a_piece_short_of_a_declaration(start: str) -> None:
    line = Line(start, declaration=True)
    step = line.play("5i4i" if line.board.turn is WHITE else "5a4a")
    assert line.ending(step) == "unfinished"


def test_without_the_option_nobody_declares() -> None:
    line = Line(BLACK_ENTERED)
    step = line.play("5i4i")
    assert line.board.can_declare_win()
    assert line.ending(step) == "unfinished"


def test_the_limit_of_plies_truncates() -> None:
    line = Line(max_plies=3, **REWARDS)
    step = line.play("7g7f 3c3d 2g2f")
    assert line.ending(step) == "max_plies"
    assert step.truncated[0]
    assert not step.terminated[0]
    assert step.scores.tolist() == [[0, 0]]
    assert step.rewards.tolist() == [[-0.25, -0.25]]
    assert_restarted(line, step)
    _, legal = line.game.unpack(step.final.packed)
    assert legal.sum() == len(line.board.legal_moves)


def test_an_end_by_the_rules_on_the_last_ply_is_no_truncation() -> None:
    mated = Line(MATE_IN_ONE, max_plies=1, **REWARDS)
    assert_ended(mated, mated.play("G*5b"), "no_legal_moves", BLACK)
    drawn = Line(max_plies=12, **REWARDS)
    assert_ended(drawn, drawn.play(3 * "2h1h 8b9b 1h2h 9b8b "), "repetition", None)
    declared = Line(BLACK_ENTERED, max_plies=1, declaration=True, **REWARDS)
    assert_ended(declared, declared.play("5i4i"), "declaration", BLACK)


def test_a_start_in_the_middle_of_a_game_counts_plies_from_0() -> None:
    line = Line(STARTING_SFEN.replace(" 1", " 99"), max_plies=2)
    assert line.game.rows().ply.tolist() == [0]
    assert line.play("7g7f 3c3d").truncated[0]


# A whole batch against boards.

VALUES = dict(zip(range(1, 15), [1, 3, 4, 5, 8, 10, 6, 0, 7, 6, 6, 6, 10, 12], strict=True))


def potential(board: Board) -> float:
    """Black's material less white's, as a part of a whole set of 126."""
    setup = board.setup
    total = sum((1 if code < 16 else -1) * VALUES[code % 16] for code in setup.board if code)
    total += sum(VALUES[kind + 1] * (setup.hands[kind] - setup.hands[7 + kind]) for kind in range(7))
    return total / 126


def way_back(board: Board) -> Move | None:
    """The move that takes a side's last one back, where it is legal."""
    stack = board.move_stack
    if len(stack) < 2 or "*" in stack[-2].usi():
        return None
    text = stack[-2].usi()
    move = Move.from_usi(text[2:4] + text[:2])
    return move if move in board.legal_moves else None


def batch_with_boards(
    game: Game, start: str, steps: int
) -> Iterator[tuple[Step, list[tuple[Board, float, float]]]]:
    """Random play that comes back often. Gives each step, and for each game its board after the move with the
    potentials before and after."""
    rng = random.Random(1)
    boards = [Board(start) for _ in range(game.batch)]
    for _ in range(steps):
        actions, told = game.random_actions(), []
        for row, board in enumerate(boards):
            before, back = potential(board), way_back(board)
            if back is not None and rng.random() < 0.7:
                actions[row] = board.action(back)
            board.push(board.move_from_action(int(actions[row])))
            told.append((board, before, potential(board)))
        step = game.step(actions)
        yield step, told
        for row in np.flatnonzero(step.done).tolist():
            boards[row] = Board(start)


def expected_end(board: Board, max_plies: int) -> tuple[str, Color | None]:
    outcome = board.outcome()
    if outcome is not None:
        return outcome.termination.value, outcome.winner
    if len(board.move_stack) == max_plies:
        return Termination.MAX_PLIES.value, None
    return "unfinished", None


def assert_paid(step: Step, row: int, over: bool, winner: Color | None, shaping: float) -> None:
    """The rewards of one game, by the options of the test below."""
    for seat in Color:
        score = 0 if winner is None else 1 if winner is seat else -1
        base = {1: 1.5, -1: -1.0, 0: 0.25 if over else 0.0}[score]
        reward = base - 0.01 + (shaping if seat is BLACK else -shaping)
        assert step.scores[row, seat] == score
        assert step.rewards[row, seat] == pytest.approx(reward, abs=1e-5)


@pytest.mark.parametrize(
    ("start", "ends"),
    [
        (STARTING_SFEN, {"repetition", "max_plies"}),
        (ROOKS_ALONE, {"repetition", "max_plies"}),
        (ROOK_AND_GOLDS, {"repetition", "no_legal_moves"}),
    ],
)
def test_every_step_of_a_batch_is_what_boards_say(start: str, ends: set[str]) -> None:
    options: dict[str, Any] = {
        "win": 1.5,
        "loss": -1.0,
        "draw": 0.25,
        "ply_cost": 0.01,
        "material": 2.0,
        "discount": 0.9,
    }
    game = make_game("shogi", batch=6, seed=11, start=start, max_plies=70, **options)
    seen: set[str] = set()
    for step, told in batch_with_boards(game, start, 150):
        finals = iter(zip(step.final.game, step.final.seat, step.final.packed, strict=True))
        for row, (board, before, after) in enumerate(told):
            ending, winner = expected_end(board, 70)
            seen.add(ending)
            over = ending not in ("unfinished", "max_plies")
            assert game.spec.endings[step.ending[row]] == ending
            assert (step.terminated[row], step.truncated[row]) == (over, ending == "max_plies")
            assert step.plies[row] == len(board.move_stack)
            assert_paid(step, row, over, winner, shaping=2.0 * ((0.0 if over else 0.9 * after) - before))
            if ending != "unfinished":
                final_game, seat, packed = next(finals)
                assert (final_game, seat) == (row, board.turn)
                assert packed.tobytes() == board.pack()
        assert next(finals, None) is None
    assert ends <= seen  # or the test would show less than it should


@pytest.mark.parametrize("start", [STARTING_SFEN, ROOK_AND_GOLDS])
def test_material_adds_up_to_nothing_but_the_potential(start: str) -> None:
    """With a discount of 1, the rewards for material of a game telescope."""
    game = make_game("shogi", batch=6, seed=2, start=start, max_plies=80, material=0.7)
    assert game.spec.zero_sum
    sums, first = np.zeros((6, 2)), potential(Board(start))
    finished = 0
    for step, told in batch_with_boards(game, start, 300):
        assert np.abs(step.rewards.sum(axis=1)).max() < 1e-6
        sums += step.rewards
        for row in np.flatnonzero(step.done).tolist():
            last = told[row][2] if step.truncated[row] else 0.0
            expected = step.scores[row, 0] + 0.7 * (last - first)
            assert sums[row].tolist() == pytest.approx([expected, -expected], abs=1e-4)
            sums[row] = 0
            finished += 1
    assert finished >= 10


def test_material_that_is_kept_is_not_taken_back() -> None:
    """What a finished game has paid for material is its last potential less the first."""
    game = make_game("shogi", batch=6, seed=2, max_plies=400, material=0.7, keep_material=True)
    assert game.spec.zero_sum
    sums, mates = np.zeros((6, 2)), 0
    for step, told in batch_with_boards(game, STARTING_SFEN, 700):
        sums += step.rewards
        for row in np.flatnonzero(step.done).tolist():
            expected = step.scores[row, 0] + 0.7 * told[row][2]
            assert sums[row].tolist() == pytest.approx([expected, -expected], abs=1e-4)
            sums[row] = 0
            mates += bool(step.terminated[row])
    assert mates >= 3


def test_the_limit_can_be_a_draw() -> None:
    """By rule, and with its reward; with the default it is a cut, which pays nothing."""
    drawing = make_game("shogi", batch=3, seed=1, max_plies=20, limit="draw", draw=-0.5)
    cutting = make_game("shogi", batch=3, seed=1, max_plies=20, draw=-0.5)
    for _ in range(20):
        actions = drawing.random_actions()
        drawn, cut = drawing.step(actions), cutting.step(actions)
    name = drawing.spec.endings[drawn.ending[0]]
    assert (name, drawn.terminated.all(), drawn.truncated.any()) == ("max_plies", True, False)
    assert (drawn.rewards == -0.5).all()
    assert (drawn.scores == 0).all()
    assert (cut.terminated.any(), cut.truncated.all()) == (False, True)
    assert (cut.rewards == 0).all()
    np.testing.assert_array_equal(drawn.final.packed, cut.final.packed)
