"""The memory of one agent: only its own decisions, and never half of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from keisei.errors import ConfigError
from keisei.experience.agent_memory import AgentMemory, DrawnSamples, MemoryView
from keisei.experience.agent_slabs import copy_of_agent, empty_slab, shape_of_agent
from keisei.experience.collected import CollectedSlab
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import GameSpec, ObservationSpec

SEATS, GAMES, STEPS, BYTES = 3, 2, 4, 8
SPEC = GameSpec("memo", SEATS, 100, ObservationSpec((2,), np.dtype(np.float32)), BYTES, simultaneous=True)
SHAPE = SlabShape.of(SPEC, STEPS, GAMES)
TURNS = SlabShape(STEPS, GAMES, 2, BYTES, simultaneous=False)


def record(sequence: int) -> SlabRecord:
    return SlabRecord(0, 0, 0, sequence, 0, 1, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


def marked(sequence: int) -> CollectedSlab:
    """A slab in which every number of a transition is the same mark, so that a mixture shows."""
    slab = empty_slab(SHAPE)
    slots = np.arange(GAMES * SEATS)
    slab.acting[:], slab.seat[:], slab.owner[:] = True, slots % SEATS, slots % SEATS
    for step in range(STEPS + 1):
        mark = sequence * (STEPS + 1) + step
        slab.packed[step] = np.frombuffer(np.uint64(mark).tobytes(), np.uint8)
        if step < STEPS:
            slab.action[step] = mark
            slab.reward[step] = mark
    return CollectedSlab(record(sequence), 0, slab)


def memory(
    agent: int = 1, capacity: int = 4 * STEPS * GAMES, seed: int = 0, **settings: object
) -> AgentMemory:
    replay = ReplaySettings(capacity=capacity, n_step=1, learning_starts=0, learning_steps=1).model_copy(
        update=settings
    )
    return AgentMemory(SPEC, SHAPE, replay, 1.0, agent=agent, batch_size=8, seed=seed)


# What an agent has seen


def test_an_agent_keeps_its_own_slots_and_rewards() -> None:
    item = marked(0)
    slab = item.slab
    slab.reward[:] = np.arange(SEATS)
    slab.acting[1, 1] = False
    slab.owner[2, 4] = -1
    own = copy_of_agent(item, 1, empty_slab(shape_of_agent(SHAPE))).slab
    assert own.shape.seats == 1
    assert (own.reward == 1).all()
    assert own.acting.sum() == slab.acting[:, 1::SEATS].sum() == (STEPS + 1) * GAMES - 1
    assert (own.owner == 0).sum() == STEPS * GAMES - 2
    assert (own.seat == 0).all()
    np.testing.assert_array_equal(own.packed[0], slab.packed[0, 1::SEATS])


def test_in_games_that_take_turns_others_leave_no_trace() -> None:
    slab = empty_slab(TURNS)
    slab.acting[:], slab.packed[:] = True, 9
    slab.seat[:] = np.arange(STEPS + 1)[:, None] % 2
    slab.owner[:] = slab.seat[:STEPS]
    slab.truncated[3], slab.final_seat[3] = True, 0
    item = CollectedSlab(record(0), 0, slab)
    first, second = (copy_of_agent(item, agent, empty_slab(shape_of_agent(TURNS))).slab for agent in (0, 1))
    assert first.acting[:, 0].tolist() == [True, False, True, False, True]
    assert second.owner[:, 0].tolist() == [-1, 0, -1, 0]
    assert not second.packed[~second.acting].any()
    assert (first.final_seat[3] == 0).all()
    assert (second.final_seat[3] == -1).all()


def test_another_agents_rows_change_no_bit() -> None:
    mine, disturbed = memory(), memory()
    for sequence in range(3):
        item = marked(sequence)
        mine.take([item])
        for other in (0, 2):
            item.slab.packed[:, other::SEATS] = 255
            item.slab.reward[:, :, other] = np.nan
            item.slab.action[:, other::SEATS] = -1
        disturbed.take([item])
    for key in range(5):
        expected, found = (part.sample(16, seed=3, key=key) for part in (mine, disturbed))
        for name in type(expected).__slots__:
            np.testing.assert_array_equal(getattr(expected, name), getattr(found, name))


# Steps that are due


def test_steps_add_up_until_they_are_handed_out() -> None:
    own = memory(learning_steps=2)
    own.take([marked(0)])
    own.take([marked(1)])
    assert own.due() == 4
    assert own.view().steps() == 4
    assert own.due() == own.view().steps() == 0


def test_a_fixed_number_of_steps_is_due_once_for_a_collection() -> None:
    fixed, by_ratio = memory(learning_steps=2), memory(learning_steps="ratio", sample_to_insert_ratio=8.0)
    for own in (fixed, by_ratio):
        own.take([marked(0), marked(1)])
    assert fixed.due() == 2
    assert by_ratio.due() == len(by_ratio), "samples of 8 rows, each row drawn 8 times"


def test_a_restored_memory_draws_the_same() -> None:
    own, other = memory(save_replay=True), memory(save_replay=True)
    for sequence in range(6):
        own.take([marked(sequence)])
    own.snapshot(3)
    other.restore(own.state())
    assert other.due() == own.due() == 6
    own.take([marked(6)])
    other.take([marked(6)])
    for expected, found in zip(own.snapshot(2), other.snapshot(2), strict=True):
        np.testing.assert_array_equal(expected.packed, found.packed)
    for key in range(3):
        np.testing.assert_array_equal(own.sample(8, 1, key).packed, other.sample(8, 1, key).packed)
    np.testing.assert_array_equal(own.snapshot(2)[1].packed, other.snapshot(2)[1].packed)


def test_a_memory_that_was_not_saved_owes_no_steps_from_before() -> None:
    """It starts empty, and new decisions are not learned from more often for it."""
    own, other = (memory(save_replay=False, learning_steps=2) for _ in range(2))
    own.take([marked(0)])
    assert own.due() == 2
    other.restore(own.state())
    assert other.due() == 0
    other.take([marked(1)])
    assert other.due() == 2


def test_nothing_is_due_once_all_decisions_are_overwritten() -> None:
    """As when an agent has left the game for so long."""
    own = memory(learning_steps=2)
    own.take([marked(0)])
    assert own.due() == 2
    for sequence in range(1, 5):
        idle = marked(sequence)
        idle.slab.acting[:] = False
        own.take([idle])
    assert len(own) == own.due() == own.view().steps() == 0


def test_an_empty_memory_has_nothing_to_draw() -> None:
    with pytest.raises(ConfigError, match="has no decision to draw"):
        memory().sample(4, 0, 0)


# While another thread writes


@contextmanager
def writing(own: AgentMemory) -> Iterator[None]:
    """Fills the memory over and over in a thread of its own."""
    items = [marked(sequence) for sequence in range(64)]
    stop = threading.Event()

    def write() -> None:
        for sequence in range(64, 1 << 30):
            if stop.is_set():
                return
            item = items[sequence % 64]
            own.take([CollectedSlab(record(sequence), 0, item.slab)])
            if sequence % 8 == 0:
                stop.wait(0.0002)  # a writer without any pause would leave readers no time

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def is_whole(sample: object) -> bool:
    packed = sample.packed.view(np.uint64).squeeze(1).astype(np.int64)  # type: ignore[attr-defined]
    following = sample.next_packed.view(np.uint64).squeeze(1).astype(np.int64)  # type: ignore[attr-defined]
    bound = sample.discounts != 0  # type: ignore[attr-defined]
    return bool(
        (packed == sample.actions).all()  # type: ignore[attr-defined]
        and (sample.rewards == sample.actions).all()  # type: ignore[attr-defined]
        and ((following == packed + 1) | (packed % (STEPS + 1) == STEPS - 1) | ~bound).all()
    )


@pytest.mark.parametrize("readers", [1, 3])
def test_no_transition_is_ever_torn(readers: int) -> None:
    own = memory()
    for sequence in range(4):
        own.take([marked(sequence)])
    torn: list[object] = []

    def read() -> None:
        for key in range(60):
            for sample in (own.sample(32, 5, key), *own.snapshot(2)):
                if not is_whole(sample):
                    torn.append(sample)

    with writing(own):
        threads = [threading.Thread(target=read) for _ in range(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not torn


def test_a_sample_that_another_thread_wrote_into_is_drawn_again() -> None:
    own = memory()
    for sequence in range(4):
        own.take([marked(sequence)])
    draws = []
    draw = own._replay.sample

    def disturbed(*args: int) -> object:
        draws.append(args)
        found = draw(*args)  # type: ignore[arg-type]
        if len(draws) == 1:
            own.take([marked(4)])
        return found

    own._replay.sample = disturbed  # type: ignore[method-assign, assignment]
    own.sample(8, 0, 0)
    assert len(draws) == 2


@pytest.mark.parametrize("raises", [False, True])
def test_nothing_counts_that_was_drawn_while_another_thread_writes(raises: bool) -> None:
    """Whether half-written rows give a sample or an error, and whether the write ends meanwhile or goes on."""
    own = memory()
    own.take([marked(0)])
    own._writes += 1  # a write has begun
    draws = []
    draw = own._replay.sample

    def half_written(*args: int) -> object:
        draws.append(args)
        if len(draws) == 2:
            own._writes += 1  # and ends while the second sample is drawn
        if raises and len(draws) < 3:
            raise IndexError("half a row")
        return draw(*args)  # type: ignore[arg-type]

    own._replay.sample = half_written  # type: ignore[method-assign, assignment]
    own.sample(8, 0, 0)
    assert len(draws) == 3


def test_an_error_that_no_write_explains_is_raised() -> None:
    own = memory()
    own.take([marked(0)])
    with pytest.raises(ValueError, match="negative"):
        own.sample(-1, 0, 0)


def test_samples_drawn_ahead_are_those_of_the_seed_and_the_next_keys_at_the_progress_of_the_run() -> None:
    own = memory(seed=3, prioritised=True, beta=0.0, final_beta=1.0)
    own.take([marked(0)])
    own.update_priorities(own.sample(8, 0, 0), np.arange(8, dtype=np.float32))
    drawn = [*own.snapshot(2, 0.3), *own.snapshot(1, 0.9)]
    for key, (sample, progress) in enumerate(zip(drawn, (0.3, 0.3, 0.9), strict=True)):
        expected = own.sample(8, 3, key, progress)
        np.testing.assert_array_equal(sample.packed, expected.packed)
        np.testing.assert_array_equal(sample.weights, expected.weights)
        assert len(np.unique(sample.weights)) > 1


def test_a_sample_drawn_ahead_is_handed_out_until_it_is_learned_from() -> None:
    own = memory(learning_steps=2)
    own.take([marked(0)])
    drawn = own.view().drawn(0.5)
    first = drawn.sample(8, 0, 0)
    assert drawn.sample(8, 0, 0) is first, "the step failed"
    drawn.update_priorities(first, np.ones(8, np.float32))
    assert drawn.sample(8, 0, 0) is not first
    assert drawn.steps() == 2


def test_a_view_draws_ahead_at_the_progress_that_it_is_given() -> None:
    own = memory(prioritised=True, beta=0.0, final_beta=1.0)
    own.take([marked(0)])
    own.update_priorities(own.sample(8, 0, 0), np.arange(8, dtype=np.float32))
    (sample,) = MemoryView(own, 1).drawn(0.3)._samples
    np.testing.assert_array_equal(sample.weights, own.sample(8, 0, 0, 0.3).weights)
    assert not np.array_equal(sample.weights, own.sample(8, 0, 0, 1.0).weights)


def test_samples_drawn_ahead_stay_as_they_were() -> None:
    own = memory(learning_steps=3, prioritised=True)
    own.take([marked(0)])
    view = own.view()
    drawn: DrawnSamples = view.drawn(0.5)
    assert drawn.steps() == 3
    first = drawn.sample(8, 0, 0)
    before = first.packed.copy()
    for sequence in range(1, 9):
        own.take([marked(sequence)])
    np.testing.assert_array_equal(first.packed, before)
    drawn.update_priorities(first, np.ones(8, np.float32))
    drawn.settle()
    assert own.numbers()["rollout/late_priorities"] == 8, "they came after their decisions were overwritten"


def test_a_slab_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        memory().take([CollectedSlab(record(0), 0, empty_slab(SlabShape(2, 2, SEATS, BYTES, True)))])


def test_slabs_are_private() -> None:
    """Two memories have no byte in common."""
    one, other = memory(), memory()
    slabs: list[Slab] = [*one._slabs, *other._slabs]
    assert not any(
        np.shares_memory(a.packed, b.packed) for place, a in enumerate(slabs) for b in slabs[place + 1 :]
    )
