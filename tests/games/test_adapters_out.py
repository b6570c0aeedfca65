"""Keisei's games as Gymnasium and PettingZoo environments, by those libraries' own tests."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from keisei.errors import ActionError, ConfigError, IllegalActionError
from keisei.games import make_game
from keisei.games.adapters.to_gymnasium import to_gymnasium, to_gymnasium_vector
from keisei.games.adapters.to_pettingzoo import to_pettingzoo, to_pettingzoo_parallel
from keisei.games.contract import Array, BoolArray

with warnings.catch_warnings():
    # PettingZoo's tests import one of its own games in a way that it has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, seed_test

# What PettingZoo's tests say of every game with a mask in a dict that is not on their own list.
QUIET = [
    "ignore:Observation space for each agent probably should be",
    "ignore:Observation is not a NumPy array",
    "ignore:Observation numpy array is all zeros",
    "ignore:Action mask numpy array is all zeros",
]


def quiet(test: Any) -> Any:
    for message in QUIET:
        test = pytest.mark.filterwarnings(message)(test)
    return test


@pytest.fixture
def duel(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A simultaneous game with chance."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    yield "own_game:PrizeDuel"
    sys.modules.pop("own_game", None)


def first_legal(observations: Array, legal: BoolArray) -> Array:
    return legal.argmax(axis=1)


@quiet
@pytest.mark.parametrize("name", ["tictactoe", "connect-four", "ludo"])
def test_turn_based_games_pass_pettingzoos_tests(name: str) -> None:
    api_test(to_pettingzoo(name), num_cycles=60)
    seed_test(lambda: to_pettingzoo(name), num_cycles=60)


@quiet
def test_a_simultaneous_game_passes_pettingzoos_tests(duel: str) -> None:
    api_test(to_pettingzoo(duel), num_cycles=60)
    seed_test(lambda: to_pettingzoo(duel), num_cycles=60)
    parallel_api_test(to_pettingzoo_parallel(duel), num_cycles=60)


def test_max_cycles_counts_the_turns_of_each_agent(duel: str) -> None:
    module = SimpleNamespace(
        env=lambda max_cycles: to_pettingzoo(duel, max_cycles=max_cycles),
        parallel_env=lambda max_cycles: to_pettingzoo_parallel(duel, max_cycles=max_cycles),
    )
    max_cycles_test(module)


def test_max_cycles_truncates_a_turn_based_game() -> None:
    env = to_pettingzoo("connect-four", max_cycles=2)
    env.reset(seed=1)
    for column in (0, 1, 2, 3):
        env.step(column)
    assert env.truncations == {"player_0": True, "player_1": True}
    assert not any(env.terminations.values())


def test_an_aec_game_pays_both_agents_at_the_end() -> None:
    env = to_pettingzoo("tictactoe")
    env.reset()
    for square in (0, 3, 1, 4, 2):
        assert env.observe(env.agent_selection)["action_mask"][square] == 1
        env.step(square)
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    seen = env.observe("player_1")
    assert seen["observation"][1].tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert not seen["action_mask"].any()
    assert env.render().count("X") == 0  # the table is set for the next game


def test_an_aec_game_refuses_bad_actions_and_goes_on(duel: str) -> None:
    env = to_pettingzoo("tictactoe")
    env.reset()
    env.step(4)
    with pytest.raises(IllegalActionError):
        env.step(4)
    with pytest.raises(ActionError, match="a whole number in 0 … 8, got 9"):
        env.step(9)
    env.step(0)
    assert env.agent_selection == "player_0"
    parallel = to_pettingzoo_parallel(duel)
    parallel.reset()
    with pytest.raises(ActionError, match="no action for player_1"):
        parallel.step({"player_0": 1})
    with pytest.raises(ConfigError, match="is played in turns"):
        to_pettingzoo_parallel("tictactoe")


def test_resets_without_a_seed_give_new_games_and_with_one_the_same(duel: str) -> None:
    env = to_pettingzoo(duel, seed=5)

    def prizes(seed: int | None) -> list[int]:
        env.reset(seed=seed)
        found = []
        for _ in range(6):
            found.append(int(env.last()[0]["observation"][0]))
            env.step(0)
            env.step(0)
        return found

    assert prizes(9) != prizes(None)
    assert prizes(9) == prizes(9)


# Gymnasium --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", ["tictactoe", "connect-four", "ludo"])
def test_one_seat_passes_gymnasiums_check(name: str, seat: int) -> None:
    check_env(to_gymnasium(name, seat=seat), skip_render_check=True)
    check_env(to_gymnasium(name, seat=seat, opponent=first_legal), skip_render_check=True)


def test_a_seat_of_a_simultaneous_game_passes_gymnasiums_check(duel: str) -> None:
    check_env(to_gymnasium(duel, seat=1), skip_render_check=True)


def test_the_opponent_plays_and_the_learner_is_paid() -> None:
    env = to_gymnasium("tictactoe", seat=1, opponent=first_legal)
    observation, info = env.reset(seed=0)
    assert observation[1, 0, 0] == 1  # the opponent has begun in the first square
    assert info["action_mask"].tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert np.array_equal(env.action_masks(), info["action_mask"])
    total = []
    for square in (4, 2, 6):
        observation, reward, terminated, truncated, info = env.step(square)
        total.append(reward)
    assert (total, terminated, truncated) == ([0.0, 0.0, 1.0], True, False)
    with pytest.raises(ActionError, match=r"call reset\(\) first"):
        env.step(5)


def test_losing_to_the_opponent_ends_the_game_with_its_move() -> None:
    env = to_gymnasium("tictactoe", opponent=first_legal)
    env.reset()
    rewards = [env.step(square)[1:4] for square in (8, 3, 7)]
    assert rewards == [(0.0, False, False), (0.0, False, False), (-1.0, True, False)]


def test_truncation_is_told_apart() -> None:
    env = to_gymnasium("connect-four", max_plies=2)
    env.reset()
    assert env.step(0)[2:4] == (False, True)


def test_an_illegal_action_loses_or_raises() -> None:
    env = to_gymnasium("tictactoe", opponent=first_legal)
    env.reset()
    env.step(4)
    _, reward, terminated, _, info = env.step(4)
    assert (reward, terminated, info["illegal_action"]) == (-1.0, True, True)
    strict = to_gymnasium("tictactoe", opponent=first_legal, illegal_action="error")
    strict.reset()
    strict.step(4)
    with pytest.raises(IllegalActionError, match="action 4 is not legal"):
        strict.step(4)
    with pytest.raises(ConfigError, match="seat must be a whole number in 0 … 1; got 2"):
        to_gymnasium("tictactoe", seat=2)
    with pytest.raises(ConfigError, match="'lose' or 'error'"):
        to_gymnasium("tictactoe", illegal_action="ignore")  # type: ignore[arg-type]


def test_the_vector_environment_plays_what_the_batch_plays() -> None:
    envs = to_gymnasium_vector("tictactoe", batch=8)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, infos = envs.reset(seed=3)
    game = make_game("tictactoe", batch=8, seed=3)
    finished = 0
    for _ in range(20):
        assert observations in envs.observation_space
        assert np.array_equal(observations, game.observe())
        assert np.array_equal(infos["action_mask"], game.legal())
        assert np.array_equal(infos["seat"], game.rows().seat)
        actions, seats = game.random_actions(), game.rows().seat
        assert actions.astype(np.int64) in envs.action_space
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        step = game.step(actions)
        assert np.array_equal(rewards, step.rewards[np.arange(8), seats])
        assert np.array_equal(terminations, step.terminated)
        assert np.array_equal(truncations, step.truncated)
        if step.done.any():
            finished += int(step.done.sum())
            assert np.array_equal(infos["_final_obs"], step.done)
            final = game.unpack(step.final.packed)[0]
            for row, index in enumerate(step.final.game):
                assert np.array_equal(infos["final_obs"][index], final[row])
        else:
            assert "final_obs" not in infos
    assert finished > 5


def test_the_vector_environment_has_a_row_for_every_seat(duel: str) -> None:
    envs = to_gymnasium_vector(duel, batch=3, rounds=2)
    observations, infos = envs.reset(seed=1)
    assert envs.num_envs == len(observations) == 6
    assert infos["seat"].tolist() == [0, 1, 0, 1, 0, 1]
    for _ in range(2):
        observations, rewards, terminations, _, infos = envs.step(np.array([0, 1, 1, 1, 2, 1]))
        assert (rewards[0] < 0, rewards[1] > 0, rewards[2], rewards[4] > 0) == (True, True, 0, True)
    assert terminations.all()
    assert infos["_final_obs"].all()
    assert infos["final_info"]["seat"].tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(ActionError):
        envs.step(np.zeros(3, int))
