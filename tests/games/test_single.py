"""``SingleGame`` and ``batched``: what the batch makes of a class of a few lines."""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from keisei.errors import (
    ActionError,
    ConfigError,
    ContractError,
    GameError,
    IllegalActionError,
    SavedStateError,
)
from keisei.games import ObservationSpec, Outcome, SingleGame, batched, check_game, make_game
from keisei.games.contract import Array, Game
from keisei.games.randomness import KeyedRandom, Stream, keyed_word
from keisei.games.tictactoe import TicTacToe

BYTE = np.dtype(np.uint8)


class Dice(SingleGame):
    """Each seat in turn rolls a die and is paid what it shows; the other pays. Ends after 4 rolls."""

    name = "dice"
    num_actions = 2
    observation = ObservationSpec((2,), np.dtype(np.float32))
    zero_sum = True
    scored_by_rewards = True

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move, self.rolls, self.last = 0, 0, rng.uniform()

    def legal(self, seat: int) -> Array:
        return np.array([True, self.rolls % 2 == 0])

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        face = float(1 + rng.integer(6)) if action == 0 else 0.0
        rewards = [face, -face] if self.to_move == 0 else [-face, face]
        self.last, self.rolls, self.to_move = face, self.rolls + 1, 1 - self.to_move
        return rewards

    def observe(self, seat: int) -> Array:
        return np.array([self.last, self.rolls], np.float32)

    def outcome(self) -> Outcome | None:
        return Outcome() if self.rolls == 4 else None


class Elimination(SingleGame):
    """Three seats act at once; who picks 1 is out. The last one in wins, or nobody does."""

    name = "elimination"
    seats = 3
    num_actions = 2
    observation = ObservationSpec((3,), BYTE)
    simultaneous = True
    endings = ("winner", "nobody")
    max_plies = 6

    def reset(self, rng: KeyedRandom) -> None:
        self.alive = [True] * 3

    def acting(self) -> list[int]:
        return [seat for seat in range(3) if self.alive[seat]]

    def legal(self, seat: int) -> list[int]:
        return [0, 1]

    def play(self, action: tuple[int, ...], rng: KeyedRandom) -> None:
        for seat, choice in zip(self.acting(), action, strict=True):
            self.alive[seat] = choice == 0

    def observe(self, seat: int) -> Array:
        return np.array(self.alive[seat:] + self.alive[:seat], np.uint8)

    def outcome(self) -> Outcome | None:
        if sum(self.alive) > 1:
            return None
        return Outcome.win(self.acting()[0], "winner") if any(self.alive) else Outcome.draw("nobody")


class Walk(SingleGame):
    """Seat 0 walks left or right for ever; saved by snapshot."""

    name = "walk"
    seats = 1
    num_actions = 2
    observation = ObservationSpec((), np.dtype(np.int32))

    def __init__(self, home: int = 0) -> None:
        self.home = home

    def reset(self, rng: KeyedRandom) -> None:
        self.place = self.home

    def legal(self, seat: int) -> range:
        return range(2)

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        self.place += 1 if action else -1
        return [float(self.place)]

    def observe(self, seat: int) -> Array:
        return np.array(self.place, np.int32)

    def outcome(self) -> None:
        return None

    def snapshot(self) -> bytes:
        return struct.pack("<i", self.place)

    def restore(self, state: bytes) -> None:
        (self.place,) = struct.unpack("<i", state)


def play(game: Game, actions: Sequence[int]) -> None:
    for action in actions:
        game.step(np.array([action]))


@pytest.mark.parametrize("single", [Dice, Elimination])
def test_games_of_every_kind_keep_the_contract(single: type[SingleGame]) -> None:
    check_game(single, steps=60)


def test_a_game_with_snapshots_keeps_the_contract() -> None:
    check_game(Walk, steps=60, max_plies=9)


