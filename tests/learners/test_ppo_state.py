"""A restored learner continues like the saved one, and other states are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from plain_ppo_for_tests import PlainView, some_rows
from ppo_for_tests import fixed, linear

from keisei.errors import CheckpointError
from keisei.learners.ppo import PPO
from keisei.runs.state import State
from keisei.runs.state_tensors import weights_digest


def states_apart(**settings: Any) -> Iterator[PPO]:
    """Learners with other weights, which have learned other things."""
    for seed in (1, 2):
        ppo = linear(seed, epochs=2, minibatch_size=8, learning_rate=0.05, **settings)
        ppo.learn(PlainView(some_rows(16, seed)), 0.1)
        yield ppo


def test_a_restored_learner_goes_on_as_the_one_that_was_saved() -> None:
    one, other = states_apart()
    one.learn(PlainView(some_rows(16, 5)), 0.2)
    state = one.state()
    json.dumps(state.document, allow_nan=False)
    assert weights_digest(other.network) != weights_digest(one.network)
    other.restore(state)
    assert (other.updates, weights_digest(other.network)) == (2, weights_digest(one.network))
    views = [PlainView(some_rows(16, 6)) for _ in range(2)]
    reports = [ppo.learn(view, 0.3) for ppo, view in zip((one, other), views, strict=True)]
    assert weights_digest(other.network) == weights_digest(one.network)
    assert reports[0] == reports[1]
    assert views[0].asked == views[1].asked


def test_a_state_is_a_copy() -> None:
    one, other = states_apart()
    digest = weights_digest(one.network)
    state = one.state()
    moments = {name: tensor.clone() for name, tensor in state.tensors["optimizer"].items()}
    assert moments
    one.learn(PlainView(some_rows(16, 5)), 0.2)
    other.restore(state)
    other.learn(PlainView(some_rows(16, 5)), 0.2)
    assert weights_digest(other.network) == weights_digest(one.network) != digest
    for name, tensor in state.tensors["optimizer"].items():
        assert torch.equal(tensor, moments[name]), name


def test_a_new_learner_has_a_state_too() -> None:
    one, other = linear(1), linear(2)
    other.restore(one.state())
    assert (other.updates, weights_digest(other.network)) == (0, weights_digest(one.network))


@pytest.mark.parametrize(
    ("group", "name", "problem"),
    [
        ("model", None, "without the model's tensors"),
        ("optimizer", None, "without the optimizer's tensors"),
        (None, "optimizer", "without the document's optimizer"),
        (None, "updates", "without the document's updates"),
    ],
)
def test_what_a_state_lacks_is_named_and_nothing_is_changed(
    group: str | None, name: str | None, problem: str
) -> None:
    one, other = states_apart()
    state, digest = one.state(), weights_digest(other.network)
    assert isinstance(state.document, dict)
    tensors = {key: entries for key, entries in state.tensors.items() if key != group}
    document = {key: entry for key, entry in state.document.items() if key != name}
    with pytest.raises(CheckpointError, match=f"no state of a PPO learner: it comes {problem}"):
        other.restore(State(tensors, document))
    assert (other.updates, weights_digest(other.network)) == (1, digest)


@pytest.mark.parametrize("document", [None, [], "ppo"])
def test_a_state_without_a_document_is_refused(document: Any) -> None:
    with pytest.raises(CheckpointError, match="the document's optimizer, the document's updates"):
        linear().restore(State(linear().state().tensors, document))


@pytest.mark.parametrize("updates", ["3", None, 1.5, True, -1])
def test_a_number_of_updates_that_is_none_is_refused(updates: Any) -> None:
    ppo = linear()
    state = ppo.state()
    assert isinstance(state.document, dict)
    with pytest.raises(CheckpointError, match=f"with {updates!r} for its number of updates"):
        ppo.restore(State(state.tensors, state.document | {"updates": updates}))


def test_the_state_of_another_network_is_refused() -> None:
    ppo = linear()
    other = fixed(torch.zeros(2, 9), [0.0, 0.0])
    with pytest.raises(CheckpointError, match="the weights of another network"):
        ppo.restore(other.state())
