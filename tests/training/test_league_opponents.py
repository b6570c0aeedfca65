"""The opponent manager: when snapshots join, whom tables meet, and how games are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from keisei.config import parse_settings
from keisei.evaluation.statistics import Tally
from keisei.experience.collected import Experiences
from keisei.parallel import ParallelManager
from keisei.policies.behaviour import Behaviour
from keisei.policies.seating import CHANCE, LEARNER
from keisei.training.events import Counters, LeagueSummary
from keisei.training.league import opponents as module
from keisei.training.league.assembly import assemble
from keisei.training.league.opponents import OpponentManager
from keisei.training.league.roster import Member
from keisei.training.league.settings import LeagueSettings

SLAB = 4 * 8
TABLES = 2
LONG = 1_000_000


class League:
    """A small manager with a league, driven as the loop does it."""

    def __init__(
        self,
        game: str = "tictactoe",
        parallel: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        given = parse_settings(LeagueSettings, {"save_steps": TABLES * SLAB, "swap_steps": SLAB} | settings)
        config = {"tables": TABLES, "games": 4, "horizon": 8, "backend": "inline"} | (parallel or {})
        env = {"game": game, "options": options or {}}
        spec = ParallelManager(env, None, config).spec
        assembly = assemble(given, spec, TABLES)
        self.manager = ParallelManager(env, {"hidden_dim": 8}, config, league=assembly.plan)
        self.opponents: OpponentManager = assembly.open(self.manager)
        self.manager.start_workers()
        self.counters = Counters()
        self.temperature = 1.0

    def prepare(self, progress: float = 0.0) -> None:
        assert self.manager.model is not None
        behaviour = Behaviour(self.manager.model, self.temperature, 0.125)
        self.opponents.prepare(self.counters, progress, lambda: behaviour)

    def update(self, progress: float = 0.0) -> tuple[Experiences, LeagueSummary]:
        self.prepare(progress)
        experiences = self.manager.collect_experiences()
        summary = self.opponents.take(experiences)
        before = self.counters
        self.counters = Counters(before.update + 1, before.transitions + len(experiences))
        return experiences, summary

    @property
    def members(self) -> list[Member]:
        return list(self.opponents.roster.members.values())

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.opponents.roster.pool]

    @property
    def seated(self) -> list[int]:
        return [table.lineup.member for table in self.manager.tables]

    @property
    def shares(self) -> list[float]:
        return [table.lineup.share for table in self.manager.tables]

    def __enter__(self) -> League:
        return self

    def __exit__(self, *exception: object) -> None:
        self.manager.stop_workers()


def name(update: int) -> str:
    return f"update-{update:09d}"


def test_the_first_snapshot_joins_at_the_start_and_the_others_by_steps() -> None:
    with League(save_steps=2 * TABLES * SLAB) as league:
        for _ in range(5):
            league.update()
        assert league.names == [name(0), name(2), name(4)]


def test_snapshots_play_as_the_learner_did_or_as_the_settings_say() -> None:
    with League() as league, League(temperature=0.5, epsilon=0.0) as other:
        league.temperature = other.temperature = 2.0
        league.update()
        other.update()
        for found, expected in ((league, (2.0, 0.125)), (other, (0.5, 0.0))):
            shelf = found.opponents.lineups.shelf
            assert shelf.settings_at(shelf.place_of(100)) == expected


def test_where_epsilon_is_spread_over_games_snapshots_have_its_mean() -> None:
    with League() as league:
        assert league.manager.model is not None
        behaviour = Behaviour(league.manager.model, 0.0, 0.4, spread=7.0)
        league.opponents.prepare(league.counters, 0.0, lambda: behaviour)
        shelf = league.opponents.lineups.shelf
        expected = sum(0.4 ** (1 + 7 * game / 7) for game in range(8)) / 8
        assert shelf.settings_at(shelf.place_of(100)) == pytest.approx((0.0, expected))


def test_by_win_rate_a_snapshot_joins_when_the_learner_scores_enough() -> None:
    settings: dict[str, Any] = {"add_when": "win_rate", "win_rate_threshold": 0.7, "save_steps": 1}
    with League(members=["random"], **settings) as league:
        league.update()
        player, snapshot = league.members
        player.results.era = Tally(1000, 0, 0)
        snapshot.results.era = Tally(69, 0, 31)
        league.prepare()
        assert league.names == ["random", name(0)], "69 % are not enough, and only snapshots count"
        snapshot.results.era = Tally(35, 0, 0)
        league.prepare()
        assert len(league.names) == 2, "35 games are not enough"
        snapshot.results.era = Tally(70, 0, 30)
        league.prepare()
        assert league.names == ["random", name(0), name(1)]


def test_the_pool_is_a_window_and_milestones() -> None:
    with League(window=2, milestones=1) as league:
        for _ in range(8):
            league.update()
        assert league.names == [name(0), name(6), name(7)]
        assert league.opponents.lineups.shelf.members >= {member.number for member in league.members}


def test_a_full_shelf_lets_the_next_snapshot_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In Shogi no game ends here, so each game keeps its member, and no place becomes free."""
    monkeypatch.setattr("keisei.training.league.assembly.MOST_SPARE", 1)
    with League("shogi", window=1, milestones=0, latest_ratio=0.0) as league:
        for _ in range(4):
            league.update()
            league.manager.reset_workers([1])
        assert league.names != [name(3)], "its place is still taken"
        assert "the next snapshot waits until a game against an old one ends" in caplog.text
        league.manager.reset_workers()
        league.update()
        league.update()
        assert league.names == [name(league.counters.update - 1)]