def test_a_win_pays_the_winner_and_leaves_the_final_position_of_the_loser() -> None:
    game = make_game("tictactoe", batch=2)
    for squares in ((0, 0), (3, 1), (1, 2), (4, 3)):
        assert not game.step(np.array(squares)).done.any()
    step = game.step(np.array([2, 4]))
    assert step.rewards.tolist() == [[1, -1], [0, 0]]
    assert step.scores.tolist() == [[1, -1], [0, 0]]
    assert step.terminated.tolist() == [True, False]
    assert game.spec.endings[step.ending[0]] == "three in a row"
    assert step.plies.tolist() == [5, 5]
    assert (step.final.game.tolist(), step.final.seat.tolist()) == ([0], [1])
    observations, legal = game.unpack(step.final.packed)
    assert observations[0, 1].tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert not legal.any()
    assert game.rows().episode.tolist() == [1, 0]
    assert game.rows().ply.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("outcome", "seats", "scores"),
    [
        (Outcome.win(1), 2, (-1, 1)),
        (Outcome.win(0), 3, (1, -0.5, -0.5)),
        (Outcome.win(2), 3, (-0.5, -0.5, 1)),
        (Outcome.win(1), 5, (-0.25, 1, -0.25, -0.25, -0.25)),
        (Outcome.win(0), 1, (1,)),
        (Outcome.draw(), 3, (0, 0, 0)),
        (Outcome.draw(), 1, (0,)),
        (Outcome((3.0, 1.0)), 3, (3, 1)),
        (Outcome(), 3, ()),
    ],
)
def test_a_win_and_a_draw_fit_any_number_of_seats(
    outcome: Outcome, seats: int, scores: tuple[float, ...]
) -> None:
    assert outcome.for_seats(seats).scores == scores


def test_a_win_in_a_game_of_three_pays_three() -> None:
    game = make_game(Elimination)
    step = game.step(np.array([1, 1, 0]))
    assert step.scores.tolist() == step.rewards.tolist() == [[-0.5, -0.5, 1]]
    assert game.step(np.array([1, 1, 1])).scores.tolist() == [[0, 0, 0]]


def test_a_win_of_a_seat_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ContractError, match="names seat 3, but the seats are 0 … 2"):
        Outcome.win(3).for_seats(3)
    with pytest.raises(
        ContractError, match=r"names seat -1; the first seat is 0\. Outcome\.draw has no winner"
    ):
        Outcome.win(-1)


def test_truncation_scores_nothing_and_leaves_moves_in_the_final_position() -> None:
    game = make_game("connect-four", max_plies=3)
    play(game, [0, 1])
    step = game.step(np.array([0]))
    assert step.truncated.tolist() == [True]
    assert not step.terminated.any()
    assert game.spec.endings[step.ending[0]] == "truncated"
    assert step.scores.tolist() == [[0, 0]]
    assert game.unpack(step.final.packed)[1].all()


def test_the_rules_come_before_the_limit() -> None:
    game = make_game("tictactoe", max_plies=5)
    play(game, [0, 3, 1, 4])
    step = game.step(np.array([2]))
    assert step.terminated.tolist() == [True]
    assert not step.truncated.any()


def test_scores_are_the_sum_of_rewards_where_a_game_has_no_winner() -> None:
    game = make_game(Dice, batch=3, seed=5)
    total = np.zeros((3, 2))
    for _ in range(3):
        total += game.step(np.zeros(3, int)).rewards
    step = game.step(np.zeros(3, int))
    assert np.array_equal(step.scores, total + step.rewards)
    assert np.abs(step.scores).max() > 0


def test_truncated_games_without_winners_score_what_they_earned() -> None:
    game = make_game(Walk, max_plies=3, home=10)
    play(game, [1, 1])
    step = game.step(np.array([1]))
    assert step.truncated[0]
    assert step.scores.tolist() == [[0]]  # Walk has not said that its score is its rewards

    class Paid(Walk):
        scored_by_rewards = True

    game = make_game(Paid, max_plies=3, home=10)
    play(game, [1, 1])
    assert game.step(np.array([1])).scores.tolist() == [[11 + 12 + 13]]


