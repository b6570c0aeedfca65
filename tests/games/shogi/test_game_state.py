"""The batch of Shogi games: randomness, threads, saving and bad input."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from keisei import make_game
from keisei.errors import ActionError, ConfigError, GameError, IllegalActionError, SavedStateError
from keisei.games import Game
from keisei.games.randomness import Stream, keyed_word
from keisei.games.shogi import Board, Move
from keisei.games.shogi.game import ShogiGame

# Randomness.


def test_random_actions_are_the_documented_function_of_the_key() -> None:
    seed, first_game = 123456789, 1000
    game = make_game("shogi", batch=3, seed=seed, first_game=first_game, max_plies=25)
    for _ in range(80):
        rows, packed, actions = game.rows(), game.pack(), game.random_actions()
        for row in range(3):
            board = Board.from_packed(packed[row].tobytes())
            legal = [board.action(move) for move in board.legal_moves]
            key = keyed_word(seed, first_game + row, int(rows.episode[row]))
            word = keyed_word(key, int(rows.ply[row]), Stream.RANDOM_ACTION)
            assert actions[row] == legal[(word >> 32) * len(legal) >> 32]
        game.step(actions)
    assert rows.episode.min() >= 3


def test_random_actions_are_uniform() -> None:
    game = make_game("shogi", batch=9000, seed=5)
    counts = np.bincount(game.random_actions(), minlength=2187)[game.legal()[0]]
    assert counts.size == 30
    assert counts.sum() == 9000
    # Chi-squared with 29 degrees of freedom exceeds 58.3 once in a thousand seeds.
    assert ((counts - 300) ** 2 / 300).sum() < 58.3


def test_a_game_does_not_know_which_batch_it_sits_in() -> None:
    together = make_game("shogi", batch=8, seed=4, first_game=3, max_plies=60)
    alone = make_game("shogi", batch=1, seed=4, first_game=7, max_plies=60)
    other = make_game("shogi", batch=1, seed=4, first_game=8, max_plies=60)
    differs = False
    for _ in range(130):
        np.testing.assert_array_equal(alone.pack()[0], together.pack()[4])
        differs |= not np.array_equal(alone.pack(), other.pack())
        step = together.step(together.random_actions())
        mine = alone.step(alone.random_actions())
        other.step(other.random_actions())
        assert mine.rewards[0].tolist() == step.rewards[4].tolist()
        assert mine.ending[0] == step.ending[4]
    assert differs


def _play(game: Game, steps: int) -> tuple[bytes, NDArray[np.float32]]:
    total = np.zeros((game.batch, 2), np.float32)
    for _ in range(steps):
        game.observe()
        game.legal()
        total += game.step(game.random_actions()).rewards
    return game.save(), total


def test_two_threads_step_two_batches_as_one_after_the_other() -> None:
    def build(seed: int) -> Game:
        return make_game("shogi", batch=64, seed=seed, material=1.0)

    one_after_the_other = [_play(build(seed), 150) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(lambda seed: _play(build(seed), 150), (1, 2)))
    for (state, total), (other_state, other_total) in zip(one_after_the_other, at_once, strict=True):
        assert state == other_state
        np.testing.assert_array_equal(total, other_total)


# Saving.


def played(steps: int, **options: Any) -> ShogiGame:
    game = make_game("shogi", **{"batch": 5, "seed": 9, "max_plies": 70, **options})
    assert isinstance(game, ShogiGame)
    for _ in range(steps):
        game.step(game.random_actions())
    return game


def test_a_saved_state_goes_on_bit_for_bit_with_its_own_seed() -> None:
    game = played(100, material=0.5)
    other = played(33, material=0.5, seed=10, first_game=70)
    other.load(game.save())
    for _ in range(100):
        np.testing.assert_array_equal(game.observe(), other.observe())
        np.testing.assert_array_equal(game.random_actions(), other.random_actions())
        mine, yours = (batch.step(batch.random_actions()) for batch in (game, other))
        np.testing.assert_array_equal(mine.rewards, yours.rewards)
        np.testing.assert_array_equal(mine.final.packed, yours.final.packed)
    assert game.save() == other.save()


def test_a_saved_state_remembers_repetitions() -> None:
    game, other, board = make_game("shogi"), make_game("shogi"), Board()
    for text in 3 * ["2h1h", "8b9b", "1h2h", "9b8b"]:
        other.load(game.save())
        action = np.array([board.action(Move.from_usi(text))])
        board.push_usi(text)
        mine, yours = game.step(action), other.step(action)
        assert mine.ending[0] == yours.ending[0]
    assert other.spec.endings[yours.ending[0]] == "repetition"


@pytest.mark.parametrize("steps", [0, 1, 69, 100])
def test_the_size_of_a_saved_state(steps: int) -> None:
    game = played(steps)
    assert len(game.save()) == 50 + 8 * 5 + 2 * int(game.rows().ply.sum())


def assert_refused(game: ShogiGame, blob: bytes, message: str) -> None:
    before, planes = game.save(), game.observe()
    with pytest.raises(SavedStateError, match=message):
        game.load(blob)
    assert game.save() == before
    np.testing.assert_array_equal(game.observe(), planes)


def test_states_of_other_games_are_refused() -> None:
    game = played(20)
    assert_refused(game, played(20, max_plies=71).save(), "with other options")
    assert_refused(game, make_game("connect-four", batch=5).save(), "made by another game")
    assert_refused(game, played(20, batch=6).save(), "does not fit a batch of 5 Shogi games")
    assert_refused(game, b"", "at least")
    assert_refused(game, "text", "a saved state is bytes, got str")  # type: ignore[arg-type]


def test_damage_behind_a_good_checksum_is_found_by_the_rules() -> None:
    """The envelope's checksum finds accidents; the core itself trusts no byte either."""
    game = played(40)
    native = game._core
    body, planes = native.save(), game.observe()
    rng = random.Random(0)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        cut = bytes(damaged[: rng.randrange(len(damaged))]) if rng.random() < 0.2 else bytes(damaged)
        if native.load(cut):
            assert native.save() == cut  # another state, just as possible
            assert native.load(body)
        else:
            refused += 1
            assert native.save() == body
    assert refused > 1000
    np.testing.assert_array_equal(game.observe(), planes)


