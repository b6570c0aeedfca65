"""A status is a mapping as well as an object."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields

import pytest

from keisei.parallel.deliveries import Drops
from keisei.parallel.status import ManagerStatus

NAMES = [
    "running",
    "active_workers",
    "workers",
    "tables",
    "queue_info",
    "version",
    "policy_lag",
    "transitions",
    "transitions_per_second",
    "restarts",
    "drops",
    "last_error",
]


@pytest.fixture
def status() -> ManagerStatus:
    return ManagerStatus(
        running=True, active_workers=0, workers=(), tables=2, queue_info={"slabs": 8}, version=3, policy_lag=0.5,
        transitions=100, transitions_per_second=25.0, restarts=0, drops=Drops(2, 1), last_error="",
    )  # fmt: skip


def test_it_lists_its_names(status: ManagerStatus) -> None:
    assert isinstance(status, Mapping)
    assert [key for key in status] == list(status.keys()) == NAMES  # noqa: C416
    assert sorted(status) == sorted(NAMES)
    assert len(status) == len(NAMES) == len(fields(status))
    assert status


def test_each_name_has_the_attributes_value(status: ManagerStatus) -> None:
    for name, value in status.items():
        assert value is getattr(status, name) is status[name]
    assert (status["version"], status["transitions_per_second"], status["active_workers"]) == (3, 25.0, 0)
    assert {**status} == dict(status) == status
    assert list(status.values())[5] == 3


def test_other_names_are_unknown(status: ManagerStatus) -> None:
    for name in ("no_such_thing", "items", "keys", "__class__", "__len__"):
        assert name not in status
        with pytest.raises(KeyError, match=name):
            status[name]
    assert status.get("no_such_thing", 7) == 7
    assert status.get("version") == 3
    assert "active_workers" in status


def test_it_stays_as_it_is(status: ManagerStatus) -> None:
    with pytest.raises(FrozenInstanceError):
        status.version = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        status["version"] = 4  # type: ignore[index]
    assert pickle.loads(pickle.dumps(status)) == status  # noqa: S301