def test_the_last_number_ends_the_snapshots_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LAST_MEMBER", 101)
    with League() as league:
        for _ in range(5):
            league.update()
        assert league.names == [name(0), name(1)]
    told = [record.getMessage() for record in caplog.records if record.name == module.__name__]
    assert len(told) == 1
    assert told[0].startswith("no more snapshots join the league: 101 is its last number")


def test_tables_draw_again_after_their_own_steps() -> None:
    with League(swap_steps=3 * SLAB, save_steps=LONG, members=["random", "greedy"]) as league:
        seated = []
        for _ in range(12):
            league.update()
            seated.append(tuple(league.seated))
        for start in range(0, 12, 3):
            assert len(set(seated[start : start + 3])) == 1
        assert len(set(seated)) > 2


def test_tables_draw_again_when_a_snapshot_joins() -> None:
    """Else a short run would meet its untrained weights only."""
    with League(swap_steps=LONG, save_steps=2 * TABLES * SLAB, sampling="latest") as league:
        seated = []
        for _ in range(6):
            league.update()
            seated.append(league.seated)
        assert seated == [[number] * TABLES for number in (100, 100, 101, 101, 102, 102)]


def test_tables_draw_again_when_a_phase_ends() -> None:
    curriculum = [{"until": 0.5, "members": ["random"]}]
    with League(
        swap_steps=LONG, save_steps=LONG, members=["random"], curriculum=curriculum, sampling="latest"
    ) as league:
        league.members[0].share = 0.0
        for progress, member in ((0.1, 100), (0.49, 100), (0.5, 101), (0.9, 101)):
            league.update(progress)
            assert league.seated == [member] * TABLES, progress