@pytest.mark.parametrize("size", [0, 1, 19, 20, 27, 1000])
def test_random_bytes_are_no_state(size: int) -> None:
    native = played(3)._core
    before = native.save()
    rng = random.Random(size)
    for _ in range(50):
        assert not native.load(rng.randbytes(size))
        assert not native.load(before[:20] + rng.randbytes(size) + b"\xff")
    assert native.save() == before


# Bad input.


def assert_step_refused(game: Game, actions: object, error: type[ActionError], message: str) -> None:
    before = game.save()
    with pytest.raises(error, match=message):
        game.step(actions)  # type: ignore[arg-type]
    assert game.save() == before


def test_an_illegal_action_is_named_with_its_row_and_position() -> None:
    game = played(7)
    actions = game.random_actions()
    actions[3] = np.flatnonzero(~game.legal()[3])[100]
    sfen = Board.from_packed(game.pack()[3].tobytes()).sfen()
    with pytest.raises(IllegalActionError) as caught:
        game.step(actions)
    assert str(caught.value) == (
        f"action {actions[3]} in row 3 is not legal in {sfen!r}; take one that legal() marks"
    )


def test_every_illegal_action_is_refused() -> None:
    game = make_game("shogi", batch=2)
    legal = game.legal()[0]
    good = int(np.flatnonzero(legal)[0])
    before = game.save()
    for action in np.flatnonzero(~legal):
        with pytest.raises(IllegalActionError, match=rf"action {action} in row 1 "):
            game.step(np.array([good, action]))
    assert game.save() == before


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([59], r"one action for each of the 2 decision rows.*got shape \(1,\)"),
        ([[59], [59]], r"got shape \(2, 1\)"),
        (59, r"got shape \(\)"),
        ([59.0, 59.0], "must be integers, got float64"),
        ([True, True], "must be integers, got bool"),
        (["59", "59"], "must be integers"),
        ([59, -1], "action -1 in row 1 is outside 0 … 2186"),
        ([2187, 59], "action 2187 in row 0 is outside"),
        ([59, 59 + 2**16], "action 65595 in row 1 is outside"),
        ([59, 59 + 2**32], "action 4294967355 in row 1 is outside"),
    ],
)
def test_wrong_arrays_of_actions(actions: object, message: str) -> None:
    assert_step_refused(make_game("shogi", batch=2), actions, ActionError, message)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64])
def test_any_integers_will_do(dtype: type[np.integer]) -> None:
    game = make_game("shogi", batch=2)
    assert game.step(np.array([59, 59], dtype)).plies.tolist() == [1, 1]


@pytest.mark.parametrize("method", ["observe", "legal", "pack"])
def test_out_must_fit(method: str) -> None:
    game = make_game("shogi", batch=2)
    right = getattr(game, method)()
    for wrong in (right[:1], right.astype(np.int16), np.empty((*right.shape, 2), right.dtype)[..., 0], [1]):
        with pytest.raises(GameError, match=f"{method} writes contiguous"):
            getattr(game, method)(wrong)


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            {"max_plies": 0, "win": "much", "discount": 1.5, "declarations": True},
            [
                "4 problems in the options of shogi",
                "max_plies = 0: must be a whole number from 1 to 4096",
                "win = 'much': must be a number",
                "discount = 1.5: must be a number above 0 and at most 1",
                "declarations: unknown setting; did you mean declaration?",
            ],
        ),
        (
            {"max_plies": 10.5, "start": "8/9 b - 1"},
            ["2 problems", "max_plies = 10.5", "start = '8/9 b - 1'"],
        ),
        ({"win": float("nan"), "loss": -1e300}, ["2 problems", "win = nan", "loss = -1e+300"]),
        ({"material": -1, "ply_cost": -0.1}, ["material = -1", "ply_cost = -0.1", "from 0 to 1000000"]),
        ({"start": 7, "declaration": "perhaps"}, ["start = 7: must be a text", "declaration = 'perhaps'"]),
        ({"start": "4k4/9/9/9/9/9/4P4/4P4/4K4 b - 1"}, ["start = '4k4/", "nifu"]),
        ({"start": "8k/6G2/7G1/9/9/9/9/9/4K4 w - 1"}, ["no game can start here", "no legal move"]),
        (
            {"start": "+P+P+P+PK+P+P+P+P/+P+B7/9/9/9/9/9/9/4k4 b RB4P2g 1", "declaration": True},
            ["no game with declaration can start from", "may declare a win"],
        ),
    ],
)
def test_wrong_options_are_all_told_at_once(options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_game("shogi", **options)
    for message in messages:
        assert message in str(caught.value)


def import_core(build: str) -> subprocess.CompletedProcess[str]:
    code = "from keisei.native import core\nimport sys\nsys.stdout.write(core.INSTRUCTION_SET)"
    environment = {**os.environ, "KEISEI_NATIVE": build}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_chooses_a_build_of_the_core() -> None:
    assert import_core("baseline").stdout == "baseline"
    refused = import_core("sse9")
    assert refused.returncode != 0
    message = "ConfigError: KEISEI_NATIVE names no build: 'sse9'; the builds are avx2, baseline"
    assert message in refused.stderr
