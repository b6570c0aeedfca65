"""Decisions wait for exactly the next slab of their table; those without a known outcome are dropped and counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from brute_force_for_tests import Ply, Row
from histories_for_tests import GAMES, Histories, JudgeOf, Kind, Opinion, names_of, record_of, slabs_of

from keisei.errors import CheckpointError
from keisei.experience import open_decisions
from keisei.experience.collected import CollectedSlab
from keisei.experience.rollout import ExperienceBuffer
from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.state import State

KIND = Kind(seats=3)
ENDS = [4, 8, 12, 16]


def played(seed: int, kind: Kind = KIND, table: int = 0) -> list[CollectedSlab]:
    """Four slabs of one table."""
    histories = Histories(np.random.default_rng(seed), kind, "alone")
    columns = [histories.column(ENDS[-1]) for _ in range(GAMES)]
    return slabs_of(columns, kind, ENDS, Opinion(seed, False), table)


def new_buffer(kind: Kind = KIND, seed: int = 1) -> ExperienceBuffer:
    return ExperienceBuffer(kind.spec, 0.9, 0.8, JudgeOf(Opinion(seed, False)))


def retold(item: CollectedSlab, sequence: int, epoch: int = 0, table: int = 0) -> CollectedSlab:
    return replace(item, record=record_of(table, sequence, epoch))


def names(buffer: ExperienceBuffer) -> list[int]:
    return names_of(buffer.view().whole.packed)


def test_a_slab_that_follows_closes_what_waits() -> None:
    slabs, buffer = played(1), new_buffer()
    buffer.take(slabs[:1])
    assert (waiting := buffer.carried) > 0
    alone = new_buffer()
    alone.take([retold(slabs[1], 0)])
    buffer.take(slabs[1:2])
    closed = set(names(buffer)) - set(names(alone))
    assert 0 < len(closed) <= waiting
    assert buffer.carried == alone.carried + waiting - len(closed)
    assert buffer.dropped_carries == {"gap": 0, "reset": 0, "age": 0}


@pytest.mark.parametrize(
    ("sequence", "epoch", "reason"),
    [(2, 0, "gap"), (0, 0, "gap"), (1, 1, "reset"), (0, 1, "reset"), (5, 1, "reset")],
)
def test_what_waits_for_another_slab_is_dropped_and_counted(sequence: int, epoch: int, reason: str) -> None:
    slabs, buffer, alone = played(1), new_buffer(), new_buffer()
    buffer.take(slabs[:1])
    waiting = buffer.carried
    for either in (buffer, alone):
        either.take([retold(slabs[1], sequence, epoch)])
    assert names(buffer) == names(alone)
    assert buffer.carried == alone.carried
    assert buffer.dropped_carries == {"gap": 0, "reset": 0, "age": 0, reason: waiting}
    assert buffer.numbers() == {"rollout/carried": buffer.carried, "rollout/dropped_carries": waiting}


def test_tables_do_not_close_each_other() -> None:
    slabs, buffer = played(1), new_buffer()
    buffer.take([retold(slabs[0], 0, table=0), retold(slabs[0], 0, table=3)])
    waiting = buffer.carried
    buffer.take([retold(slabs[1], 1, table=5)])
    alone = new_buffer()
    alone.take([retold(slabs[1], 0)])
    assert names(buffer) == names(alone)
    assert buffer.carried == waiting + alone.carried


def waiting_game(plies: int) -> list[Ply]:
    """Seat 0 decides once, and seat 1 plays on alone. Every ply brings seat 0 a reward of 1."""
    return [Ply({int(t > 0): Row(t, int(t > 0), 0)}, [1.0, 0.0]) for t in range(plies + 1)]


def test_a_decision_may_wait_for_many_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, plies = Kind(seats=2), 12
    column = waiting_game(plies)
    column[-2] = replace(column[-2], end="terminated")
    slabs = slabs_of([column], kind, range(2, plies + 1, 2), Opinion(1, False))
    buffer = new_buffer(kind)
    for slab in slabs[:-1]:
        buffer.take([slab])
        assert 0 not in names(buffer)
    buffer.take(slabs[-1:])
    (row,) = np.flatnonzero(np.array(names(buffer)) == 0)
    assert buffer.view().whole.returns[row] == pytest.approx(sum(0.9**ply for ply in range(plies)))
    monkeypatch.setattr(open_decisions, "LONGEST_WAIT", 3)
    buffer = new_buffer(kind)
    for number, slab in enumerate(slabs):
        assert buffer.dropped_carries["age"] == (number > 3)
        buffer.take([slab])
    assert 0 not in names(buffer)


def test_a_run_that_is_taken_up_again_closes_the_same() -> None:
    first, second = played(1), played(2, table=4)
    going_on, stopped, resumed = new_buffer(), new_buffer(), new_buffer()
    for buffer in (going_on, stopped):
        buffer.take([retold(first[0], 7, table=9)])
        buffer.take([retold(first[0], 9, table=9), first[0], second[0]])
    resumed.restore(stopped.state())
    assert resumed.carried == going_on.carried > 0
    assert resumed.dropped_carries == going_on.dropped_carries != new_buffer().dropped_carries
    for buffer in (going_on, resumed):
        buffer.take([retold(first[1], 10, table=9), first[1], second[1]])
    for name in ("packed", "actions", "log_probs", "values", "advantages", "returns"):
        found, expected = (getattr(buffer.view().whole, name) for buffer in (resumed, going_on))
        np.testing.assert_array_equal(found, expected)


def test_a_checkpoint_holds_what_waits(tmp_path: Path) -> None:
    buffer, again = new_buffer(), new_buffer()
    buffer.take(played(1)[:1])
    state = buffer.state()
    checkpoint = Checkpoint("x", {"update": 1}, state.tensors, documents={"experience": state.document})
    loaded = load_checkpoint(save_checkpoint(tmp_path, checkpoint))
    again.restore(State(loaded.tensors, loaded.documents["experience"]))
    assert again.carried == buffer.carried > 0
    buffer.take(played(1)[1:2])
    again.take(played(1)[1:2])
    np.testing.assert_array_equal(again.view().whole.returns, buffer.view().whole.returns)


def test_nothing_that_waits_needs_no_tensors() -> None:
    buffer = new_buffer()
    state = buffer.state()
    assert not state.tensors
    buffer.take(played(1)[:1])
    assert buffer.carried
    buffer.restore(state)
    assert not buffer.carried


def broken_states() -> list[State]:
    buffer = new_buffer()
    buffer.take(played(1)[:1])
    state = buffer.state()
    short = {name: tensor[:-1] for name, tensor in state.tensors["carry"].items()}
    columns = state.tensors["carry"]
    missing = {name: tensor for name, tensor in state.tensors["carry"].items() if name != "plies"}
    twice = {name: np.concatenate([column[:1]] * len(column)) for name, column in columns.items()}
    return [
        State(),
        State(document={"dropped": {}}),
        State({}, state.document),
        State({"carry": short}, state.document),
        State({"carry": missing}, state.document),
        State(state.tensors, {"tables": [[0, 0]], "dropped": {}}),
        State(state.tensors, {"tables": [[0, 0, 0, len(short["plies"]) + 1]], "dropped": {}}),
        State({"carry": {**columns, "action": columns["action"] + 10_000}}, state.document),
        State({"carry": {**columns, "chain": -1 - columns["chain"]}}, state.document),
        State({"carry": {**columns, "seat": columns["seat"] + 3}}, state.document),
        State({"carry": {**columns, "plies": -columns["plies"]}}, state.document),
        State({"carry": {**columns, "plies": columns["plies"] + (1 << 30)}}, state.document),
        State({"carry": twice}, state.document),
        State({"carry": {**columns, "earned": columns["earned"].astype(np.float32)}}, state.document),
        State({"carry": {**columns, "packed": columns["packed"][:, :-1]}}, state.document),
    ]


@pytest.mark.parametrize("number", range(15))
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(number: int) -> None:
    buffer = new_buffer()
    buffer.take(played(1)[:1])
    before = buffer.carried
    with pytest.raises(CheckpointError, match="waiting for their outcome"):
        buffer.restore(broken_states()[number])
    assert buffer.carried == before


def test_decisions_of_seats_that_the_table_does_not_have_are_refused() -> None:
    """A checkpoint does not say how many games its tables have. The next slab does."""
    buffer = new_buffer()
    buffer.take(played(1)[:1])
    state = buffer.state()
    columns = state.tensors["carry"]
    buffer.restore(State({"carry": {**columns, "chain": columns["chain"] + 3 * GAMES}}, state.document))
    with pytest.raises(CheckpointError, match="are of seats that it does not have"):
        buffer.take(played(1)[1:2])


def test_decisions_that_an_earlier_version_saved_are_closed_too() -> None:
    """It rounded their rewards, and called a chain a place."""
    going_on, resumed = new_buffer(), new_buffer()
    slabs = played(1)
    going_on.take(slabs[:1])
    state = going_on.state()
    columns = dict(state.tensors["carry"])
    older = {name: columns[name] for name in ("packed", "action", "log_prob", "plies", "slabs")}
    older |= {"place": columns["chain"], "earned": columns["earned"].astype(np.float32)}
    resumed.restore(State({"carry": older}, state.document))
    assert resumed.carried == going_on.carried > 0
    for buffer in (going_on, resumed):
        buffer.take(slabs[1:2])
    assert names(resumed) == names(going_on)
    np.testing.assert_allclose(resumed.view().whole.returns, going_on.view().whole.returns, rtol=1e-6)
