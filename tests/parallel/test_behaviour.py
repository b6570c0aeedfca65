"""Behaviour: weights, and how freely they are played, reach workers together and have one version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from games_for_tests import BACKENDS, manager_of, nudge, pids_of

from keisei.errors import ParallelError
from keisei.parallel import CollectedSlab, ParallelManager
from keisei.policies.behaviour import Behaviour, PlaySettings, epsilon_of_games

MODEL = {"hidden_dim": 8}


def log_probs(item: CollectedSlab) -> Any:
    return item.slab.log_prob.copy()


def expected_log_probs(
    manager: ParallelManager, item: CollectedSlab, temperature: float, epsilon: Any
) -> Any:
    """By the network itself: softmax of the logits over the temperature, mixed with the uniform distribution."""
    assert manager.model is not None
    slab = item.slab
    packed = slab.packed[: slab.shape.steps].reshape(-1, slab.packed.shape[-1])
    observations, legal = manager.env.make(batch=1, seed=0).unpack(packed)
    with torch.inference_mode():
        logits = manager.model(torch.from_numpy(observations))[0] / temperature
    greedy = torch.softmax(logits.masked_fill(~torch.from_numpy(legal), -torch.inf), dim=1).numpy()
    mixed = (1 - epsilon) * greedy + epsilon * legal / legal.sum(axis=1, keepdims=True)
    chosen = mixed[np.arange(len(mixed)), slab.action.reshape(-1)]
    return np.log(chosen).reshape(slab.action.shape)


@pytest.mark.parametrize("inference", ["worker", "central"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_temperature_and_epsilon_reach_workers_with_the_weights(backend: str, inference: str) -> None:
    with manager_of(backend=backend, model=MODEL, inference=inference) as manager:
        assert manager.model is not None
        for version, (temperature, epsilon) in enumerate([(1.0, 0.0), (0.25, 0.5), (4.0, 0.0)], start=1):
            assert manager.publish(Behaviour(manager.model, temperature, epsilon)) == version
            for item in manager.collect_experiences():
                assert item.record.version == version
                expected = expected_log_probs(manager, item, temperature, epsilon)
                np.testing.assert_allclose(log_probs(item), expected, atol=1e-4)


def test_the_first_behaviour_is_that_of_the_settings() -> None:
    with manager_of(model=MODEL, temperature=2.0, epsilon=0.25) as manager:
        for item in manager.collect_experiences():
            np.testing.assert_allclose(
                log_probs(item), expected_log_probs(manager, item, 2.0, 0.25), atol=1e-4
            )
        nudge(manager)
        assert manager.sync_model_to_workers() == 2
        for item in manager.collect_experiences():
            np.testing.assert_allclose(
                log_probs(item), expected_log_probs(manager, item, 2.0, 0.25), atol=1e-4
            )


def test_the_same_weights_played_otherwise_are_a_new_version() -> None:
    with manager_of(backend="inline", model=MODEL) as manager:
        assert manager.model is not None
        assert manager.publish(Behaviour(manager.model)) == 1, "nothing has changed"
        assert manager.publish(Behaviour(manager.model, epsilon=0.5)) == 2
        assert manager.publish(Behaviour(manager.model, epsilon=0.5)) == 2
        assert manager.publish(Behaviour(manager.model, temperature=0.5, epsilon=0.5)) == 3
        assert set(manager.collect_experiences().column("version").tolist()) == {3}


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_a_table_with_rules_of_its_own_keeps_them(inference: str) -> None:
    overrides = {0: {"epsilon": 1.0}, 1: {"temperature": 0.5}}
    with manager_of(model=MODEL, table_overrides=overrides, inference=inference, tables=3) as manager:
        assert manager.model is not None
        manager.publish(Behaviour(manager.model, temperature=3.0, epsilon=0.25))
        rules = {0: (3.0, 1.0), 1: (0.5, 0.25), 2: (3.0, 0.25)}
        for item in manager.collect_experiences():
            expected = expected_log_probs(manager, item, *rules[item.record.table])
            np.testing.assert_allclose(log_probs(item), expected, atol=1e-4)


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_a_successor_plays_the_same_behaviour(inference: str) -> None:
    found = []
    for kills in (False, True):
        with manager_of("connect-four", model=MODEL, inference=inference) as manager:
            assert manager.model is not None
            manager.publish(Behaviour(manager.model, temperature=0.5, epsilon=0.5))
            manager.collect_experiences()
            if kills:
                for worker in manager.workers:
                    assert worker.handle is not None
                    worker.handle.kill()
            found.append(manager.collect_experiences().digest())
            assert len(pids_of(manager)) == 2
    assert found[0] == found[1]


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_epsilon_may_be_spread_over_all_games(inference: str) -> None:
    """Game i of N plays with epsilon^(1 + spread · i/(N-1)), at whatever table it is."""
    overrides = {1: {"epsilon": 0.75}}
    with manager_of(
        backend="inline", model=MODEL, tables=3, games=2, inference=inference, table_overrides=overrides
    ) as manager:
        assert manager.model is not None
        manager.publish(Behaviour(manager.model, temperature=0.5, epsilon=0.5, spread=2.0))
        by_game = np.array([0.5 ** (1 + 2.0 * number / 5) for number in range(6)])
        by_game[2:4] = 0.75  # a table with an epsilon of its own
        for item in manager.collect_experiences():
            epsilon = np.tile(by_game[item.first_game :][:2], item.slab.shape.steps)
            expected = expected_log_probs(manager, item, 0.5, epsilon[:, None])
            np.testing.assert_allclose(log_probs(item), expected, atol=1e-4)


def test_the_epsilon_of_a_game_depends_on_its_number_alone() -> None:
    numbers = np.arange(9, dtype=np.int32)
    spread = epsilon_of_games(0.4, 7.0, numbers, 9)
    assert isinstance(spread, np.ndarray)
    np.testing.assert_allclose(spread, [0.4 ** (1 + 7 * i / 8) for i in range(9)], rtol=1e-6)
    np.testing.assert_array_equal(epsilon_of_games(0.4, 7.0, numbers[3:5], 9), spread[3:5])
    assert epsilon_of_games(0.4, 0.0, numbers, 9) == 0.4
    np.testing.assert_allclose(epsilon_of_games(0.4, 7.0, numbers[:1], 1), [0.4], rtol=1e-6)


def test_the_first_weights_may_be_played_otherwise_than_the_settings_say() -> None:
    found = []
    for first in (None, (PlaySettings(0.25, 0.5),)):
        manager = ParallelManager(
            {"game": "tictactoe"}, MODEL, {"backend": "inline", "num_workers": 1}, first_settings=first
        )
        with manager:
            (item,) = manager.collect_experiences()
            expected = expected_log_probs(manager, item, *((1.0, 0.0) if first is None else first[0][:2]))
            np.testing.assert_allclose(log_probs(item), expected, atol=1e-4)
            found.append(manager.version)
    assert found == [1, 1]


def test_without_a_network_there_is_nothing_to_publish() -> None:
    with manager_of(backend="inline") as manager, pytest.raises(ParallelError, match="without model_config"):
        manager.publish(Behaviour(torch.nn.Linear(1, 1)))
