"""Slabs and their records: columns, checksums, and what counts as written."""

from __future__ import annotations

import numpy as np
import pytest

from keisei.experience.schema import FIELDS, SlabShape, bytes_per_transition
from keisei.experience.slab import CHECKSUM_LIMIT, Slab, SlabRecord, slab_layout
from keisei.games import make_game
from keisei.machine.shared_memory import SharedBlock

TURNS = SlabShape(steps=4, games=3, seats=2, packed_bytes=20, simultaneous=False)
AT_ONCE = SlabShape(steps=4, games=3, seats=2, packed_bytes=20, simultaneous=True)


def new_slab(shape: SlabShape) -> Slab:
    return Slab(shape, SharedBlock(slab_layout(shape).nbytes))


def test_a_slot_is_a_game_where_seats_take_turns_and_a_seat_where_they_do_not() -> None:
    assert (TURNS.slots, TURNS.transitions) == (3, 12)
    assert (AT_ONCE.slots, AT_ONCE.transitions) == (6, 24)
    slab = new_slab(AT_ONCE)
    assert slab.packed.shape == (5, 6, 20)
    assert slab.action.shape == (4, 6)
    assert slab.value.shape == (5, 6)
    assert slab.reward.shape == (4, 3, 2)
    assert slab.terminated.shape == (4, 3)


def test_columns_do_not_overlap() -> None:
    slab = new_slab(TURNS)
    for number, (_, column) in enumerate(slab.columns(), start=1):
        column.view(np.uint8)[...] = number
    for number, (field, column) in enumerate(slab.columns(), start=1):
        assert (column.view(np.uint8) == number).all(), field.name
    assert {field.name for field in FIELDS} == {field.name for field, _ in slab.columns()}


def test_two_slabs_lie_side_by_side_in_one_block() -> None:
    block = SharedBlock(2 * slab_layout(TURNS).nbytes)
    first, second = Slab(TURNS, block), Slab(TURNS, block, slab_layout(TURNS).nbytes)
    first.packed[:] = 255
    assert not second.packed.any()


@pytest.mark.parametrize("name", [field.name for field in FIELDS if field.per_transition])
def test_the_checksum_sees_every_byte(name: str) -> None:
    slab = new_slab(TURNS)
    before = slab.checksum()
    getattr(slab, name).reshape(-1).view(np.uint8)[-1] ^= 1
    assert slab.checksum() != before


@pytest.mark.parametrize(("name", "flag"), [("score", "terminated"), ("final_packed", "truncated")])
def test_what_only_finished_games_have_counts_only_there(name: str, flag: str) -> None:
    slab = new_slab(AT_ONCE)
    getattr(slab, flag)[2, 1] = True
    before = slab.checksum()
    getattr(slab, name)[1] = 7
    assert slab.checksum() == before, "left over from an earlier use"
    getattr(slab, name)[2] = 7
    assert slab.checksum() != before


def test_finals_belong_to_all_seats_of_a_game() -> None:
    slab = new_slab(AT_ONCE)
    slab.truncated[2, 1] = True
    assert slab.finished("final_value")[2].tolist() == [False, False, True, True, False, False]
    slab.final_seat[:], slab.final_packed[:], slab.final_value[:] = 5, 9, 3.0
    slab.clear_finals(2)
    assert slab.final_seat[2].tolist() == [5, 5, -1, -1, 5, 5]
    assert slab.final_value[2].tolist() == [3, 3, 0, 0, 3, 3]
    assert not slab.final_packed[2, 2:4].any()


def test_large_rows_are_left_out_of_checksums_but_not_of_what_was_written() -> None:
    shape = SlabShape(2, 2, 1, CHECKSUM_LIMIT + 1, False)
    slab = new_slab(shape)
    before = slab.checksum()
    slab.packed[0, 0, 0] = 1
    assert slab.checksum() == before
    assert sum(map(len, slab.written())) - sum(map(len, slab.written(large=False))) == slab.packed.nbytes
    slab.action[0, 0] = 1
    assert slab.checksum() != before


def test_clearing_a_step_leaves_the_others() -> None:
    slab = new_slab(TURNS)
    for field, column in slab.columns():
        if field.per_transition:
            column[...] = 1
    slab.clear_step(1)
    assert not slab.action[1].any()
    assert not slab.packed[1].any()
    assert (slab.action[[0, 2, 3]] == 1).all()
    slab.clear_step(4)
    assert not slab.value[4].any()
    assert (slab.reward[[0, 2, 3]] == 1).all()


def test_a_record_survives_the_pipe() -> None:
    record = SlabRecord(
        table=5, worker=3, epoch=2, sequence=1 << 40, slab=7, version=9, transitions=4096, checksum=0xFFFFFFFF,
        started=1.5, seconds=0.25, game_seconds=0.125, policy_seconds=0.5, waited_seconds=2.0, state_slot=4,
    )  # fmt: skip
    data = record.encode()
    assert SlabRecord.decode(data) == record
    assert len(data) < 128
    assert record.without_slab().slab == -1


def test_a_shogi_transition_is_small() -> None:
    spec = make_game("shogi").spec
    assert bytes_per_transition(SlabShape.of(spec, steps=64, games=64)) < 200


def test_there_is_room_for_every_opponent_and_for_chance() -> None:
    slab = new_slab(TURNS)
    slab.policy[0, 0] = 1025
    slab.owner[0, 0] = 1024
    assert (slab.policy[0, 0], slab.owner[0, 0]) == (1025, 1024)


def test_an_empty_slot_belongs_to_nobody() -> None:
    slab = new_slab(AT_ONCE)
    for step in range(TURNS.steps + 1):
        slab.clear_step(step)
    assert (slab.owner == -1).all()
    assert (slab.policy == 0).all()
