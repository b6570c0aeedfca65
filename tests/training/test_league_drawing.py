"""Members are drawn as the settings say, by keyed randomness."""

from __future__ import annotations

from collections import Counter

import pytest

from keisei.policies.networks import ModelConfig
from keisei.policies.seating import LEARNER, PolicyConfig
from keisei.training.league.drawing import chances, draw, table_share
from keisei.training.league.roster import Member, Roster
from keisei.training.league.settings import Weighting

DRAWS = 4000


def members_of(**shares: float | None) -> list[Member]:
    """Three snapshots, and fixed members with these shares."""
    roster = Roster(3, 0)
    for name, share in shares.items():
        roster.add("player", PolicyConfig(policy=name)).share = share
    for update in range(3):
        roster.add_snapshot(PolicyConfig(policy=f"update-{update}"), update, ModelConfig())
    return roster.pool


def frequencies(members: list[Member], *how: str, allowed: tuple[str, ...] | None = None) -> dict[str, float]:
    names = {member.number: member.name for member in members} | {LEARNER: "learner"}
    sampling, weighting = (*how, "variance")[:2]
    drawn = Counter(
        names[draw(members, allowed, sampling, weighting, (7, swap % 5, swap // 5))]  # type: ignore[arg-type]
        for swap in range(DRAWS)
    )
    return {name: round(count / DRAWS, 2) for name, count in drawn.items()}


def test_uniform_draws_everybody_alike() -> None:
    found = frequencies(members_of(random=None), "uniform")
    assert found == {
        name: pytest.approx(0.25, abs=0.03) for name in ("random", "update-0", "update-1", "update-2")
    }


def test_latest_draws_the_newest_snapshot() -> None:
    assert frequencies(members_of(), "latest") == {"update-2": 1.0}


def test_shares_of_fixed_members_hold() -> None:
    found = frequencies(members_of(random=0.2, greedy=0.5), "latest")
    assert found == {
        "random": pytest.approx(0.2, abs=0.03),
        "greedy": pytest.approx(0.5, abs=0.03),
        "update-2": pytest.approx(0.3, abs=0.03),
    }


def test_shares_without_anybody_else_fill_the_whole() -> None:
    found = frequencies(members_of(random=0.1, greedy=0.3), "uniform", allowed=("random", "greedy"))
    assert found == {"random": pytest.approx(0.25, abs=0.03), "greedy": pytest.approx(0.75, abs=0.03)}


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("variance", (0.1 * 0.9, 0.25, 0.9 * 0.1)),
        ("squared", (0.81, 0.25, 0.01)),
        ("linear", (0.9, 0.5, 0.1)),
    ],
)
def test_pfsp_weighs_by_the_score(weighting: Weighting, expected: tuple[float, ...]) -> None:
    members = members_of()
    for member, wins in zip(members, (1, 9, 17), strict=True):
        member.results.add([1] * wins + [-1] * (18 - wins), 0.5)  # with one more of each: 0.1, 0.5 and 0.9
    found = chances(members, "pfsp", weighting)
    assert found == pytest.approx([weight / sum(expected) for weight in expected])


def test_pfsp_takes_whom_it_does_not_know_for_an_equal() -> None:
    assert chances(members_of(), "pfsp", "squared") == pytest.approx([1 / 3] * 3)


def test_a_phase_allows_some_only() -> None:
    members = members_of(random=None, greedy=None)
    assert frequencies(members, "uniform", allowed=("random",)) == {"random": 1.0}
    assert set(frequencies(members, "uniform", allowed=("snapshots",))) == {
        "update-0",
        "update-1",
        "update-2",
    }
    assert frequencies(members[:2], "uniform", allowed=("snapshots",)) == {"learner": 1.0}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("tables", [1, 2, 4, 7])
def test_tables_take_turns_in_meeting_the_league(tables: int, share: float) -> None:
    turns = 2 * tables * tables
    shares = [[table_share(share, place, tables, swap) for place in range(tables)] for swap in range(turns)]
    for at_once in shares:
        assert sum(at_once) == pytest.approx(share * tables)
        assert sum(0 < own < 1 for own in at_once) <= 1
    of_each = [sum(column) / turns for column in zip(*shares, strict=True)]
    assert of_each == pytest.approx([share] * tables)


def test_a_draw_follows_from_its_key() -> None:
    members = members_of()
    keys = [(seed, table, swap) for seed in (1, 2) for table in range(4) for swap in range(20)]
    first, again = ([draw(members, None, "uniform", "variance", key) for key in keys] for _ in range(2))
    assert first == again
    rows = [tuple(first[start : start + 20]) for start in range(0, len(first), 20)]
    assert len(set(rows)) == 8
