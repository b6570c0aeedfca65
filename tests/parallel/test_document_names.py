"""Settings under the names of other collectors: each is translated, and conflicts are said."""

from __future__ import annotations

from typing import Any

import pytest
from games_for_tests import digests

from keisei.errors import ConfigError
from keisei.parallel import EnvConfig, ParallelConfig, ParallelManager, TableOverride
from keisei.parallel.document_names import read_settings


def translated(given: dict[str, Any]) -> ParallelConfig:
    return read_settings({}, given, 0)[1]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"enabled": False}, {"backend": "inline"}),
        ({"enabled": True}, {}),
        ({"use_threads": True}, {"backend": "thread"}),
        ({"use_threads": False, "backend": "process"}, {"backend": "process"}),
        ({"use_threads": True, "backend": "thread"}, {"backend": "thread"}),
        ({"enabled": False, "use_threads": True}, {"backend": "inline"}),
        ({"games_per_worker": 10, "num_workers": 4}, {"games": 10, "num_workers": 4}),
        ({"games_per_worker": 10, "experience_batch_size": 64}, {"games": 10, "horizon": 7}),
        ({"games": 64, "experience_batch_size": 8}, {"games": 64, "horizon": 1}),
        ({"experience_batch_size": 640}, {"horizon": 10}),
        ({"worker_overrides": {1: {"epsilon": 0.5}}}, {"table_overrides": {1: TableOverride(epsilon=0.5)}}),
        ({"worker_timeout": 7.5}, {"hang_timeout": 7.5}),
        ({"max_game_length": 200}, {}),
        ({"seed": 5}, {}),
    ],
)
def test_each_name_is_translated(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    assert translated(theirs) == ParallelConfig.model_validate(ours)


def test_workers_of_games_become_tables_of_games() -> None:
    manager = ParallelManager({"game": "tictactoe"}, None, {"num_workers": 3, "games_per_worker": 8})
    assert len(manager.tables) == 3
    assert [table.games for table in manager.tables] == [8, 8, 8]


def test_both_ways_to_say_it_give_the_same_bits() -> None:
    theirs = {
        "enabled": False, "num_workers": 2, "games_per_worker": 4, "experience_batch_size": 30, "seed": 3,
        "max_game_length": 5, "worker_overrides": {1: {"epsilon": 0.5}},
    }  # fmt: skip
    ours = {
        "backend": "inline", "num_workers": 1, "tables": 2, "games": 4, "horizon": 8,
        "table_overrides": {1: {"epsilon": 0.5}},
    }  # fmt: skip
    model, env = {"hidden_dim": 8}, {"game": "connect-four"}
    other = ParallelManager(env | {"options": {"max_plies": 5}}, model, ours, seed=3)
    assert digests(ParallelManager(env, model, theirs)) == digests(other)


def test_the_length_of_games_and_the_seed_find_their_place() -> None:
    env, _, seed = read_settings({"max_moves": 7}, {"max_game_length": 9, "seed": 11}, 0)
    assert (env.options, seed) == ({"max_plies": 7}, 11)
    env, _, seed = read_settings({}, {"max_game_length": 9}, 4)
    assert (env.options, seed) == ({"max_plies": 9}, 4)
    env, _, _ = read_settings({"options": {"max_plies": 8}}, {"max_game_length": 9}, 0)
    assert env.options == {"max_plies": 8}, "what is said of the game itself goes first"
    env, _, _ = read_settings(EnvConfig(game="shogi"), {"max_game_length": 9}, 0)
    assert env.options == {"max_plies": 9}


def test_typed_settings_have_no_such_names() -> None:
    for name in ("enabled", "use_threads", "games_per_worker", "experience_batch_size", "seed"):
        with pytest.raises(ValueError, match="Extra inputs are not permitted"):
            ParallelConfig.model_validate({name: 1})


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"games_per_worker": 4}, {"tables": 2}),
        ({"games_per_worker": 4}, {"games": 4}),
        ({"experience_batch_size": 64}, {"horizon": 16}),
        ({"worker_overrides": {0: {"epsilon": 0.5}}}, {"table_overrides": {0: {"epsilon": 0.5}}}),
        ({"worker_timeout": 5.0}, {"hang_timeout": 5.0}),
        ({"use_threads": True}, {"backend": "process"}),
    ],
)
def test_what_is_said_twice_is_an_error(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    (name,), (other,) = theirs, ours
    with pytest.raises(
        ConfigError, match=f"{name} and {other} are two ways to say one thing; leave out {name}"
    ):
        translated(theirs | ours)


def test_lengths_and_seeds_are_said_once_too() -> None:
    with pytest.raises(ConfigError, match=r"max_moves and options.max_plies are two ways to say one thing"):
        read_settings({"max_moves": 5, "options": {"max_plies": 6}}, {}, 0)
    with pytest.raises(ConfigError, match="seed = 5, but the manager was given 6; leave out the setting"):
        read_settings({}, {"seed": 5}, 6)
    assert read_settings({}, {"seed": 5}, 5)[2] == 5


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("enabled", ["perhaps"]),
        ("use_threads", ["perhaps"]),
        ("games_per_worker", [0, (1 << 16) + 1]),
        ("experience_batch_size", [0, (1 << 24) + 1]),
        ("max_game_length", [0]),
        ("seed", [-1, 1 << 63]),
        ("worker_overrides", [{0: {"epsilon": 2}}, {0: {"speed": 1}}]),
    ],
)
def test_values_out_of_range_are_errors_that_name_the_setting(name: str, wrong: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(ConfigError, match=rf"parallel_config:\s+{name}"):
            translated({name: value})


def test_a_slab_that_would_be_too_long_is_an_error_of_ours() -> None:
    with pytest.raises(ConfigError, match="horizon = 16777216: must be a whole number from 1 to 1048576"):
        translated({"games": 1, "experience_batch_size": 1 << 24})


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        translated({"games_per_worker": 0, "seed": -1, "game_per_worker": 3})
    assert str(caught.value).startswith("3 problems in parallel_config:")
    assert "did you mean games_per_worker?" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        translated({"games_per_worker": 4, "tables": 2, "experience_batch_size": 64, "horizon": 16})
    for name in ("games_per_worker and tables", "experience_batch_size and horizon"):
        assert name in str(caught.value)