def test_rows_follow_the_seats_that_act() -> None:
    game = make_game(Elimination, batch=2)
    assert game.rows().seat.tolist() == [0, 1, 2, 0, 1, 2]
    game.step(np.array([0, 1, 0, 0, 0, 0]))
    rows = game.rows()
    assert (rows.game.tolist(), rows.seat.tolist()) == ([0, 0, 1, 1, 1], [0, 2, 0, 1, 2])
    step = game.step(np.array([1, 0, 1, 1, 1]))
    assert step.rewards.tolist() == [[-0.5, -0.5, 1], [0, 0, 0]]
    assert [game.spec.endings[code] for code in step.ending] == ["winner", "nobody"]
    assert step.final.seat.tolist() == [2, 0, 1, 2]  # nobody would act in game 1, so all see its end


def test_random_actions_follow_the_published_recipe() -> None:
    game = make_game("tictactoe", batch=4, seed=11, first_game=20)
    for _ in range(6):
        rows, legal = game.rows(), game.legal()
        for row, action in enumerate(game.random_actions()):
            key = (11, 20 + int(rows.game[row]), int(rows.episode[row]), int(rows.ply[row]))
            word = keyed_word(*key, Stream.RANDOM_ACTION, int(rows.seat[row]))
            choices = np.flatnonzero(legal[row])
            assert action == choices[((word >> 32) * len(choices)) >> 32]
        game.step(game.random_actions())


def test_random_actions_are_even() -> None:
    counts = np.bincount(make_game("tictactoe", batch=9000).random_actions(), minlength=9)
    assert np.abs(counts - 1000).max() < 160  # five standard deviations


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0], ActionError, "one action for each of the 2 decision rows"),
        ([0.0, 1.0], ActionError, "integers"),
        ([0, 9], ActionError, "action 9 in row 1 is outside 0 … 8"),
        ([1, 0], IllegalActionError, r"action 0 in row 1 \(game 1, seat 1\) is not legal in tictactoe"),
    ],
)
def test_wrong_actions_are_refused_and_change_nothing(
    actions: list[float], error: type[ActionError], message: str
) -> None:
    game = make_game("tictactoe", batch=2)
    game.step(np.array([0, 0]))
    state = game.save()
    with pytest.raises(error, match=message):
        game.step(np.array(actions))
    assert game.save() == state


def test_out_must_fit() -> None:
    game = make_game("tictactoe", batch=2)
    with pytest.raises(GameError, match=r"uint8 of shape \(2, 2, 3, 3\)"):
        game.observe(out=np.zeros((2, 2, 3, 3), np.float32))
    with pytest.raises(GameError, match=r"packed rows of tictactoe are uint8 of shape \(rows, 20\)"):
        game.unpack(np.zeros((2, 19), np.uint8))


def test_a_saved_state_carries_seed_and_numbers() -> None:
    game = make_game(Dice, batch=2, seed=3, first_game=8)
    game.step(game.random_actions())
    other = make_game(Dice, batch=2, seed=99)
    other.load(game.save())
    for _ in range(6):
        assert np.array_equal(game.random_actions(), other.random_actions())
        assert np.array_equal(
            game.step(game.random_actions()).rewards, other.step(other.random_actions()).rewards
        )


def test_a_saved_state_is_compact() -> None:
    game = make_game("connect-four", batch=100)
    for _ in range(6):
        game.step(game.random_actions())
    assert len(game.save()) < 100 * 20 + 64


def test_foreign_states_are_refused() -> None:
    game = make_game("tictactoe")
    for other in (make_game("connect-four"), make_game("tictactoe", max_plies=3)):
        with pytest.raises(SavedStateError, match="another game"):
            game.load(other.save())
    with pytest.raises(SavedStateError, match="is bytes, got str"):
        game.load("text")  # type: ignore[arg-type]
    with pytest.raises(SavedStateError, match="not a saved state"):
        game.load(b"x" * 100)


