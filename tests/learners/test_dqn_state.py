"""A restored DQN learner continues like the saved one, and other states are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plain_dqn_for_tests import PlainReplay, linear_dqn, some_sample
from ppo_for_tests import linear

from keisei.errors import CheckpointError
from keisei.learners.dqn import DQN
from keisei.runs.state import State
from keisei.runs.state_tensors import weights_digest


def learned(seed: int, **settings: Any) -> DQN:
    learner = linear_dqn(seed, minibatch_size=8, learning_rate=0.05, target_interval=4, **settings)
    learner.learn(PlainReplay(some_sample(40, seed), due=6), 0.1)
    return learner


def test_a_restored_learner_goes_on_as_the_one_that_was_saved() -> None:
    one, other = learned(1), linear_dqn(1, minibatch_size=8, learning_rate=0.05, target_interval=4)
    state = one.state()
    json.dumps(state.document, allow_nan=False)
    other.restore(state)
    assert other.steps == 6
    for network in ("network", "target"):
        assert weights_digest(getattr(one, network)) == weights_digest(getattr(other, network))
    replays = [PlainReplay(some_sample(40, 3), due=5) for _ in range(2)]
    reports = [learner.learn(replay, 0.3) for learner, replay in zip((one, other), replays, strict=True)]
    assert weights_digest(other.network) == weights_digest(one.network)
    assert weights_digest(other.target) == weights_digest(one.target)
    assert reports[0] == reports[1]
    assert replays[0].asked == replays[1].asked


def test_a_state_is_a_copy() -> None:
    one, other = learned(1), learned(2)
    state = one.state()
    one.learn(PlainReplay(some_sample(40, 5), due=3), 0.2)
    other.seed = one.seed
    other.restore(state)
    other.learn(PlainReplay(some_sample(40, 5), due=3), 0.2)
    assert weights_digest(other.network) == weights_digest(one.network)
    assert weights_digest(other.target) == weights_digest(one.target)


@pytest.mark.parametrize(
    ("group", "name", "problem"),
    [
        ("model", None, "without the model's tensors"),
        ("target", None, "without the target's tensors"),
        ("optimizer", None, "without the optimizer's tensors"),
        (None, "optimizer", "without the document's optimizer"),
        (None, "steps", "without the document's steps"),
    ],
)
def test_what_a_state_lacks_is_named_and_nothing_is_changed(
    group: str | None, name: str | None, problem: str
) -> None:
    one, other = learned(1), learned(2)
    state, digest = one.state(), weights_digest(other.network)
    assert isinstance(state.document, dict)
    tensors = {key: entries for key, entries in state.tensors.items() if key != group}
    document = {key: entry for key, entry in state.document.items() if key != name}
    with pytest.raises(CheckpointError, match=f"no state of a DQN learner: it comes {problem}"):
        other.restore(State(tensors, document))
    assert (other.steps, weights_digest(other.network)) == (6, digest)


@pytest.mark.parametrize("steps", ["3", None, 1.5, True, -1])
def test_a_number_of_steps_that_is_none_is_refused(steps: Any) -> None:
    learner = linear_dqn()
    state = learner.state()
    assert isinstance(state.document, dict)
    with pytest.raises(CheckpointError, match=f"with {steps!r} for its number of steps"):
        learner.restore(State(state.tensors, state.document | {"steps": steps}))


def test_the_state_of_another_learner_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"no state of a DQN learner.*the target's tensors"):
        linear_dqn().restore(linear().state())
    with pytest.raises(CheckpointError, match="no state of a PPO learner"):
        linear().restore(linear_dqn().state())
    with pytest.raises(CheckpointError, match="the weights of another network"):
        linear_dqn().restore(linear_dqn(quantiles=3).state())