def test_tables_take_turns_also_if_a_slab_holds_many_swaps() -> None:
    with League(swap_steps=SLAB // 4, save_steps=LONG) as league:
        met = np.zeros(TABLES)
        for _ in range(8):
            league.update()
            met += league.shares
        assert met.tolist() == [4.0, 4.0]


def test_a_table_does_not_keep_a_member_that_has_left() -> None:
    """As when a run goes on without a fixed member. All tables stay in step."""
    with League(swap_steps=LONG, save_steps=LONG, members=["random"], latest_ratio=0.0) as league:
        league.update()
        number = 101 if 101 in league.seated else 100
        league.opponents.roster.members[number].in_pool = False
        league.update()
        assert league.seated == [201 - number] * TABLES
        assert {drawn[1] for drawn in league.opponents.state().document["draws"]} == {0}


def test_a_checkpoint_of_an_earlier_version_lets_all_tables_draw_again() -> None:
    with League(swap_steps=LONG, save_steps=LONG) as league:
        league.opponents.restore({"taken_at": 0, "tables": [[0, 7, 100], [1, 7, 100]]})
        league.update()
        assert league.seated == [100, 100]
        assert sum(league.shares) == 1.0


def test_a_restored_league_takes_its_next_snapshot_when_it_is_due() -> None:
    with League(save_steps=3 * TABLES * SLAB) as league:
        for _ in range(4):
            league.update()
        document: Any = league.opponents.state().document
        assert document["taken_at"] == 3 * TABLES * SLAB
        league.opponents._taken_at = 0
        league.opponents.restore(document)
        league.update()
        assert league.names == [name(0), name(3)]
        league.update()
        league.update()
        assert league.names == [name(0), name(3), name(6)]


def test_fixed_members_are_met_as_often_as_their_shares_say() -> None:
    members = [{"policy": "random", "share": 0.75}, {"policy": "greedy", "share": 0.25}]
    with League(swap_steps=SLAB, save_steps=LONG, members=members, latest_ratio=0.0) as league:
        met = []
        for _ in range(60):
            league.update()
            met += league.seated
        assert {*met} == {100, 101}
        assert met.count(100) / len(met) == pytest.approx(0.75, abs=0.12)


def test_a_table_with_a_seating_of_its_own_meets_no_league() -> None:
    own = {"table_overrides": {1: {"seating": {"opponents": [{"policy": "random", "share": 0.5}]}}}}
    with League(parallel=own, latest_ratio=0.0) as league:
        experiences, _ = league.update()
        first, second = (set(item.slab.policy.ravel().tolist()) for item in experiences)
        assert (first, second) == ({LEARNER, 100}, {LEARNER, 1})


def test_a_curriculum_decides_whom_tables_meet_and_how_often() -> None:
    curriculum = [
        {"until": 0.5, "members": ["random"], "latest_ratio": 0.0},
        {"until": 0.8, "members": ["snapshots"], "latest_ratio": 1.0},
    ]
    with League(members=["random"], curriculum=curriculum) as league:
        league.update(0.1)
        assert league.seated == [100, 100]
        assert league.shares == [1.0, 1.0]
        league.update(0.6)
        assert 100 not in league.seated
        assert league.shares == [0.0, 0.0]
        league.update(0.9)
        assert sum(league.shares) == 1.0


@pytest.mark.parametrize("game", ["tictactoe", "connect-four"])
def test_games_are_counted_as_they_ended(game: str) -> None:
    """Against a plain count: the learner is who is owner of the rows of its seat."""
    with League(game, members=["random"], latest_ratio=0.25, parallel={"horizon": 64, "games": 16}) as league:
        experiences, summary = league.update()
        expected: dict[int, list[int]] = {}
        for item in experiences:
            slab = item.slab
            for step, slot in zip(*np.nonzero(slab.terminated | slab.truncated), strict=True):
                met = int(slab.opponent[step, slot])
                seat = (slot + item.first_game + slab.episode[step, slot]) % 2
                if met:
                    won = slab.score[step, slot, seat] - slab.score[step, slot, 1 - seat]
                    expected.setdefault(met, []).append(int(np.sign(won)))
        assert expected
        found = {
            member.number: list(member.results.recent) for member in league.members if member.results.recent
        }
        assert found == {number: outcomes[-200:] for number, outcomes in expected.items()}
        assert summary.games == sum(map(len, expected.values()))


def test_a_truncated_game_is_drawn() -> None:
    with League("tictactoe", latest_ratio=0.0) as league:
        experiences, _ = league.update()
        league.members[0].results.recent.clear()
        for item in experiences:
            item.slab.truncated |= item.slab.terminated
            item.slab.terminated[:] = False
        league.opponents.take(experiences)
        assert set(league.members[0].results.recent) == {0}


def test_equals_score_half_with_any_number_of_seats() -> None:
    """The learner meets itself: a snapshot with the same weights has the three other seats."""
    parallel = {"games": 16, "horizon": 1024}
    with League("ludo", parallel, {"players": 4}, latest_ratio=0.0, epsilon=0.0) as league:
        _, summary = league.update()
        results = league.members[0].results
        assert summary.games == results.recent_games == results.total.games // 3 > 60
        assert summary.score == pytest.approx(results.total.score)
        assert summary.score == pytest.approx(0.5, abs=0.1)
        assert results.score is not None
        assert results.score.low < 0.5 < results.score.high


def test_games_that_returns_judge_count_as_they_were_left() -> None:
    """A world ends by its number of turns, and who gathered more has won."""
    parallel = {"games": 8, "horizon": 64}
    options = {"max_turns": 30}
    with League("treasurehunt", parallel, options, latest_ratio=0.0) as league:
        experiences, summary = league.update()
        assert any(item.slab.truncated.any() for item in experiences)
        assert not any(item.slab.terminated.any() for item in experiences)
        total = league.members[0].results.total
        assert summary.games > 0
        assert min(total.wins, total.losses) > 0


@pytest.mark.parametrize(("game", "options"), [("tictactoe", {}), ("treasurehunt", {"max_turns": 9})])
def test_games_that_chance_ended_do_not_count(game: str, options: dict[str, Any]) -> None:
    """No game is longer than the longest openings here."""
    parallel = {"horizon": 64, "seating": {"opening_plies": 20}}
    with League(game, parallel, options, latest_ratio=0.0) as league:
        experiences, summary = league.update()
        decided = by_chance = 0
        for item in experiences:
            slab = item.slab
            for step, slot in zip(*np.nonzero(slab.terminated | slab.truncated), strict=True):
                last = slab.policy[step].reshape(len(slab.terminated[step]), -1)[slot]
                by_chance += CHANCE in last
                decided += CHANCE not in last
                assert slab.opponent[step, slot] == 100
        assert by_chance > 0
        assert summary.games == league.members[0].results.total.games == decided


def test_the_summary_names_the_worst_and_counts_the_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH_GAMES", 10)
    with League(members=["random", "greedy"]) as league:
        league.update()
        first, second, _ = league.members
        first.results.add([1] * 60, 0.5)
        second.results.add([1] * 200, 0.5)
        second.results.add([-1] * 180, 0.5)
        _, summary = league.update()
        assert (summary.worst, summary.forgotten, summary.members) == ("greedy", 1, len(league.names))
        assert summary.worst_score == pytest.approx(0.1, abs=0.05)


def test_members_that_left_the_shelf_need_not_be_stored() -> None:
    """Nobody could write the members to the disk so far."""
    with League(window=3, milestones=0) as league:
        left = set()
        for _ in range(12):
            league.update()
            unsaved = {member.number for member, _ in league.opponents.unsaved()}
            left |= {member.number for member in league.members} - unsaved
            assert {member.number for member in league.opponents.roster.pool} <= unsaved
        assert left, "some were still known"


def test_games_of_slabs_that_wait_are_counted_when_their_member_has_left() -> None:
    parallel = {"mode": "async", "queue_maxsize": 4}
    with League(parallel=parallel, window=1, milestones=0, latest_ratio=0.0) as league:
        played = counted = 0
        for number in range(60):
            league.counters = Counters(number, number * TABLES * SLAB)
            league.prepare()
            experiences = league.manager.collect_experiences(SLAB)
            counted += league.opponents.take(experiences).games
            for item in experiences:
                done = item.slab.terminated | item.slab.truncated
                played += int((item.slab.opponent[done] >= 100).sum())
        assert counted == played > 100


def test_the_state_is_the_same_whenever_it_is_taken() -> None:
    """A run that is saved after each update goes on like one that is never saved."""
    with League(window=1, milestones=0) as saved, League(window=1, milestones=0) as unsaved:
        for _ in range(6):
            for league in (saved, unsaved):
                league.update()
            saved.opponents.state()
        assert saved.opponents.state().document == unsaved.opponents.state().document
