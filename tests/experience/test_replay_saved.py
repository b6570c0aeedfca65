"""A replay that was saved with a checkpoint continues exactly, and only what is new is written."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories_for_tests import GAMES, KINDS, Histories, Kind
from replays_for_tests import cut, replay_of, retold

from keisei.errors import CheckpointError
from keisei.experience.collected import CollectedSlab, Lease, LentSlab
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replayed import ReplaySample
from keisei.experience.slab import Slab, slab_layout
from keisei.machine.shared_memory import SharedBlock
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.state import State

STEPS, SLABS = 4, 10


def played(kind: Kind, seed: int = 3, table: int = 0) -> list[CollectedSlab]:
    """Slabs of a table, with a gap and a reset."""
    histories = Histories(np.random.default_rng(seed), kind, "seated")
    slabs = cut([histories.column(SLABS * STEPS) for _ in range(GAMES)], kind, STEPS, table)
    told = [retold(item, epoch=int(number > 6)) for number, item in enumerate(slabs)]
    return [item for number, item in enumerate(told) if number != 4]


class Lending:
    """Lends slabs of their own memory, with numbers from 100,000 on."""

    def __init__(self, buffer: ReplayBuffer) -> None:
        self._shape = buffer._ring.shape
        self.lent = 0

    def __call__(self, count: int) -> Sequence[LentSlab]:
        self.lent += count
        size = slab_layout(self._shape).nbytes
        return [
            LentSlab(Slab(self._shape, SharedBlock.private(size)), Lease(100_000 + number))
            for number in range(count)
        ]


def checkpoint_of(buffer: ReplayBuffer, update: int = 1) -> Checkpoint:
    state = buffer.state()
    return Checkpoint(
        "x", {"update": update}, state.tensors, documents={"buffer": state.document}, pieces=state.pieces
    )


def restored(buffer: ReplayBuffer, checkpoint: Checkpoint) -> Lending:
    lending = Lending(buffer)
    buffer.restore(State(checkpoint.tensors, checkpoint.documents["buffer"], checkpoint.pieces), lending)
    return lending


def samples(buffer: ReplayBuffer) -> list[ReplaySample]:
    """Some samples, between which priorities change."""
    found = []
    for key in range(5):
        sample = buffer.view().sample(16, 7, key)
        found.append(sample)
        errors = 3 * np.abs(np.sin(np.arange(16, dtype=np.float32) + key))
        buffer.view().update_priorities(sample, errors)
    return found


def assert_same(one: ReplayBuffer, other: ReplayBuffer) -> None:
    assert (len(one), one.waiting, one.dropped, one.steps()) == (
        len(other), other.waiting, other.dropped, other.steps(),
    )  # fmt: skip
    for found, expected in zip(samples(one), samples(other), strict=True):
        for name in ReplaySample.__slots__:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("prioritised", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("taken", [2, 5, 8])
def test_a_resumed_replay_goes_on_exactly(kind: Kind, taken: int, prioritised: bool, tmp_path: Path) -> None:
    made: dict[str, Any] = {
        "n_step": 3, "prioritised": prioritised, "save_replay": True, "tables": 2,
        "sample_to_insert_ratio": 0.7, "batch_size": 8,
    }  # fmt: skip
    going_on, resumed = (replay_of(kind, STEPS, GAMES, 5, **made) for _ in range(2))
    first, second = played(kind), played(kind, seed=4, table=3)
    for number in range(taken):
        going_on.take([first[number], second[number]])
        if len(going_on):
            samples(going_on)
    loaded = load_checkpoint(save_checkpoint(tmp_path, checkpoint_of(going_on)))
    lending = restored(resumed, loaded)
    assert lending.lent == min(5, 2 * taken)
    assert_same(resumed, going_on)
    ended = 0
    for number in range(taken, len(first)):
        for buffer in (going_on, resumed):
            leases = buffer.take([first[number], second[number]])
            ended += sum(lease.slab >= 100_000 for lease in leases.ended)
        assert_same(resumed, going_on)
    assert ended == min(lending.lent, 2 * (len(first) - taken) - (5 - lending.lent))


def test_new_decisions_of_a_resumed_replay_get_the_highest_priority_so_far() -> None:
    kind = KINDS[0]
    going_on, resumed = (replay_of(kind, STEPS, GAMES, 5, save_replay=True) for _ in range(2))
    going_on.take(played(kind)[:2])
    sample = going_on.view().sample(16, 1, 1)
    for error in (7.0, 0.5):
        going_on.view().update_priorities(sample, np.full(16, error, np.float32))
    restored(resumed, checkpoint_of(going_on))
    for buffer in (going_on, resumed):
        buffer.take(played(kind)[2:3])
    assert_same(resumed, going_on)


@pytest.mark.parametrize("saved", [True, False])
def test_late_priorities_are_counted_over_the_whole_run(saved: bool) -> None:
    kind = KINDS[0]
    going_on, resumed = (replay_of(kind, STEPS, GAMES, 2, save_replay=saved) for _ in range(2))
    slabs = played(kind)
    going_on.take(slabs[:2])
    old = going_on.view().sample(16, 1, 1)
    going_on.take(slabs[2:4])
    going_on.view().update_priorities(old, np.ones(16, np.float32))
    assert going_on.late_priorities == 16
    restored(resumed, checkpoint_of(going_on))
    assert resumed.late_priorities == 16


def saved_slabs(path: Path) -> dict[str, os.stat_result]:
    return {file.name: file.stat() for file in path.glob("*.piece")}


def test_only_new_slabs_are_written_and_old_ones_go(tmp_path: Path) -> None:
    kind, store = KINDS[0], CheckpointArchive(tmp_path, keep=2)
    buffer = replay_of(kind, STEPS, GAMES, 4, save_replay=True)
    slabs = played(kind)
    buffer.take(slabs[:3])
    first = saved_slabs(store.save(checkpoint_of(buffer, 1)))
    buffer.take(slabs[3:5])
    path = store.save(checkpoint_of(buffer, 2))
    second = saved_slabs(path)
    assert (len(first), len(second)) == (3, 4)
    shared = first.keys() & second.keys()
    assert len(shared) == 2
    assert all(first[name].st_ino == second[name].st_ino for name in shared)
    assert sorted(entry.st_nlink for entry in saved_slabs(path).values()) == [1, 1, 2, 2]
    buffer.take(slabs[5:])
    for update in (3, 4):
        path = store.save(checkpoint_of(buffer, update))
    left = {file.stat().st_ino for file in tmp_path.rglob("*.piece")}
    assert len(left) == 4, "with the checkpoints that had them, the files of old slabs are gone"
    again = replay_of(kind, STEPS, GAMES, 4, save_replay=True)
    restored(again, load_checkpoint(path))
    assert_same(again, buffer)


def test_a_slab_that_is_cut_off_on_disk_is_written_again(tmp_path: Path) -> None:
    kind = KINDS[0]
    buffer, again = (replay_of(kind, STEPS, GAMES, 4, save_replay=True) for _ in range(2))
    buffer.take(played(kind))
    first = save_checkpoint(tmp_path, checkpoint_of(buffer, 1))
    next(iter(first.glob("*.piece"))).write_bytes(b"cut off")
    restored(again, load_checkpoint(save_checkpoint(tmp_path, checkpoint_of(buffer, 2))))
    assert_same(again, buffer)


def test_without_hard_links_slabs_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    kind = KINDS[0]
    buffer, again = (replay_of(kind, STEPS, GAMES, 4, save_replay=True) for _ in range(2))
    buffer.take(played(kind))
    first, second = (save_checkpoint(tmp_path, checkpoint_of(buffer, update)) for update in (1, 2))
    assert saved_slabs(first).keys() == saved_slabs(second).keys()
    assert {entry.st_nlink for entry in saved_slabs(second).values()} == {1}
    restored(again, load_checkpoint(second))
    assert_same(again, buffer)


def emptied(buffer: ReplayBuffer, checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture) -> str:
    """What a replay says that cannot be restored."""
    with caplog.at_level(logging.WARNING):
        assert restored(buffer, checkpoint).lent == 0
    assert (len(buffer), buffer.waiting, buffer.steps()) == (0, 0, 0)
    return caplog.text


def test_a_replay_that_is_not_saved_fills_again_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = KINDS[0]
    buffer, again = (replay_of(kind, STEPS, GAMES, 4, learning_starts=20) for _ in range(2))
    buffer.take(played(kind)[:1])
    path = save_checkpoint(tmp_path, checkpoint_of(buffer))
    assert saved_slabs(path) == {}
    text = emptied(again, load_checkpoint(path), caplog)
    assert "was not saved with the checkpoint (save_replay): it fills again" in text
    assert "learning starts after 20 decisions" in text
    again.take(played(kind)[1:2])
    assert again.steps() == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"n_step": 2},
        {"slabs": 5},
        {"discount": 0.5},
        {"chain": "own-seat"},
        {"alpha": 0.3},
        {"prioritised": False},
    ],
)
def test_other_settings_need_other_decisions(
    changed: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = KINDS[0]
    made: dict[str, Any] = {"kind": kind, "steps": STEPS, "games": GAMES, "slabs": 4, "save_replay": True}
    buffer, again = replay_of(**made), replay_of(**{**made, **changed})
    buffer.take(played(kind)[:3])
    path = save_checkpoint(tmp_path, checkpoint_of(buffer))
    assert "the settings of the replay or of the tables have changed" in emptied(
        again, load_checkpoint(path), caplog
    )


@pytest.mark.parametrize("damage", ["flipped", "short", "missing"])
def test_a_damaged_slab_costs_the_replay_and_not_the_run(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = KINDS[0]
    buffer, again = (replay_of(kind, STEPS, GAMES, 4, save_replay=True) for _ in range(2))
    buffer.take(played(kind)[:3])
    path = save_checkpoint(tmp_path, checkpoint_of(buffer))
    victim = sorted(path.glob("*.piece"))[1]
    content = victim.read_bytes()
    victim.unlink()
    if damage != "missing":
        victim.write_bytes(content[:-1] + (bytes([content[-1] ^ 1]) if damage == "flipped" else b""))
    text = emptied(again, load_checkpoint(path), caplog)
    assert "the replay is not whole" in text
    assert victim.name in text


def test_a_slab_that_is_used_again_before_it_is_written_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a captured state is written after a long update, in which asynchronous workers played on."""
    kind = KINDS[0]
    buffer, again = (replay_of(kind, STEPS, GAMES, 4, save_replay=True) for _ in range(2))
    slabs = played(kind)
    buffer.take(slabs[:3])
    captured = checkpoint_of(buffer)
    slabs[1].slab.action[0, 0] += 1
    with caplog.at_level(logging.WARNING):
        path = save_checkpoint(tmp_path, captured)
    assert "saved without one of its pieces: slab 1 of table 0 is no longer in the replay" in caplog.text
    assert len(saved_slabs(path)) == 2
    assert "a part of the replay is missing" in emptied(again, load_checkpoint(path), caplog)


