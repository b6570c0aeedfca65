"""Runs with a league: the same weights in every way, and nothing lost when something is damaged."""

from __future__ import annotations

import shutil
from dataclasses import astuple
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs_for_tests import read_log
from training_for_tests import UPDATES, After, Recorder, curve, kill_workers, raising, tiny, train

import keisei
from keisei.errors import CheckpointError, CheckpointWriteError, ConfigError, RunError
from keisei.evaluation.statistics import Tally
from keisei.policies.players.saved_player import load_player
from keisei.policies.seating import PolicyConfig
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import LeagueResultRow
from keisei.runs.snapshots import SnapshotStore
from keisei.training.callbacks import StopTraining
from keisei.training.interruption import Interruption
from keisei.training.league.records import ratings_of
from keisei.training.league.roster import Member
from keisei.training.trainer import Trainer, TrainResult

# Games of connect four are longer than a slab here, so games meet members that have left the pool.
LEAGUE = (
    "env.game=connect-four",
    "league={window: 1, milestones: 0, save_steps: 256, swap_steps: 128, latest_ratio: 0.3, sampling: pfsp}",
    "league.members=[{policy: random, share: 0.2}]",
    "run.steps=1536",
)
LEAGUE_UPDATES = 6


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    return train(tmp_path_factory.mktemp("undisturbed"), *LEAGUE)


def stop_after(update: int) -> After:
    return After(raising(StopTraining("for now")), update)


def league_of(run: RunDirectory) -> dict[str, Any]:
    """The league in the newest checkpoint."""
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    league: Any = found.checkpoint.documents["league"]
    return dict(league)


def logged(run: RunDirectory) -> list[str]:
    return [line["message"] for line in read_log(run.log) if line["event"] == "log"]


# The same weights


def test_a_league_changes_what_is_learned(tmp_path: Path, undisturbed: TrainResult) -> None:
    plain = train(tmp_path, "env.game=connect-four", "run.steps=1536")
    assert plain.digest != undisturbed.digest


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_every_backend_comes_to_the_same_weights(
    tmp_path: Path, undisturbed: TrainResult, backend: str
) -> None:
    assert train(tmp_path, *LEAGUE, f"parallel.backend={backend}").digest == undisturbed.digest


def test_killed_workers_change_nothing(tmp_path: Path, undisturbed: TrainResult) -> None:
    config = tiny(*LEAGUE, "parallel.backend=process", "parallel.num_workers=3")
    run = RunDirectory.create(tmp_path, "run", config)
    trainer = Trainer(run, config, [After(lambda: kill_workers(trainer) and None)])
    assert trainer.train().digest == undisturbed.digest


def train_an_update(root: Path, *settings: str) -> TrainResult:
    interruption = Interruption()
    return train(root, *settings, callbacks=[After(interruption.request)], interruption=interruption)


def test_stopped_and_resumed_after_each_update(tmp_path: Path, undisturbed: TrainResult) -> None:
    """Also where games still meet members that have left the window."""
    still_seated = 0
    for _ in range(LEAGUE_UPDATES + 1):
        result = train_an_update(tmp_path, *LEAGUE, "run.checkpoint_every=null")
        still_seated += sum(not member["in_pool"] for member in league_of(result.run)["members"])
    assert result.outcome == "finished"
    assert still_seated > 2
    assert result.digest == undisturbed.digest
    assert curve(result.run, "league/score") == curve(undisturbed.run, "league/score")
    assert league_of(result.run) == league_of(undisturbed.run)


@pytest.mark.parametrize(
    "league",
    [
        "{window: 1, milestones: 0, save_steps: 256, swap_steps: 100_000, latest_ratio: 1.0}",
        "{members: [random, greedy], curriculum: [{until: 0.4, members: [random, greedy]}], latest_ratio: 0.4}",
    ],
)
def test_a_resumed_table_draws_as_one_that_went_on(tmp_path: Path, league: str) -> None:
    """A member has left the pool that a table had drawn and no game meets, or a phase has ended in between."""
    for _ in range(UPDATES + 1):
        result = train_an_update(tmp_path, f"league={league}")
    whole = train(tmp_path, f"league={league}", name="whole")
    assert league_of(whole.run) == league_of(result.run)
    assert whole.digest == result.digest


