"""Games meet members of a league: the same ones wherever they are played, and each to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from games_for_tests import BACKENDS, RELAY, manager_of, nudge, pids_of

from keisei.errors import ParallelError, SavedStateError
from keisei.parallel import ParallelManager, TableSnapshot
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.worker.members import MAGIC, split_members, with_members, with_members_of
from keisei.policies.networks import build_network
from keisei.policies.seating import LEARNER, Lineup, PolicyConfig, learner_seat

NETWORK = {"network": "mlp", "hidden_dim": 16}
RANDOM, FIRST = 100, 101
PLAN = LeaguePlan(players={RANDOM: PolicyConfig(policy="random")}, places=3)
SEATING = {"opponents": [{"policy": "random", "share": 0.2}], "opening_plies": 1}


def league_of(**settings: Any) -> ParallelManager:
    given: dict[str, Any] = {"game": "connect-four", "model": NETWORK, "league": PLAN, "tables": 3} | settings
    return manager_of(**given)


def shelve(manager: ParallelManager, member: int) -> None:
    """Other weights for each member, the same in every run."""
    assert manager.lineups is not None
    assert manager.model_config is not None
    manager.lineups.shelve(member, build_network(manager.model_config, manager.spec, seed=member), (1.0, 0.1))


def seat_all(manager: ParallelManager, member: int, share: float = 0.6) -> None:
    assert manager.lineups is not None
    for table in manager.tables:
        manager.lineups.seat(
            table.number, Lineup(member + table.number % 2 if member > RANDOM else member, share)
        )


def play_rounds(
    manager: ParallelManager,
    rounds: range,
    disturb: Callable[[ParallelManager], object] = lambda manager: None,
) -> list[str]:
    """Rounds in which members come and go: the odd tables meet the member after that of the even ones."""
    assert manager.lineups is not None
    found = []
    for number in rounds:
        member = FIRST + number
        manager.lineups.make_room({member, member + 1})
        for wanted in {member, member + 1} - manager.lineups.shelf.members:
            shelve(manager, wanted)
        seat_all(manager, RANDOM if number == 2 else member)
        disturb(manager)
        found.append(manager.collect_experiences().digest())
        nudge(manager)
        manager.sync_model_to_workers()
    return found


CASES: dict[str, dict[str, Any]] = {
    "in workers": {},
    "rows that come and go": {"game": RELAY},
    "with opponents and openings": {"seating": SEATING},
    "a table of its own": {"table_overrides": {1: {"seating": SEATING}}, "worker_reset_interval": 200},
    "central": {"inference": "central", "seating": SEATING},
}
LONG = LeaguePlan(players=PLAN.players, places=12)
"""Room for all members of some rounds, since games keep theirs."""


@pytest.mark.parametrize("case", CASES)
def test_neither_place_nor_number_of_workers_changes_a_bit(case: str) -> None:
    settings = CASES[case] | {"league": LONG}
    with league_of(backend="inline", num_workers=1, **settings) as manager:
        expected = play_rounds(manager, range(5))
    assert len(set(expected)) == 5
    for backend in BACKENDS:
        with league_of(backend=backend, num_workers=2, **settings) as manager:
            assert play_rounds(manager, range(5)) == expected, backend


def kill_all(manager: ParallelManager) -> None:
    for pid in pids_of(manager):
        os.kill(pid, signal.SIGKILL)


def test_killed_workers_leave_no_trace() -> None:
    with league_of(backend="inline", num_workers=1, league=LONG) as manager:
        expected = play_rounds(manager, range(5))
    with league_of(backend="process", num_workers=2, league=LONG) as manager:
        assert play_rounds(manager, range(5), kill_all) == expected
        assert manager.get_status().restarts >= 4


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_a_stop_and_a_start_with_other_workers_changes_nothing(inference: str) -> None:
    settings: dict[str, Any] = {"league": LONG, "inference": inference, "seating": SEATING}
    with league_of(backend="inline", **settings) as manager:
        expected = play_rounds(manager, range(6))
    found: list[str] = []
    snapshots: list[TableSnapshot] = []
    seated: set[int] = set()
    for start, (backend, workers) in enumerate((("process", 2), ("inline", 1), ("thread", 3))):
        version = max(1, 2 * start)  # and one more by the weights below
        manager = league_of(backend=backend, num_workers=workers, first_version=version, **settings)
        for _ in range(2 * start):  # the weights of the learner as they were
            nudge(manager)
        manager.sync_model_to_workers()
        for member in sorted(seated - {RANDOM}):
            shelve(manager, member)
        manager.start_workers(snapshots)
        with manager:
            found += play_rounds(manager, range(2 * start, 2 * start + 2))
            snapshots = manager.snapshot()
            assert manager.lineups is not None
            seated = manager.lineups.seated()
            assert len(seated) > 2, "also members that no table draws any more"
    assert found == expected


def test_a_game_keeps_its_member_to_its_end_whatever_comes_after() -> None:
    with league_of(backend="inline", league=LONG, horizon=4) as manager:
        met: dict[tuple[int, int], set[int]] = {}
        for number in range(12):
            assert manager.lineups is not None
            member = FIRST + number % 6
            if member not in manager.lineups.shelf.members:
                shelve(manager, member)
            for table in manager.tables:
                manager.lineups.seat(table.number, Lineup(member, 0.7))
            for item in manager.collect_experiences():
                for step in range(4):
                    for slot in range(4):
                        game = item.first_game + slot, int(item.slab.episode[step, slot])
                        if item.slab.policy[step, slot] != LEARNER:
                            met.setdefault(game, set()).add(int(item.slab.policy[step, slot]))
        assert all(len(members) == 1 for members in met.values())
        assert set.union(*met.values()) == set(range(FIRST, FIRST + 6))


@pytest.mark.parametrize("game", ["connect-four", RELAY])
def test_slabs_say_whom_the_learner_met_in_each_game_that_ended(game: str) -> None:
    """The policy column agrees with it: all rows of other seats belong to this opponent."""
    with league_of(
        game=game, backend="inline", horizon=40, seating=SEATING, use_shared_memory=False
    ) as manager:
        shelve(manager, FIRST)
        shelve(manager, FIRST + 1)
        seat_all(manager, FIRST, share=0.5)
        seen = set()
        for item in manager.collect_experiences(4000):
            slab, seats = item.slab, item.slab.shape.seats
            per_slot = seats if slab.shape.simultaneous else 1
            for step, game_index in zip(*np.nonzero(slab.terminated | slab.truncated), strict=True):
                opponent = int(slab.opponent[step, game_index])
                slots = slice(game_index * per_slot, (game_index + 1) * per_slot)
                episode = slab.episode[step, slots].max()
                own = learner_seat(game_index + item.first_game, episode, seats)
                same = (
                    slab.acting[:-1, slots]
                    & (slab.episode[:, slots] == episode)
                    & (slab.policy[:, slots] >= 0)
                )
                others = same & (slab.seat[:-1, slots] != own)
                assert set(slab.policy[:, slots][others].tolist()) <= {opponent}
                assert set(slab.policy[:, slots][same & ~others].tolist()) <= {LEARNER}
                seen.add(opponent)
        assert seen == {LEARNER, 1, FIRST, FIRST + 1}


def test_members_are_not_learned_from() -> None:
    with league_of(backend="inline") as manager:
        shelve(manager, FIRST)
        shelve(manager, FIRST + 1)
        seat_all(manager, FIRST, share=1.0)
        experiences = manager.collect_experiences(1000)
        owner, policy = experiences.column("owner"), experiences.column("policy")
        assert set(owner[policy == LEARNER].tolist()) == {0}
        assert set(owner[policy >= FIRST].tolist()) == {-1}
        assert 0.4 < (policy == LEARNER).mean() < 0.6


def test_without_a_lineup_the_learner_plays_against_itself_as_without_a_league() -> None:
    with league_of(backend="inline", league=None) as plain, league_of(backend="inline") as manager:
        assert plain.lineups is None
        assert manager.collect_experiences().digest() == plain.collect_experiences().digest()


def test_a_place_is_used_again_only_when_no_game_meets_its_member() -> None:
    """Shogi games do not end in so few steps, so all that began against a member keep it on the shelf."""
    with league_of(game="shogi", backend="inline", tables=1) as manager:
        lineups = manager.lineups
        assert lineups is not None
        for member in (FIRST, FIRST + 1, FIRST + 2):
            shelve(manager, member)
        lineups.seat(0, Lineup(FIRST, 1.0))
        assert lineups.seated() == {FIRST}, "a lineup names it"
        manager.tables[0].add_order(slab=0, state_slot=0, version=1)
        lineups.seat(0, Lineup(FIRST + 1, 1.0))
        assert lineups.seated() == {FIRST, FIRST + 1}, "an order names it"
        manager.tables[0].orders.clear()
        manager.tables[0].next_sequence = 0
        lineups.seat(0, Lineup(FIRST, 1.0))
        manager.collect_experiences()
        lineups.seat(0, Lineup(FIRST + 1, 1.0))
        assert lineups.seated() == {FIRST, FIRST + 1}, "saved games name it"
        assert lineups.make_room(wanted=())
        assert lineups.shelf.members == {FIRST, FIRST + 1}
        manager.reset_workers()
        manager.collect_experiences()
        lineups.make_room(wanted=())
        assert lineups.shelf.members == {FIRST + 1}, "its games are over"


def test_a_member_that_is_not_there_cannot_be_seated() -> None:
    with league_of(backend="inline") as manager:
        assert manager.lineups is not None
        manager.lineups.seat(0, Lineup(RANDOM, 0.5))
        with pytest.raises(
            ParallelError, match="member 102 is neither a player of the league nor on the shelf"
        ):
            manager.lineups.seat(0, Lineup(102, 0.5))


def test_a_reset_frees_the_members_of_the_games_before_it() -> None:
    """As in a resumed run, since a snapshot does not hold these games either."""
    with league_of(backend="inline", game="shogi") as manager:
        assert manager.lineups is not None
        shelve(manager, FIRST)
        shelve(manager, FIRST + 1)
        seat_all(manager, FIRST, share=1.0)
        manager.collect_experiences()
        seat_all(manager, LEARNER)
        assert manager.lineups.seated() == {FIRST, FIRST + 1}
        manager.reset_workers()
        assert [taken.state for taken in manager.snapshot()] == [b"", b"", b""]
        assert manager.lineups.seated() == set()


def test_saved_games_against_a_member_that_is_not_there_are_refused_before_workers_start() -> None:
    with league_of(backend="inline", game="shogi") as manager:
        shelve(manager, FIRST)
        shelve(manager, FIRST + 1)
        seat_all(manager, FIRST, share=1.0)
        manager.collect_experiences()
        snapshots = manager.snapshot()
    resumed = league_of(backend="inline", game="shogi")
    with pytest.raises(
        ParallelError, match=r"against members \[101, 102\], whose weights are not on the shelf"
    ):
        resumed.start_workers(snapshots)
    resumed.stop_workers()
    left_out = [TableSnapshot(s.table, s.epoch, s.sequence, with_members_of(s.state, ())) for s in snapshots]
    going_on = league_of(backend="inline", game="shogi")
    going_on.start_workers(left_out)
    with going_on:
        assert set(going_on.collect_experiences().column("policy").tolist()) == {LEARNER}


def test_a_league_that_is_switched_off_and_on_leaves_the_games_as_they_are() -> None:
    with league_of(backend="inline", game="shogi") as manager:
        shelve(manager, FIRST)
        shelve(manager, FIRST + 1)
        seat_all(manager, FIRST, share=1.0)
        plies = manager.collect_experiences().column("ply").max()
        snapshots = manager.snapshot()
    without = league_of(backend="inline", game="shogi", league=None)
    without.start_workers(snapshots)
    with without:
        experiences = without.collect_experiences()
        assert set(experiences.column("policy").tolist()) == {LEARNER}
        assert experiences.column("ply").min() == plies + 1
        snapshots = without.snapshot()
    again = league_of(backend="inline", game="shogi")
    again.start_workers(snapshots)
    with again:
        shelve(again, FIRST)
        shelve(again, FIRST + 1)
        seat_all(again, FIRST, share=1.0)
        experiences = again.collect_experiences()
        assert set(experiences.column("policy").tolist()) == {LEARNER}, "games in play go on as they were"


@pytest.mark.parametrize("backend", BACKENDS)
def test_asynchronous_workers_never_meet_a_member_that_is_gone(backend: str) -> None:
    """The shelf is small and members change all the time. A worker that met a missing one would fail."""
    settings: dict[str, Any] = {"mode": "async", "queue_maxsize": 3, "max_failures": 1, "tables": 2}
    with league_of(backend=backend, game="tictactoe", horizon=4, **settings) as manager:
        lineups = manager.lineups
        assert lineups is not None
        joined, seen = FIRST, set()
        while len(seen) < 10:
            newest = {joined - 1} & lineups.shelf.members
            if lineups.make_room(newest):
                shelve(manager, joined)
                lineups.seat(joined % 2, Lineup(joined, 0.8))
                joined += 1
            seen |= set(manager.collect_experiences(timeout=20).column("policy").tolist())
            manager.release_experiences()
        assert manager.get_status().restarts == 0


def test_a_league_wants_a_network() -> None:
    with pytest.raises(ParallelError, match="a league is for a learner with a network"):
        manager_of(league=PLAN)


def test_saved_games_name_their_members() -> None:
    members = np.array([0, 105, 32767], np.int16)
    state = with_members(b"games", members)
    found, games = split_members(state)
    assert found is not None
    assert (found.tolist(), games) == (members.tolist(), b"games")
    assert split_members(b"games") == (None, b"games")
    assert with_members_of(b"games", {105}) == b"games"
    assert with_members_of(state, {32767, 105}) == state
    left, _ = split_members(with_members_of(state, {32767}))
    assert left is not None
    assert left.tolist() == [0, 0, 32767]
    for cut in (state[:10], state[:14], MAGIC):
        with pytest.raises(SavedStateError, match="end early"):
            split_members(cut)
