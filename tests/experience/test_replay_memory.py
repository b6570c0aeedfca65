"""A replay is bounded in bytes, and one that does not fit is refused with the numbers and the way out."""

from __future__ import annotations

from typing import Any

import pytest
from brute_force_for_tests import Ply, Row
from histories_for_tests import GAMES, KINDS
from replays_for_tests import cut, replay_of

from keisei.errors import ConfigError, SharedMemoryError
from keisei.experience import replay
from keisei.experience.replay import ReplayBuffer
from keisei.experience.schema import SlabShape, bytes_per_transition
from keisei.experience.slab import common_bytes, slab_layout

KIND = KINDS[0]


def test_a_replay_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "free_memory", lambda: 3 << 20)
    made = replay_of(KIND, 64, 128, 2)
    with pytest.raises(SharedMemoryError) as error:
        replay_of(KIND, 64, 128, 1000)
    message = str(error.value)
    assert "capacity = 8,192,000 makes a replay of 1000 slabs of 64 steps x 128" in message
    assert "3 MB are left" in message
    most = int(message.rpartition("at most capacity = ")[2].split()[0].replace(",", ""))
    assert most % made.capacity != most
    fitting = replay_of(KIND, 64, 128, most // (64 * 128))
    assert fitting.nbytes <= 3 << 20 < fitting.nbytes + made.nbytes


def test_memory_that_nobody_knows_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "free_memory", lambda: None)
    replay_of(KIND, 4, GAMES, 2)


@pytest.mark.parametrize("prioritised", [True, False])
def test_its_bytes_are_those_of_its_arrays(prioritised: bool) -> None:
    buffer = replay_of(KIND, 64, 128, 5, prioritised=prioritised)
    ring, drawing = buffer._ring, buffer._drawing
    beside = ring.links.nbytes
    own = drawing._tree.nbytes if isinstance(drawing, replay.PrioritisedDrawing) else drawing._listed.nbytes
    known = beside + own + 5 * slab_layout(ring.shape).nbytes + _open_bytes(buffer)
    assert known <= buffer.nbytes < 1.01 * known


def _open_bytes(buffer: ReplayBuffer) -> int:
    """The bytes of the arrays for decisions that wait."""
    ring = buffer._ring
    return ring._closed.nbytes + sum(rows._rows.nbytes for rows in ring.open.values())


def test_its_bytes_count_the_decisions_that_wait() -> None:
    """Long returns of many tables take more than small slabs do."""
    waiting = [
        replay_of(KIND, 4, 16, 16, n_step=n_step, tables=tables) for n_step, tables in ((1, 8), (500, 8))
    ]
    open_bytes = _open_bytes(waiting[1])
    assert 16 * slab_layout(waiting[1]._ring.shape).nbytes + open_bytes <= waiting[1].nbytes
    assert waiting[1].nbytes - waiting[0].nbytes > 0.95 * open_bytes
    assert len(waiting[1]._ring.open) == 8, "they are there from the start"


def test_returns_that_outlast_the_ring_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    endless = [Ply({t % 2: Row(t, t % 2, 0)}, [0.0, 0.0]) for t in range(61)]
    for n_step, told in ((5, 0), (40, 1)):
        buffer = replay_of(KIND, 4, 1, 4, n_step=n_step)
        for item in cut([endless], KIND, 4):
            buffer.take([item])
        assert (len(buffer) > 0) is (told == 0)
        assert caplog.text.count("take a larger capacity or a smaller n_step") == told


def test_losses_before_a_resumption_are_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    """A replay that was not saved starts empty, and has been enlarged since: nothing is lost any more."""
    endless = [Ply({t % 2: Row(t, t % 2, 0)}, [0.0, 0.0]) for t in range(61)]
    slabs = cut([endless], KIND, 4)
    small, large = replay_of(KIND, 4, 1, 4, n_step=40), replay_of(KIND, 4, 1, 15, n_step=40)
    for item in slabs:
        small.take([item])
    assert small.dropped["overwritten"] > 20
    large.restore(small.state(), lambda count: [])
    assert large.dropped == small.dropped
    caplog.clear()
    for item in slabs:
        large.take([item])
    assert 0 < len(large) < small.dropped["overwritten"]
    assert "overwrites" not in caplog.text


@pytest.mark.parametrize(("capacity", "slabs"), [(512, 2), (513, 3), (767, 3), (768, 3), (769, 4)])
def test_at_least_the_capacity_fits(capacity: int, slabs: int) -> None:
    """It is rounded up to whole slabs of 256 decisions."""
    buffer = replay_of(KIND, 16, 16, 0, capacity=capacity)
    assert (buffer.most_leases, buffer.capacity) == (slabs, 256 * slabs)


def test_capacity_in_megabytes() -> None:
    made: dict[str, Any] = {"capacity": None, "megabytes": 1.0}
    buffer = replay_of(KIND, 16, 16, 0, **made)
    assert 0.95 * 2**20 < buffer.nbytes <= 2**20
    assert buffer.capacity == buffer.most_leases * 256


def test_a_replay_has_two_slabs_of_each_table() -> None:
    with pytest.raises(ConfigError) as error:
        replay_of(KIND, 16, 8, 5, tables=3)
    assert "capacity = 640 makes 5 slabs of 16 steps x 8" in str(error.value)
    assert "at least two for each of the 3 tables; take at least capacity = 768" in str(error.value)
    replay_of(KIND, 16, 8, 6, tables=3)
    with pytest.raises(ConfigError, match=r"megabytes = 0\.01 makes"):
        replay_of(KIND, 16, 8, 0, capacity=None, megabytes=0.01)


@pytest.mark.parametrize(("steps", "games", "tables"), [(2, 1, 1), (16, 8, 3), (33, 70, 5), (64, 128, 2)])
def test_the_megabytes_that_are_advised_are_enough(steps: int, games: int, tables: int) -> None:
    with pytest.raises(ConfigError) as error:
        replay_of(KIND, steps, games, 0, tables=tables, capacity=None, megabytes=1e-6)
    advised = float(str(error.value).partition("(megabytes = ")[2].partition(")")[0])
    buffer = replay_of(KIND, steps, games, 0, tables=tables, capacity=None, megabytes=advised)
    assert buffer.most_leases >= 2 * tables
    assert buffer.nbytes <= advised * 2**20


def test_a_replay_with_too_many_positions_to_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "free_memory", lambda: None)
    with pytest.raises(ConfigError, match="at most 2,147,483,648 can be numbered; take a smaller capacity"):
        replay_of(KIND, 64, 128, 1 << 18)


def test_what_every_transition_has_comes_first_in_a_slab() -> None:
    for kind in KINDS:
        shape = SlabShape(16, 8, kind.seats, 64, kind.simultaneous)
        common = common_bytes(shape)
        assert 0 <= common - bytes_per_transition(shape) * shape.transitions < 20 * 64