def test_a_league_that_is_switched_off_and_on_uses_no_number_twice(tmp_path: Path) -> None:
    """A player by name has no file in the folder of members."""

    def rows() -> dict[int, str]:
        with RunDatabase(run.database, read_only=True) as database:
            return {row.number: row.name for row in database.league_members()}

    train_an_update(tmp_path, *LEAGUE, "run.checkpoint_every=null")
    more = "league.members=[{policy: random, share: 0.2}, greedy]"
    run = train_an_update(tmp_path, *LEAGUE, more, "league.save_steps=100_000").run
    before = rows()
    assert before == {100: "random", 101: "update-000000000", 102: "greedy"}
    train_an_update(tmp_path, *LEAGUE, "league=null")
    train_an_update(tmp_path, *LEAGUE)
    after = rows()
    assert after.items() > before.items()


def test_what_came_after_the_checkpoint_is_taken_back(tmp_path: Path, undisturbed: TrainResult) -> None:
    """Snapshots, rows and members of the lost updates come again, and once."""
    run = train(tmp_path, *LEAGUE, callbacks=[stop_after(4)]).run
    for update in (3, 4):
        shutil.rmtree(run.checkpoints / f"update-{update:09d}")
    result = train(tmp_path, *LEAGUE)
    assert result.digest == undisturbed.digest
    assert league_of(run) == league_of(undisturbed.run)
    with (
        RunDatabase(run.database, read_only=True) as ours,
        RunDatabase(undisturbed.run.database, read_only=True) as theirs,
    ):
        assert [(row.number, row.name, row.wins, row.losses, row.score) for row in ours.league_members()] == [
            (row.number, row.name, row.wins, row.losses, row.score) for row in theirs.league_members()
        ]
        assert [(row.learner, row.member, row.wins) for row in ours.league_results()] == [
            (row.learner, row.member, row.wins) for row in theirs.league_results()
        ]


def test_an_asynchronous_run_plays_in_a_league(tmp_path: Path) -> None:
    recorder = Recorder()
    settings = ("parallel.mode=async", "parallel.backend=process", "run.steps=4096")
    result = train(tmp_path, *LEAGUE, *settings, callbacks=[recorder])
    assert result.outcome == "finished"
    assert sum(update.numbers["league/games"] for update in recorder.updates) > 0
    assert recorder.updates[-1].collection.restarts == 0


# What is kept


def test_the_disk_has_the_league_and_what_checkpoints_need(undisturbed: TrainResult) -> None:
    store, run = SnapshotStore(undisturbed.run.league), undisturbed.run
    needed = {member["number"] for member in league_of(run)["members"] if member["kind"] == "snapshot"}
    assert needed <= store.numbers()
    assert len(store.numbers()) < LEAGUE_UPDATES, "older ones are removed"
    newest = store.load(max(store.numbers()))
    assert newest.documents["member"]["player"]["policy"] == "update-000000005"  # type: ignore[index, call-overload]


def test_members_play_as_any_checkpoint_does(undisturbed: TrainResult) -> None:
    run = undisturbed.run
    spec = keisei.make_game("connect-four", batch=1, seed=0).spec
    number = max(SnapshotStore(run.league).numbers())
    by_name = load_player(f"{run.name}@member-{number:04d}", spec, run.path.parent)
    by_path = load_player(str(run.league / f"member-{number:04d}"), spec, run.path.parent)
    assert by_name.name == by_path.name == f"run@member-{number:04d}"


def test_numbers_and_rows_tell_of_the_league(undisturbed: TrainResult) -> None:
    assert curve(undisturbed.run, "league/members")[-1] == (LEAGUE_UPDATES, 2.0)
    with RunDatabase(undisturbed.run.database, read_only=True) as database:
        members, results = database.league_members(), database.league_results()
    assert [row.name for row in members][:2] == ["random", "update-000000000"]
    assert [row.number for row in members] == list(range(100, 107))
    now = [row for row in members if row.update == LEAGUE_UPDATES]
    assert {row.name for row in now if row.in_pool} == {"random", "update-000000005"}
    games = sum(row.wins + row.draws + row.losses for row in members)
    assert games == sum(value for _, value in curve(undisturbed.run, "league/games"))
    assert games == sum(row.wins + row.draws + row.losses for row in results)
    assert {row.learner for row in results} <= {f"update-{update:09d}" for update in range(LEAGUE_UPDATES)}
    assert all(0 <= row.low <= row.score <= row.high <= 1 for row in results)
    assert next(row.rating for row in members) == 0.0, "random is the anchor"


# Damage


def test_a_damaged_snapshot_is_named_and_nothing_is_lost(tmp_path: Path, undisturbed: TrainResult) -> None:
    run = train(tmp_path, *LEAGUE, callbacks=[stop_after(3)]).run
    number = max(SnapshotStore(run.league).numbers())
    victim = run.league / f"member-{number:04d}" / "model.safetensors"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-3])
    with pytest.raises(
        CheckpointError, match=rf"member {number} of the league .* delete {victim.parent} to go on"
    ):
        train(tmp_path, *LEAGUE)
    victim.write_bytes(whole)
    assert train(tmp_path, *LEAGUE).digest == undisturbed.digest


