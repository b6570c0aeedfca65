"""Settings: their ranges, what is experiment and what placement, and sizes that must fit the game."""

from __future__ import annotations

from typing import Any

import pytest
from games_for_tests import RELAY, digests, manager_of

from keisei.config import Rule
from keisei.errors import ConfigError
from keisei.machine.cores import usable_cores
from keisei.parallel import EnvConfig, ParallelConfig, ParallelManager, TableOverride
from keisei.parallel.config import MAX_TABLES, MAX_WORKERS
from keisei.policies import ModelConfig

INLINE = {"num_workers": 1, "games": 2, "horizon": 4, "backend": "inline"}


def test_typed_settings_and_plain_dicts_are_the_same() -> None:
    plain = ParallelManager({"game": "tictactoe"}, {"hidden_dim": 8}, INLINE)
    typed = ParallelManager(
        EnvConfig(game="tictactoe"), ModelConfig(hidden_dim=8), ParallelConfig.model_validate(INLINE)
    )
    assert (plain.env, plain.model_config, plain.config) == (typed.env, typed.model_config, typed.config)
    with plain, typed:
        assert plain.collect_experiences().digest() == typed.collect_experiences().digest()


def test_sizes_may_be_given_or_left_out() -> None:
    sizes = {"input_dim": 81 * 54, "hidden_dim": 8, "action_dim": 2187}
    given = ParallelManager({"board_size": 9, "max_moves": 200}, sizes, INLINE)
    left_out = ParallelManager({}, {"hidden_dim": 8}, INLINE)
    assert given.spec.max_plies == 200
    for manager in (given, left_out):
        with manager:
            assert len(manager.collect_experiences()) == 8


def test_wrong_sizes_name_the_right_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        ParallelManager({}, {"input_dim": 81 * 14, "hidden_dim": 8, "action_dim": 100}, INLINE)
    assert "input_dim = 1134" in str(caught.value)
    assert "4374 numbers (54 x 9 x 9)" in str(caught.value)
    assert "action_dim = 100: shogi has 2187 actions" in str(caught.value)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"board_size": 8}, "board_size = 8, but the board of shogi has size 9"),
        ({"game": "tictactoe", "board_size": 9}, "the board of tictactoe has size 3"),
        ({"game": "connect-four", "board_size": 6}, "the board of connect-four has size 7"),
        ({"game": RELAY, "board_size": 4}, "relay has no board"),
        ({"board_size": 0}, "board_size = 0: must be a whole number from 1 to 65536"),
        ({"bord_size": 9}, "did you mean board_size?"),
        ({"game": "shogy"}, "did you mean"),
    ],
)
def test_a_board_size_must_be_the_games_own(env: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message.replace("?", r"\?")) as caught:
        ParallelManager(env, None, INLINE)
    assert caught.type.__module__ == "keisei.errors"


