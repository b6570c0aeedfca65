"""Every estimator equals the brute force, in every kind of game and however it is cut into slabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pytest
from brute_force_for_tests import Column, Credit, Lesson, Ply, lessons
from histories_for_tests import (
    GAMES,
    KINDS,
    LONELY,
    Histories,
    JudgeOf,
    Kind,
    Opinion,
    action_of,
    names_of,
    record_of,
    slabs_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.experience.collected import CollectedSlab, Leases
from keisei.experience.rollout import ExperienceBuffer, Minibatch

TABLES = 2


@dataclass(frozen=True)
class Case:
    """All that one example draws."""

    seed: int
    owners: str
    owner: int
    steps: Sequence[int]
    """Of each slab."""
    fresh: Sequence[bool]
    """Of each slab: whether a new update begins with it."""
    fates: Sequence[str]
    """Of each slab: it arrives, it is missing, or it arrives after a reset of its games."""
    discount: float
    trace: float
    rho_clip: float
    trace_clip: float

    @property
    def ends(self) -> list[int]:
        return list(accumulate(self.steps))

    @property
    def updates(self) -> list[int]:
        """The number of the update in which each slab is learned from."""
        return list(accumulate([0, *(int(fresh) for fresh in self.fresh[1 : len(self.steps)])]))

    def slabs(self, fate: str) -> list[int]:
        return [number for number in range(len(self.steps)) if self.fates[number] == fate]

    @property
    def arrived(self) -> list[int]:
        return sorted([*self.slabs("arrives"), *self.slabs("reset")])

    def column(self, plies: Sequence[Ply], kind: Kind) -> Column:
        """One place of a table, and the slabs that tell of it."""
        return Column(
            plies,
            self.ends,
            self.arrived,
            self.owner,
            self.discount,
            one_chain=kind.turning,
            stops=True,
            resets=self.slabs("reset"),
        )


cases = st.builds(
    Case,
    seed=st.integers(0, 2**32 - 1),
    owners=st.sampled_from(["alone", "seated", "mixed"]),
    owner=st.sampled_from([0, 0, 1]),
    steps=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    fresh=st.lists(st.booleans(), min_size=6, max_size=6),
    fates=st.lists(st.sampled_from([*["arrives"] * 6, "missing", "reset"]), min_size=6, max_size=6),
    discount=st.floats(0.5, 1.0),
    trace=st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0)),
    rho_clip=st.floats(0.3, 3.0),
    trace_clip=st.floats(0.3, 3.0),
)


def buffer_of(kind: Kind, case: Case, judge: JudgeOf) -> ExperienceBuffer:
    return ExperienceBuffer(
        kind.spec,
        case.discount,
        case.trace,
        judge,
        vtrace=judge.opinion.vtrace,
        rho_clip=case.rho_clip,
        trace_clip=case.trace_clip,
        owner=case.owner,
    )


def expected(columns: Sequence[Column], case: Case, opinion: Opinion) -> list[dict[int, Lesson]]:
    """By update and name."""
    credit = Credit(case.trace, case.rho_clip, case.trace_clip)
    found: list[dict[int, Lesson]] = [{} for _ in range(case.updates[-1] + 1)]
    for column in columns:
        for name, lesson in lessons(column, case.updates, credit, opinion).items():
            found[lesson.update][name] = lesson
    return found


def check(found: Minibatch, wanted: dict[int, Lesson], opinion: Opinion) -> None:
    names = names_of(found.packed)
    assert sorted(names) == sorted(wanted), "each decision once, in the update in which its outcome is known"
    lessons_in_order = [wanted[name] for name in names]
    assert found.actions.tolist() == [action_of(name) for name in names]
    assert found.log_probs.tolist() == [opinion.behaviour(name) for name in names]
    close = {"rtol": 2e-4, "atol": 2e-4}
    advantages = [lesson.vtrace if opinion.vtrace else lesson.gae for lesson in lessons_in_order]
    targets = [lesson.target if opinion.vtrace else lesson.value + lesson.gae for lesson in lessons_in_order]
    np.testing.assert_allclose(found.values, [lesson.value for lesson in lessons_in_order], **close)
    np.testing.assert_allclose(found.returns, targets, **close)
    np.testing.assert_allclose(found.advantages, advantages, **close)


def told(item: CollectedSlab, case: Case) -> CollectedSlab:
    """The slab with the epoch of its games."""
    record = item.record
    epoch = sum(number <= record.sequence for number in case.slabs("reset"))
    return replace(item, record=record_of(record.table, record.sequence, epoch))


@pytest.mark.parametrize("vtrace", [False, True], ids=["GAE", "V-trace"])
@pytest.mark.parametrize("kind", [*KINDS, LONELY], ids=str)
@settings(max_examples=40)
@given(case=cases)
def test_estimates_equal_the_brute_force(kind: Kind, vtrace: bool, case: Case) -> None:
    """In every update each decision is there once, as soon as its outcome is known. Others wait or are counted."""
    histories = Histories(np.random.default_rng(case.seed), kind, case.owners)
    tables = [[histories.column(case.ends[-1]) for _ in range(GAMES)] for _ in range(TABLES)]
    opinion = Opinion(case.seed, vtrace)
    slabs = [slabs_of(columns, kind, case.ends, opinion, table) for table, columns in enumerate(tables)]
    judge = JudgeOf(opinion)
    buffer = buffer_of(kind, case, judge)
    columns = [case.column(plies, kind) for table in tables for plies in table]
    for update, wanted in enumerate(expected(columns, case, opinion)):
        judge.update, judge.asked = update, []
        taken = [
            told(table[number], case)
            for table in slabs
            for number in case.arrived
            if case.updates[number] == update
        ]
        assert buffer.take(taken) == Leases()
        check(buffer.view().whole, wanted, opinion)
        assert len(judge.asked) <= 1, "all is judged in one call"
        assert vtrace or {name for names in judge.asked for name in names} <= wanted.keys()
    assert sum(buffer.dropped_carries.values()) == sum(column.number_lost() for column in columns)
    assert buffer.carried == sum(column.number_waiting() for column in columns)
    assert not (kind.turning and (buffer.carried or any(buffer.dropped_carries.values())))