@pytest.mark.parametrize(
    ("ply", "actions", "message"),
    [
        (2, [0, 0], "a move that tictactoe does not allow"),
        (1, [200], "a move that tictactoe does not allow"),
        (3, [0, 1], "a move that tictactoe does not allow"),
        (1, [0, 1], "1 moves too many"),
        (6, [0, 3, 1, 4, 2, 5], "after a game of tictactoe has ended"),
    ],
)
def test_forged_histories_are_refused(ply: int, actions: list[int], message: str) -> None:
    """A checksum keeps accidents out; the rules keep forgeries out."""
    game = make_game("tictactoe")
    head = game.save()[:26]
    body = struct.pack("<QQI", 0, 0, 1) + struct.pack("<IIBI", 0, ply, 0, len(actions)) + bytes(actions)
    blob = head + body
    with pytest.raises(SavedStateError, match=message):
        game.load(blob + struct.pack("<I", zlib.crc32(blob)))


def test_a_factory_travels_to_other_processes() -> None:
    factory = pickle.loads(pickle.dumps(batched(TicTacToe)))  # noqa: S301
    assert factory(batch=3).spec.name == "tictactoe"


def test_batched_takes_only_single_games() -> None:
    with pytest.raises(ConfigError, match="subclass of SingleGame"):
        batched(dict)  # type: ignore[arg-type]


def test_text_shows_one_game() -> None:
    game = batched(TicTacToe)(batch=2)
    game.step(np.array([0, 4]))
    assert game.text(1) == ". . .\n. X .\n. . ."


class Wrong(TicTacToe):
    """A base for classes with one mistake each."""


def mistake(**members: object) -> type[SingleGame]:
    return type("Mistake", (Wrong,), members)


@pytest.mark.parametrize(
    ("single", "message"),
    [
        (mistake(legal=lambda self, seat: []), "gives seat 0 no legal action"),
        (mistake(legal=lambda self, seat: [-1]), "must lie in 0 … 8"),
        (mistake(legal=lambda self, seat: [9]), "must lie in 0 … 8"),
        (mistake(legal=lambda self, seat: np.ones(3, bool)), r"must have shape \(9,\)"),
        (mistake(acting=lambda self: ()), "no seat acts"),
        (mistake(acting=lambda self: (0, 1)), "set simultaneous = True"),
        (mistake(observation="planes"), "must be an ObservationSpec"),
    ],
)
def test_mistakes_in_a_class_are_named_when_a_batch_is_made(single: type[SingleGame], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        make_game(single)


@pytest.mark.parametrize(
    ("single", "message"),
    [
        (mistake(play=lambda self, action, rng: [1.0]), "one number for each of the 2 seats"),
        (mistake(outcome=lambda self: Outcome((0.0,))), "one number for each of the 2 seats"),
        (mistake(outcome=lambda self: Outcome.draw("boredom")), "'boredom', which is not in its endings"),
        (mistake(observe=lambda self, seat: np.zeros(3, np.uint8)), r"must give uint8 of shape \(2, 3, 3\)"),
        (mistake(observe=lambda self, seat: np.zeros((2, 3, 3))), "got float64"),
    ],
)
def test_mistakes_in_a_class_are_named_when_it_is_played(single: type[SingleGame], message: str) -> None:
    game = make_game(single)

    def play_and_look() -> None:
        game.step(game.random_actions())
        game.observe()

    with pytest.raises(ContractError, match=message):
        play_and_look()


def test_a_class_without_a_name_is_told_so() -> None:
    class Nameless(Walk):
        pass

    del Walk.name
    try:
        with pytest.raises(ContractError, match="Nameless must set the attribute 'name'"):
            make_game(Nameless)
    finally:
        Walk.name = "walk"