@pytest.mark.parametrize("game", [{"board_size": 9}, {"game": "tictactoe", "board_size": 3}])
def test_the_right_board_size_is_accepted(game: dict[str, Any]) -> None:
    assert ParallelManager(game, None, INLINE).env.board_size == game["board_size"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("num_workers", [0, MAX_WORKERS + 1, "many", True]),
        ("tables", [0, MAX_TABLES + 1, "auto"]),
        ("games", [0, 1 << 20]),
        ("horizon", [0, (1 << 20) + 1]),
        ("episodes_per_worker", [-1]),
        ("model_sync_interval", [0]),
        ("worker_reset_interval", [-1]),
        ("timeout", [0, -1]),
        ("hang_timeout", [0]),
        ("queue_maxsize", [0, 5000]),
        ("use_shared_memory", ["perhaps"]),
        ("compression_enabled", ["perhaps"]),
        ("compression", ["zip"]),
        ("backend", ["ray-cluster"]),
        ("mode", ["fast"]),
        ("inference", ["gpu"]),
        ("inference_places", [0, 1025]),
        ("max_policy_lag", [-1]),
        ("temperature", [0]),
        ("epsilon", [-0.1, 1.1]),
        ("scaling", ["always"]),
        ("min_workers", [0]),
        ("max_workers", [0]),
        ("max_failures", [0]),
        ("start_method", ["fork"]),
        ("table_overrides", [{0: {"epsilon": 2}}, {0: {"speed": 1}}]),
        ("seating", [{"opponents": [{"policy": "random", "share": 1.5}]}]),
    ],
)
def test_values_out_of_range_are_errors_that_name_the_setting(name: str, wrong: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(ConfigError, match=rf"parallel_config:\s+{name}"):
            ParallelManager({}, None, {name: value})


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        ParallelManager({}, None, {"num_workers": 0, "timeout": -1, "queue_size": 3})
    text = str(caught.value)
    assert text.startswith("3 problems in parallel_config:")
    assert "queue_size: unknown setting; did you mean queue_maxsize?" in text


def test_limits_must_fit_each_other() -> None:
    with pytest.raises(ConfigError, match="max_workers = 1 is below min_workers = 2"):
        ParallelManager({}, None, {"min_workers": 2, "max_workers": 1})


def test_auto_takes_every_core() -> None:
    assert ParallelConfig().workers == usable_cores()
    assert ParallelConfig(num_workers=3).workers == 3
    assert ParallelConfig(num_workers=3, max_workers=2).most_workers == 3


def test_without_a_number_there_is_a_table_for_each_worker() -> None:
    assert ParallelConfig(num_workers=3).table_count == 3
    assert ParallelConfig(num_workers=3, tables=7).table_count == 7
    with manager_of(backend="inline", tables=7, num_workers=3) as manager:
        assert (len(manager.tables), len(manager.workers)) == (7, 3)
        assert len(manager.collect_experiences()) == 7 * 4 * 8


def test_every_setting_belongs_to_the_experiment_or_to_the_placement() -> None:
    experiment = {
        "tables", "games", "horizon", "episodes_per_worker", "model_sync_interval", "worker_reset_interval",
        "compression_enabled", "compression", "mode", "max_policy_lag", "inference", "inference_places",
        "temperature", "epsilon", "seating", "table_overrides",
    }  # fmt: skip
    assert experiment == {name for name in ParallelConfig.model_fields if not is_placement(name)}


def is_placement(name: str) -> bool:
    return ParallelConfig.rule_of(name) is Rule.FREE


@pytest.mark.parametrize(
    "placement",
    [
        {"backend": "thread", "num_workers": 3, "queue_maxsize": 1},
        {"timeout": 60.0, "hang_timeout": 60.0, "use_shared_memory": False, "max_failures": 1},
        {"scaling": "auto", "min_workers": 1, "max_workers": 3, "verify_checksums": False},
    ],
)
def test_the_placement_changes_no_bit(placement: dict[str, Any]) -> None:
    assert all(map(is_placement, placement))
    settings: dict[str, Any] = {"model": {"hidden_dim": 8}, "tables": 3}
    expected = digests(manager_of(backend="inline", **settings))
    assert digests(manager_of(**{"backend": "inline"} | settings | placement)) == expected


def test_games_are_cut_off_where_the_settings_say() -> None:
    for env, parallel, expected in [
        ({"options": {"max_plies": 5}}, {}, 5),
        ({"max_moves": 5}, {}, 5),
        ({}, {"max_game_length": 6}, 6),
        ({"max_moves": 5}, {"max_game_length": 6}, 5),
    ]:
        manager = manager_of("shogi", "inline", env=env, **parallel)
        assert manager.spec.max_plies == expected
        with manager:
            experiences = manager.collect_experiences(target_steps=200)
            assert experiences.column("ply").max() == expected - 1
            assert experiences.column("truncated").any()


def test_rewards_are_set_by_name() -> None:
    env = {"reward_structure": {"ply_cost": 0.25}}
    with manager_of("shogi", "inline", env=env) as manager:
        assert (manager.collect_experiences().column("reward") != 0).any()
    with pytest.raises(ConfigError, match="no_such_reward"):
        manager_of("shogi", "inline", env={"reward_structure": {"no_such_reward": 1.0}})


def test_overrides_leave_the_rest_as_it_is() -> None:
    config = ParallelConfig(epsilon=0.25, table_overrides={1: TableOverride(epsilon=0.0)})
    assert config.override_of(0) == TableOverride()
    assert config.override_of(1) == TableOverride(epsilon=0.0)
    with manager_of(backend="inline", epsilon=0.25, table_overrides={1: {"epsilon": 0.0}}) as manager:
        plan = manager.plan(worker=5)
        assert plan.override_of(1) == config.override_of(1)
        assert plan.override_of(0).epsilon is None, "what is published decides"


@pytest.mark.parametrize("compression", ["half", "lossless"])
def test_compressed_weights_reach_the_workers(compression: str) -> None:
    settings = {"compression_enabled": True, "compression": compression}
    with manager_of(model={"hidden_dim": 8}, **settings) as manager:
        assert manager.synchronizer is not None
        assert manager.synchronizer.compression == compression
        assert set(manager.collect_experiences().column("version").tolist()) == {1}