def test_a_state_that_does_not_fit_is_refused() -> None:
    kind = KINDS[0]
    buffer = replay_of(kind, STEPS, GAMES, 4, save_replay=True)
    buffer.take(played(kind)[:3])
    state = buffer.state()
    assert isinstance(state.document, dict)
    whole = state.document
    for document in (
        None,
        [],
        {},
        {key: value for key, value in whole.items() if key != "dropped"},
        {key: value for key, value in whole.items() if key != "due"},
        {**whole, "slabs": [3]},
        {**whole, "generations": [1, 2]},
    ):
        again = replay_of(kind, STEPS, GAMES, 4, save_replay=True)
        with pytest.raises(CheckpointError, match="does not hold a replay"):
            again.restore(State(state.tensors, document, state.pieces), Lending(again))


def test_a_slab_comes_back_from_its_content() -> None:
    for kind in KINDS:
        for item in played(kind)[:4]:
            copy = Slab(item.slab.shape, SharedBlock.private(slab_layout(item.slab.shape).nbytes))
            copy.load(item.slab.content())
            assert copy.content() == item.slab.content()
            with pytest.raises(ValueError, match="1 bytes more"):
                copy.load(item.slab.content() + b"x")
            with pytest.raises(ValueError, match=r"reshape|multiple"):
                copy.load(item.slab.content()[:-100])
