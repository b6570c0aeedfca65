"""A replay holds what whole games say, also across slabs, gaps and the ring's seam."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force_for_tests import Column, Ply, Return, Row, returns
from histories_for_tests import GAMES, KINDS, LONELY, Histories, Kind
from hypothesis import given, settings
from hypothesis import strategies as st
from replays_for_tests import DISCOUNT, all_held, cut, held, replay_of, retold

from keisei.errors import ConfigError
from keisei.experience import drawing, links, replay_slabs
from keisei.experience.collected import CollectedSlab
from keisei.experience.contract import Buffer
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.native import load_core, usable_builds

STEPS, SLABS = 4, 7


def expected_after(
    tables: list[list[tuple[Column, dict[int, Return | None]]]], taken: list[tuple[int, int]], capacity: int
) -> dict[int, Return]:
    """By name, what can be drawn when slabs (table, number) were taken, of which the ring has the last."""
    kept = taken[-capacity:]
    known: dict[int, Return] = {}
    for number, columns in enumerate(tables):
        mine = [slab for table, slab in taken if table == number]
        for column, outcomes in columns:
            here = {row.name for t, row in column.decisions() if (number, column.slab_of(t)) in kept}
            known |= {
                name: outcome
                for name, outcome in outcomes.items()
                if name in here and outcome is not None and outcome.known_by in mine
            }
    return known


def check(buffer: ReplayBuffer, expected: dict[int, Return]) -> None:
    found = all_held(buffer)
    assert found.keys() == expected.keys()
    for name, outcome in expected.items():
        row = found[name]
        assert row.next == outcome.next
        assert row.reward == pytest.approx(outcome.reward, abs=1e-5)
        assert row.discount == pytest.approx(outcome.discount, abs=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    kind=st.sampled_from([*KINDS, LONELY]),
    owners=st.sampled_from(["alone", "seated", "mixed"]),
    owner=st.sampled_from([0, 0, 1]),
    n_step=st.integers(1, 5),
    capacity=st.integers(4, 12),
    own_seat=st.booleans(),
)
def test_it_holds_what_whole_games_say(
    seed: int, kind: Kind, owners: str, owner: int, n_step: int, capacity: int, own_seat: bool
) -> None:
    rng = np.random.default_rng(seed)
    histories = Histories(rng, kind, owners)
    # Three chances in four that a slab arrives; the last one always does. One in eight that games begin anew.
    arrived = [[n for n in range(SLABS) if n == SLABS - 1 or rng.random() < 0.75] for _ in range(2)]
    resets = [[n for n in mine if rng.random() < 0.125] for mine in arrived]
    ends = range(STEPS, (SLABS + 1) * STEPS, STEPS)
    plies = [[histories.column(SLABS * STEPS) for _ in range(GAMES)] for _ in range(2)]
    one_chain = kind.turning and not own_seat
    columns = [
        [Column(column, ends, mine, owner, DISCOUNT, one_chain, False, anew) for column in of_table]
        for of_table, mine, anew in zip(plies, arrived, resets, strict=True)
    ]
    tables = [[(column, returns(column, n_step)) for column in of_table] for of_table in columns]
    slabs = [cut(of_table, kind, STEPS, table) for table, of_table in enumerate(plies)]
    order = [(table, slab) for slab in range(SLABS) for table in range(2) if slab in arrived[table]]
    chain = "own-seat" if own_seat else "auto"
    buffer = replay_of(kind, STEPS, GAMES, capacity, n_step=n_step, chain=chain, tables=2, owner=owner)
    for done, (table, slab) in enumerate(order, start=1):
        epoch = sum(number <= slab for number in resets[table])
        buffer.take([retold(slabs[table][slab], epoch=epoch)])
        check(buffer, expected_after(tables, order[:done], capacity))


def played(seed: int, kind: Kind, slabs: int = 6, table: int = 0) -> list[CollectedSlab]:
    histories = Histories(np.random.default_rng(seed), kind, "alone")
    return cut([histories.column(slabs * STEPS) for _ in range(GAMES)], kind, STEPS, table)


def test_it_keeps_the_contract_of_buffers_and_of_views() -> None:
    buffer: Buffer[ReplayBuffer] = replay_of(KINDS[0], STEPS, GAMES, 4)
    view: ReplayView = buffer.view()
    assert view.steps() == 0
    assert buffer.most_leases == 4


@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_drawn_waits_or_is_counted_as_dropped(kind: Kind) -> None:
    buffer = replay_of(kind, STEPS, GAMES, 12, n_step=3)
    decisions = 0
    for number, item in enumerate(played(3, kind)):
        if number == 2:
            continue  # a gap
        item = retold(item, epoch=int(number > 4))
        decisions += int(item.slab.acting[:STEPS].sum())
        buffer.take([item])
    dropped = buffer.dropped
    assert dropped["overwritten"] == 0
    assert len(buffer) + buffer.waiting + sum(dropped.values()) == decisions


@pytest.mark.parametrize(("sequence", "epoch", "reason"), [(2, 0, "gap"), (0, 0, "gap"), (1, 1, "reset")])
def test_a_return_ends_where_the_record_breaks_off(sequence: int, epoch: int, reason: str) -> None:
    """Seat 0 acts there and seat 1 does not, so the decisions of seat 1 are lost."""
    kind = Kind(seats=2)
    plies = [Ply({t % 2: Row(t, t % 2, 0)}, [1.0, 0.0]) for t in range(9)]
    buffer = replay_of(kind, STEPS, 1, 4, n_step=2)
    first, second = cut([plies], kind, STEPS)
    buffer.take([first])
    assert (set(all_held(buffer)), buffer.waiting) == (set(), 4)
    buffer.take([retold(second, sequence=sequence, epoch=epoch)])
    found = all_held(buffer)
    assert set(found) == {0, 2}
    assert [(found[name].next, found[name].discount) for name in (0, 2)] == [
        (4, pytest.approx(DISCOUNT**4)),
        (4, pytest.approx(DISCOUNT**2)),
    ]
    assert buffer.dropped == {"gap": 0, "reset": 0, "overwritten": 0, reason: 2}


def test_what_waits_when_its_slab_is_overwritten_is_counted() -> None:
    """One table gives no more slabs, and the ring comes round."""
    kind = Kind(seats=3)
    buffer = replay_of(kind, STEPS, GAMES, 4)
    buffer.take(played(1, kind, table=5)[:1])
    waiting = buffer.waiting
    assert waiting > 0
    for item in played(2, kind)[:3]:
        buffer.take([item])
    assert buffer.dropped["overwritten"] == 0
    buffer.take([played(2, kind)[3]])
    assert buffer.dropped["overwritten"] == waiting


def test_leases_go_round() -> None:
    kind = KINDS[0]
    buffer = replay_of(kind, STEPS, GAMES, 4)
    slabs = played(1, kind)
    first = buffer.take(slabs[:3])
    assert [lease.slab for lease in first.kept] == [0, 1, 2]
    assert first.ended == ()
    second = buffer.take(slabs[3:6])
    assert [lease.slab for lease in second.kept] == [3, 4, 5]
    assert [lease.slab for lease in second.ended] == [0, 1]


def test_a_collection_larger_than_the_ring_leaves_its_end() -> None:
    kind = KINDS[0]
    buffer, other = replay_of(kind, STEPS, GAMES, 4), replay_of(kind, STEPS, GAMES, 4)
    leases = buffer.take(played(1, kind))
    assert [lease.slab for lease in leases.kept] == [2, 3, 4, 5]
    assert leases.ended == ()
    for item in played(1, kind):
        other.take([item])
    assert all_held(buffer) == all_held(other)


def test_copies_are_kept_without_a_lease() -> None:
    kind = KINDS[0]
    buffer, other = replay_of(kind, STEPS, GAMES, 4), replay_of(kind, STEPS, GAMES, 4)
    copies = [retold(item, slab=-1) for item in played(1, kind)]
    leases = buffer.take(copies)
    assert (leases.kept, leases.ended) == ((), ())
    other.take(played(1, kind))
    assert all_held(buffer) == all_held(other)


def test_the_same_key_gives_the_same_sample_and_another_key_another() -> None:
    for prioritised in (False, True):
        buffer = replay_of(KINDS[0], STEPS, GAMES, 6, prioritised=prioritised)
        buffer.take(played(1, KINDS[0]))
        view = buffer.view()
        first, again, other = (view.sample(64, 7, key) for key in (3, 3, 4))
        np.testing.assert_array_equal(first.places, again.places)
        assert (first.places != other.places).any()
        assert (first.places != view.sample(64, 8, 3).places).any()


def test_equal_drawing_reaches_all_decisions_and_no_other() -> None:
    for kind in KINDS:
        equal, prioritised = (
            replay_of(kind, STEPS, GAMES, 4, prioritised=chosen) for chosen in (False, True)
        )
        for buffer in (equal, prioritised):
            buffer.take(played(5, kind))
        assert len(equal) == len(prioritised) > 0
        sample = equal.view().sample(100 * len(equal), 1, 1)
        assert held(sample) == all_held(prioritised)
        assert (sample.weights == 1).all()


def test_a_slab_of_another_shape_is_refused_and_changes_nothing() -> None:
    kind = KINDS[0]
    buffer = replay_of(kind, STEPS, GAMES, 4)
    buffer.take(played(1, kind)[:2])
    before = all_held(buffer)
    histories = Histories(np.random.default_rng(1), kind, "alone")
    (other,) = cut([histories.column(STEPS)], kind, STEPS, table=7)
    with pytest.raises(ConfigError, match=r"keeps slabs of SlabShape\(steps=4, games=3, .* one of .*games=1"):
        buffer.take([other])
    assert all_held(buffer) == before


@pytest.mark.skipif(len(usable_builds()) < 2, reason="this processor runs one build only")
@pytest.mark.parametrize("kind", KINDS)
def test_both_builds_of_the_core_give_the_same_bits(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = []
    for build in usable_builds():
        for module in (links, replay_slabs, drawing):
            monkeypatch.setattr(module, "core", load_core(build))
        buffer = replay_of(kind, STEPS, GAMES, 5, n_step=3)
        buffer.take(played(8, kind))
        first = buffer.view().sample(99, 1, 2)
        buffer.view().update_priorities(first, np.linspace(0, 5, 99, dtype=np.float32))
        samples.append((first, buffer.view().sample(99, 1, 3)))
    for found, expected in zip(*samples, strict=True):
        for name in ReplaySample.__slots__:
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