def test_without_a_snapshot_that_somebody_removed_the_run_goes_on(tmp_path: Path) -> None:
    run = train(tmp_path, *LEAGUE, callbacks=[stop_after(3)]).run
    for number in SnapshotStore(run.league).numbers():
        shutil.rmtree(run.league / f"member-{number:04d}")
    result = train(tmp_path, *LEAGUE)
    assert result.outcome == "finished"
    assert any("is gone, and is left out" in message for message in logged(run))


def test_where_members_cannot_be_written_checkpoints_hold_them(
    tmp_path: Path, undisturbed: TrainResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise CheckpointWriteError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SnapshotStore, "save", full)
        recorder = Recorder()
        run = train(tmp_path, *LEAGUE, callbacks=[recorder, stop_after(3)]).run
    told = [message for level, message in recorder.notes if level == "warning"]
    assert told == ["a member of the league is not on the disk yet: the disk is full"]
    assert not SnapshotStore(run.league).numbers()
    with RunDatabase(run.database, read_only=True) as database:
        assert max(row.update for row in database.league_members()) == 3, "the standings are kept meanwhile"
    assert train(tmp_path, *LEAGUE).digest == undisturbed.digest
    assert SnapshotStore(run.league).numbers(), "now they can be written"


# Fixed members


def other_run(root: Path, *settings: str) -> TrainResult:
    return train(root, "run.steps=512", *settings, name="other")


def test_another_run_is_a_member_and_its_weights_are_taken_once(tmp_path: Path) -> None:
    """Its network may be another one, and it may go on or away afterwards."""
    other = other_run(tmp_path, "model.hidden_dim=24")
    league = ("league={latest_ratio: 0.0, swap_steps: 64, members: [other@2]}",)
    whole = train(tmp_path, *league, name="whole")
    with RunDatabase(whole.run.database, read_only=True) as database:
        member = database.league_members()[0]
    assert (member.name, member.kind) == ("other@2", "run")
    assert member.wins + member.draws + member.losses > 0
    run = train(tmp_path, *league, callbacks=[stop_after(2)]).run
    shutil.rmtree(other.run.path)
    assert run.name == "run"
    assert train(tmp_path, *league).digest == whole.digest


@pytest.mark.parametrize(
    ("member", "error", "message"),
    [
        ("other", ConfigError, "was trained on tictactoe .* and cannot play connect-four"),
        ("serach:2", RunError, r"no run is named 'serach:2' \(did you mean 'search:DEPTH'\?\)"),
        ("search:99", ConfigError, "search:DEPTH looks a whole number of plies ahead"),
        ("{policy: greedy, temperature: 0.5}", ConfigError, "leave out temperature and epsilon"),
    ],
)
def test_a_member_that_cannot_play_is_refused_before_anything_is_written(
    tmp_path: Path, member: str, error: type[Exception], message: str
) -> None:
    other_run(tmp_path)
    overrides = [f"league.members=[{member}]"]
    with pytest.raises(error, match=message):
        keisei.train("connect-four-ppo", steps=100, root=tmp_path, name="new", overrides=overrides)
    assert not (tmp_path / "new").exists()


def test_members_of_a_run_may_change(tmp_path: Path) -> None:
    league = "league={save_steps: 256, swap_steps: 64, latest_ratio: 0.2, members: %s}"
    train(tmp_path, league % "[random]", "run.steps=512")
    result = train(tmp_path, league % "[greedy]", "run.steps=1024")
    with RunDatabase(result.run.database, read_only=True) as database:
        rows = {row.name: row for row in database.league_members()}
    assert rows["random"].update == 2 or not rows["random"].in_pool
    assert rows["greedy"].in_pool
    assert rows["greedy"].number > rows["random"].number
    assert result.counters.update == UPDATES


def test_a_member_that_plays_in_another_way_is_another_member(tmp_path: Path) -> None:
    """It has the same name, and results of its own."""
    other_run(tmp_path)
    league = "league={swap_steps: 64, latest_ratio: 0.0, members: [{policy: other@2, temperature: %s, share: 0.9}]}"
    train(tmp_path, league % "1.0", "run.steps=512")
    result = train(tmp_path, league % "0.5", "run.steps=1024")
    with RunDatabase(result.run.database, read_only=True) as database:
        members = {row.number: row.games for row in database.league_members() if row.name == "other@2"}
        cells = {row.number: row.games for row in database.league_results() if row.member == "other@2"}
    assert len(members) == 2
    assert cells == members


