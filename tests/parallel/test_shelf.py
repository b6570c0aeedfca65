"""The shelf: weights are written once, and read where they lie."""

from __future__ import annotations

import pytest
import torch

import keisei
from keisei.errors import ParallelError, SharedMemoryError, WeightsError
from keisei.parallel.weights import shelf as shelves
from keisei.parallel.weights.shelf import PlaceKind, Shelf
from keisei.policies.networks import ModelConfig, build_network

SPEC = keisei.make_game("tictactoe", batch=1, seed=0).spec
SMALL = ModelConfig(network="mlp", hidden_dim=8, num_layers=1)
LARGE = ModelConfig(network="mlp", hidden_dim=16, num_layers=1)
PLAIN = (1.0, 0.0)


def shelf_of(small: int = 2, large: int = 1) -> Shelf:
    return Shelf([PlaceKind.of(SMALL, SPEC, small), PlaceKind.of(LARGE, SPEC, large)])


def test_what_is_put_is_played_with() -> None:
    shelf, network = shelf_of(), build_network(SMALL, SPEC, seed=3)
    shelf.put(101, SMALL, network, (0.5, 0.25))
    place = shelf.place_of(101)
    found = shelf.network_at(place, SPEC)
    inputs = torch.randn(5, *SPEC.observation.shape)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found(inputs), network(inputs), strict=True))
    assert shelf.settings_at(place) == (0.5, 0.25)
    assert not found.training
    shelf.close()


def test_networks_are_views_and_no_copies() -> None:
    """A network that was built for a place plays with the next member there too, without reading anything."""
    shelf = shelf_of(small=1)
    first, second = build_network(SMALL, SPEC, seed=1), build_network(SMALL, SPEC, seed=2)
    shelf.put(101, SMALL, first, PLAIN)
    found = shelf.network_at(shelf.place_of(101), SPEC)
    shelf.clear(101)
    shelf.put(102, SMALL, second, PLAIN)
    inputs = torch.randn(5, *SPEC.observation.shape)
    assert torch.equal(found(inputs)[0], second(inputs)[0])
    assert all(parameter.data_ptr() % 64 == 0 for parameter in found.parameters())
    shelf.close()


def test_weights_are_given_back_as_copies() -> None:
    shelf, network = shelf_of(), build_network(SMALL, SPEC, seed=3)
    shelf.put(101, SMALL, network, PLAIN)
    weights = shelf.weights_of(101)
    shelf.clear(101)
    shelf.put(102, SMALL, build_network(SMALL, SPEC, seed=4), PLAIN)
    assert all(torch.equal(weights[name], tensor) for name, tensor in network.state_dict().items())
    shelf.close()


def test_each_kind_of_network_has_places_of_its_own() -> None:
    shelf = shelf_of(small=2, large=1)
    shelf.put(101, LARGE, build_network(LARGE, SPEC, seed=1), PLAIN)
    assert (shelf.has_room(LARGE), shelf.has_room(SMALL)) == (False, True)
    for number in (102, 103):
        shelf.put(number, SMALL, build_network(SMALL, SPEC, seed=number), PLAIN)
    with pytest.raises(ParallelError, match="all 3 places of the shelf are taken"):
        shelf.put(104, SMALL, build_network(SMALL, SPEC, seed=1), PLAIN)
    assert shelf.members == {101, 102, 103}
    shelf.clear(102)
    assert shelf.has_room(SMALL)
    shelf.close()


def test_weights_of_another_shape_are_refused_and_leave_no_trace() -> None:
    shelf = shelf_of()
    with pytest.raises(WeightsError, match="in member 101 and"):
        shelf.put(101, SMALL, build_network(LARGE, SPEC, seed=1), PLAIN)
    assert shelf.members == set()
    shelf.close()


def test_a_member_is_put_once() -> None:
    shelf = shelf_of()
    shelf.put(101, SMALL, build_network(SMALL, SPEC, seed=1), PLAIN)
    with pytest.raises(ParallelError, match="member 101 is on the shelf already"):
        shelf.put(101, SMALL, build_network(SMALL, SPEC, seed=2), PLAIN)
    shelf.close()


def test_who_is_not_there_is_named() -> None:
    shelf = shelf_of()
    with pytest.raises(ParallelError, match=r"member 105 is not on the shelf, which has \[\]"):
        shelf.place_of(105)
    shelf.close()


def test_a_shelf_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "free_memory", lambda: 1000)
    with pytest.raises(SharedMemoryError, match=r"a shelf for opponents takes .* league\.window"):
        shelf_of()
