"""The weights of a league on disk: written once, and removed when nobody needs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoints_for_tests import checkpoint

from keisei.errors import CheckpointError, CheckpointWriteError
from keisei.runs.checkpoint import PARTIAL, Checkpoint, save_checkpoint
from keisei.runs.snapshots import SnapshotStore, member_name, member_number, named_members


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "league")


def weights(number: int) -> Checkpoint:
    return checkpoint(number)


def test_names_and_numbers() -> None:
    assert (member_name(104), member_number("member-0104")) == ("member-0104", 104)
    assert member_number(member_name(31000)) == 31000
    assert [member_number(name) for name in ("member-7", "update-000000104", "", ".partial-member-0104")] == [
        None
    ] * 4


def test_what_is_saved_is_loaded(store: SnapshotStore) -> None:
    assert store.numbers() == set()
    assert store.save(104, weights(7)) == store.path_of(104)
    assert store.numbers() == {104}
    assert store.load(104).update == 7


def test_a_run_that_goes_back_replaces_later_snapshots(store: SnapshotStore) -> None:
    store.save(104, weights(7))
    store.save(104, weights(8))
    assert store.load(104).update == 8
    with pytest.raises(CheckpointWriteError, match="there is one already"):
        save_checkpoint(store.directory, weights(9), "member-0104")
    assert store.load(104).update == 8, "nothing is lost"


def test_damage_is_named(store: SnapshotStore) -> None:
    path = store.save(104, weights(7)) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"member-0104/model\.safetensors is damaged"):
        store.load(104)


def test_what_an_interrupted_process_left_is_removed(store: SnapshotStore) -> None:
    store.remove_leftovers()  # there is nothing yet
    store.save(103, weights(103))
    (store.directory / f"{PARTIAL}member-0106").mkdir()
    (store.directory / ".removed-member-0099").mkdir()
    store.remove_leftovers()
    assert sorted(path.name for path in store.directory.iterdir()) == ["member-0103"]


def test_members_stay_while_the_league_or_a_checkpoint_needs_them(
    store: SnapshotStore, tmp_path: Path
) -> None:
    for number in range(101, 106):
        store.save(number, weights(number))
    league = {"members": [{"number": 102}, {"number": 104}]}
    kept = save_checkpoint(tmp_path, checkpoint(3, documents={"league": league}))
    without = save_checkpoint(tmp_path, checkpoint(4))
    assert named_members(kept) == {102, 104}
    assert named_members(without) == set()
    store.prune({101, 105}, [kept, without, tmp_path / "damaged"])
    assert store.numbers() == {101, 102, 104, 105}
    store.prune({101, 105}, [without])
    assert store.numbers() == {101, 105}