def rated_member(number: int, name: str = "greedy") -> Member:
    return Member(number, "player", PolicyConfig(policy=name))


def cell(era: int, number: int, wins: int, losses: int, per_game: int = 1) -> LeagueResultRow:
    """Games of the learner between two snapshots."""
    tally, name = Tally(wins, 0, losses), f"update-{era:09d}"
    return LeagueResultRow(name, "", era, 0.0, *astuple(tally), tally.score, 0.0, 1.0, number, per_game)


def test_members_of_one_name_have_ratings_of_their_own() -> None:
    ratings = ratings_of([rated_member(100), rated_member(101)], [cell(1, 100, 20, 20), cell(1, 101, 0, 40)])
    assert (ratings[100].elo, ratings[100].games, ratings[101].games) == (0.0, 40, 40)
    assert ratings[101].elo > 200


def test_comparisons_of_one_game_do_not_make_ratings_surer() -> None:
    members = [rated_member(100), rated_member(101)]
    ratings = ratings_of(members, [cell(1, 100, 20, 20), cell(1, 101, 60, 60, per_game=3)])
    assert {rating.games for rating in ratings.values()} == {40}


def test_members_without_a_chain_of_games_to_the_anchor_have_no_rating() -> None:
    members = [rated_member(100), rated_member(101, "random"), rated_member(102)]
    assert ratings_of(members, [cell(1, 100, 5, 5), cell(2, 101, 5, 5)]).keys() == {101}
    assert ratings_of(members, []) == {}


def test_ratings_follow_strength_whenever_members_were_met() -> None:
    """A learner grows by 100 Elo with each snapshot. It met some members when it was weak, and others today. Ratings
    as if it had always been the same put those first that it met early."""
    eras, rng = 10, np.random.default_rng(3)
    true = {100: 0.0} | {101 + place: -300.0 + 150 * place for place in range(8)}
    members = [rated_member(100, "random"), *map(rated_member, list(true)[1:])]
    slopes, ordered, inside = [], [], []
    for _ in range(40):
        cells = []
        for era in range(eras):
            met = rng.choice(list(true), 4, replace=False)
            for number in met:
                chance = 1 / (1 + 10 ** ((true[number] - 100 * era) / 400))
                wins = int(rng.binomial(60, chance))
                cells.append(cell(era, int(number), wins, 60 - wins))
        ratings = ratings_of(members, cells)
        numbers = [number for number in ratings if number != 100]
        found = np.array([ratings[number].elo for number in numbers])
        wanted = np.array([true[number] for number in numbers])
        slopes.append(np.polyfit(wanted, found, 1)[0])
        ordered += [
            np.sign(found[a] - found[b]) == np.sign(wanted[a] - wanted[b])
            for a, b in combinations(range(len(found)), 2)
        ]
        inside += [ratings[n].low <= true[n] <= ratings[n].high for n in numbers]
    assert np.mean(slopes) == pytest.approx(1.0, abs=0.1)
    assert np.mean(ordered) > 0.95
    assert 0.90 < np.mean(inside) < 0.99


def test_the_matrix_of_earlier_eras_is_rated_after_a_resumption(tmp_path: Path) -> None:
    league = "league={save_steps: 128, swap_steps: 64, latest_ratio: 0.0, members: [random]}"
    whole = train(tmp_path / "whole", league, "run.steps=2048")
    train(tmp_path / "parts", league, "run.steps=2048", callbacks=[stop_after(5)])
    parts = train(tmp_path / "parts", league, "run.steps=2048")
    found = []
    for result in (whole, parts):
        with RunDatabase(result.run.database, read_only=True) as database:
            cells = database.league_results()
            assert len({row.learner for row in cells}) > 3
            for row in database.league_members():
                of_eras = [cell.games for cell in cells if cell.number == row.number]
                assert sum(of_eras) == row.games, "every game belongs to one era"
            found.append([(row.number, row.rating, row.rating_low) for row in database.league_members()])
    assert found[0] == found[1]
    assert any(rating for _, rating, _ in found[0])


def test_a_league_may_be_switched_on_and_off(tmp_path: Path) -> None:
    train(tmp_path, "run.steps=512")
    train(tmp_path, "run.steps=1024", "league={save_steps: 256, swap_steps: 64, latest_ratio: 0.2}")
    train(tmp_path, "run.steps=1536")
    result = train(tmp_path, "run.steps=2048", "league={save_steps: 256, swap_steps: 64}")
    assert result.counters.update == 8
    with RunDatabase(result.run.database, read_only=True) as database:
        names = [row.name for row in database.league_members()]
    assert names == [f"update-{update:09d}" for update in (2, 3, 6, 7)]
    assert not any("start over" in message for message in logged(result.run))
