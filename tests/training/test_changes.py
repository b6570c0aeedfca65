"""Settings of an existing run: what may change, what is announced, and what is refused before anything is written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from logs_for_tests import read_log
from training_for_tests import TINY, After, Recorder, raising, tiny, train

import keisei
from keisei.config import Rule, classes_of
from keisei.errors import ConfigError, RunDatabaseError, RunSettingsError
from keisei.policies.model_config import ModelConfig
from keisei.policies.players.saved_player import load_player
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.training.callbacks import StopTraining
from keisei.training.changes import differences, rule_of
from keisei.training.settings import TrainConfig

LONGER = "run.steps=1536"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("finished")).run.path


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> RunDirectory:
    """A run that has come to its end, after 4 updates and 1024 transitions."""
    shutil.copytree(finished, tmp_path / "run", symlinks=True)
    return RunDirectory.open(tmp_path / "run")


def go_on(run: RunDirectory, *overrides: str, **options: Any) -> Recorder:
    recorder = Recorder()
    options.setdefault("callbacks", []).append(recorder)
    keisei.train(run.name, root=run.path.parent, overrides=overrides, **options)
    return recorder


def told(recorder: Recorder) -> list[str]:
    return [message for _, message in recorder.notes]


def files_of(run: RunDirectory) -> dict[str, str]:
    """Every file but the lock, which is taken and freed again."""
    paths = [path for path in sorted(run.path.rglob("*")) if path.is_file() and path.name != "lock"]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths}


def stored_changes(run: RunDirectory) -> list[tuple[int, str, str, str]]:
    with RunDatabase(run.database, read_only=True) as database:
        return [(row.update, row.setting, row.old, row.new) for row in database.changes()]


# The rule


FREE = {
    "parallel": {
        "backend", "address", "worker_cpus", "worker_gpus", "compress_slabs", "num_workers", "queue_maxsize", "timeout",
        "hang_timeout", "use_shared_memory", "scaling", "min_workers", "max_workers", "start_method", "max_failures",
        "verify_checksums",
    },
    "evaluation": {"every", "games", "opponents", "gate", "temperature", "opening_plies", "records"},
    "run": {
        "steps", "minutes", "episodes", "learner_threads", "device", "checkpoint_minutes", "checkpoint_every", "keep",
        "milestone_every", "stop_at",
    },
}  # fmt: skip
NEVER = {
    "env": {"game", "options", "board_size"},
    "model": set(ModelConfig.model_fields),
    "learner": {"regime", "algorithm", "agents"},
    "parallel": {"tables", "games", "horizon"},
    "run": {"seed"},
}
ALL_SETTINGS = list(
    dict.fromkeys(
        (section, name)
        for section, field in TrainConfig.model_fields.items()
        for kind in classes_of(field.annotation)
        for name in kind.model_fields
    )
)


def test_every_section_is_looked_at() -> None:
    assert {section for section, _ in ALL_SETTINGS} == set(TrainConfig.model_fields)
    assert {("learner", "clip"), ("learner", "huber"), ("league", "window")} <= set(ALL_SETTINGS)


@pytest.mark.parametrize(("section", "name"), ALL_SETTINGS)
def test_every_setting_says_what_may_happen_to_it(section: str, name: str) -> None:
    never, free = (name in table.get(section, set()) for table in (NEVER, FREE))
    assert rule_of(section, name) is (Rule.NEVER if never else Rule.FREE if free else Rule.ANNOUNCED)


def test_a_setting_that_regimes_share_has_one_rule() -> None:
    for section, name in ALL_SETTINGS:
        kinds = classes_of(TrainConfig.model_fields[section].annotation)
        assert len({kind.rule_of(name) for kind in kinds if name in kind.model_fields}) == 1, (section, name)


def test_a_setting_that_nobody_has_sorted_never_changes() -> None:
    assert rule_of("learner", "brand_new") is rule_of("world", "size") is Rule.NEVER
    (change,) = differences({"learner": {"brand_new": 1}}, {"learner": {"brand_new": 2}})
    assert (str(change), change.rule) == ("learner.brand_new 1 → 2", Rule.NEVER)


def test_a_league_may_be_added_and_left_out_on_the_way() -> None:
    without, league = ({"league": {"enabled": yes, "window": 12}} for yes in (False, True))
    (added,) = differences(without, league)
    (left,) = differences(league, without)
    assert (str(added), added.rule) == ("league.enabled false → true", Rule.ANNOUNCED)
    assert (str(left), left.rule) == ("league.enabled true → false", Rule.ANNOUNCED)
    assert not differences({}, without)


def test_differences_look_into_tables_and_know_the_defaults() -> None:
    old = {"env": {"options": {"max_plies": 9, "limit": "draw"}}}
    new = {"env": {"options": {"max_plies": 8}, "discount": 0.5}, "run": {"seed": 0}}
    assert list(map(str, differences(old, new))) == [
        "env.options.max_plies 9 → 8", "env.options.limit draw → not set", "env.discount 0.99 → 0.5",
    ]  # fmt: skip


# What never changes


@pytest.mark.parametrize(
    ("override", "change"),
    [
        ("model.hidden_dim=17", "model.hidden_dim 16 → 17"),
        ("env.game=connect-four", "env.game tictactoe → connect-four"),
        ("parallel.tables=3", "parallel.tables 2 → 3"),
        ("run.seed=1", "run.seed 0 → 1"),
    ],
)
def test_what_the_checkpoint_depends_on_is_refused_and_nothing_is_written(
    run: RunDirectory, override: str, change: str
) -> None:
    before = files_of(run)
    with pytest.raises(RunSettingsError) as caught:
        go_on(run, override, LONGER)
    assert f"\n  {change}\n" in str(caught.value)
    for way_out in (f"keisei train {run.path}", "--restart", "--name OTHER"):
        assert way_out in str(caught.value)
    assert files_of(run) == before
    assert run.status().state is RunState.FINISHED
    load_player("run", tiny().env.make(batch=1, seed=0).spec, run.path.parent)


def test_all_that_is_refused_is_told_at_once(run: RunDirectory) -> None:
    with pytest.raises(RunSettingsError, match=r"(?s)parallel\.games 8 → 9.*parallel\.horizon 16 → 32"):
        go_on(run, "parallel.games=9", "parallel.horizon=32")


def test_a_run_that_has_saved_nothing_yet_takes_any_settings(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "run", tiny())
    go_on(run, "run.seed=3", "run.steps=256")
    assert run.config()["run"]["seed"] == 3


# What is announced


def test_what_changes_learning_is_announced_and_stored(run: RunDirectory) -> None:
    expected = [
        "learner.learning_rate 0.003 → 0.005 from update 5 on",
        "parallel.epsilon 0.0 → 0.1 from update 5 on",
    ]
    assert told(go_on(run, "learner.learning_rate=0.005", "parallel.epsilon=0.1", LONGER)) == expected
    assert [line["message"] for line in read_log(run.log) if line["event"] == "log"][-2:] == expected
    rows = [(5, "learner.learning_rate", "0.003", "0.005"), (5, "parallel.epsilon", "0.0", "0.1")]
    assert stored_changes(run) == rows
    assert run.config()["learner"]["learning_rate"] == 0.005
    assert yaml.safe_load((run.path / "config.1.yaml").read_text())["learner"]["learning_rate"] == 0.003
    assert told(go_on(run, steps=1792)) == []
    assert stored_changes(run) == rows


@pytest.mark.parametrize(
    "overrides",
    [
        ["env.discount=0.5"],
        ["learner.minibatch_size=128", "learner.epochs=2", "learner.parts=2", "learner.trace=0.5"],
        ["parallel.mode=async", "parallel.backend=thread", "run.sync=adaptive", "parallel.max_policy_lag=9"],
        ["parallel.seating={opening_plies: 2, opponents: [{policy: random, share: 0.5}]}"],
        ["parallel.table_overrides={1: {temperature: 2.0}}", "parallel.worker_reset_interval=300"],
        ["parallel.compression_enabled=true", "parallel.compression=half", "parallel.inference=central"],
        ["parallel.episodes_per_worker=2", "run.mixed_precision=true"],
    ],
)
def test_the_checkpoint_fits_whatever_is_announced(run: RunDirectory, overrides: Sequence[str]) -> None:
    recorder = go_on(run, *overrides, LONGER)
    assert recorder.updates[0].counters.update == 5
    assert {setting.split(".")[1] for _, setting, _, _ in stored_changes(run)} == {
        override.partition("=")[0].split(".")[1] for override in overrides if "backend" not in override
    }


def test_other_rewards_fit_too_with_new_games(tmp_path: Path) -> None:
    shogi = ("env={game: shogi, options: {max_plies: 30}, reward_structure: {draw: -0.5}}", "run.steps=256")
    run = train(tmp_path, *shogi).run
    anew = "the settings of games or tables have changed since update 1: all games start over"
    change = "env.reward_structure.draw -0.5 → -0.25 from update 2 on"
    assert told(go_on(run, "env.reward_structure.draw=-0.25", "run.steps=512")) == [anew, change]
    assert any("all games start over" in line.get("message", "") for line in read_log(run.log))


def test_a_change_that_is_rewound_comes_again_with_its_row(run: RunDirectory) -> None:
    """The trainer is gone before it has saved an update with the new settings. They hold from update 5 on all the
    same, so the next trainer announces them again, though nobody gives them now."""
    stop = After(raising(StopTraining("for now")), 5)
    go_on(run, "learner.learning_rate=0.005", LONGER, callbacks=[stop])
    shutil.rmtree(run.checkpoints / "update-000000005")
    recorder = go_on(run)
    assert recorder.started[0].counters.update == 4
    assert told(recorder) == ["learner.learning_rate 0.003 → 0.005 from update 5 on"]
    assert stored_changes(run) == [(5, "learner.learning_rate", "0.003", "0.005")]


def test_a_change_before_which_the_run_goes_back_is_forgotten(run: RunDirectory) -> None:
    go_on(run, "learner.learning_rate=0.005", LONGER)
    for update in (5, 6):
        shutil.rmtree(run.checkpoints / f"update-{update:09d}")
    assert told(go_on(run, "learner.learning_rate=0.003")) == []
    assert stored_changes(run) == []


def test_a_row_that_cannot_be_written_does_not_stop_the_run(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise RunDatabaseError("the disk is full")

    monkeypatch.setattr(RunDatabase, "add_changes", full)
    assert "the changes are not kept: the disk is full" in told(go_on(run, "learner.clip=0.3", LONGER))


# What changes freely


def test_placement_evaluations_and_checkpoints_change_without_a_word(run: RunDirectory) -> None:
    placement = ("parallel.num_workers=1", "parallel.backend=thread")
    rest = ("run.checkpoint_every=2", "run.keep=9", "evaluation={opponents: [random], games: 2, every: 0}")
    recorder = go_on(run, *placement, *rest, LONGER)
    assert (len(recorder.updates), told(recorder), stored_changes(run)) == (2, [], [])


def test_settings_with_which_the_start_fails_are_not_kept(run: RunDirectory) -> None:
    with pytest.raises(ConfigError, match=r"run\.device = 'cuuda'"):
        go_on(run, "run.device=cuuda", LONGER)
    assert run.status().state is RunState.FINISHED
    assert run.config()["run"]["device"] == "auto"
    assert not (run.path / "config.1.yaml").exists()
    assert len(go_on(run, LONGER).updates) == 2


# The length


@pytest.mark.parametrize("options", [{"steps": 1}, {"steps": 1023}, {"minutes": 0.0001}])
def test_a_length_that_is_reached_already_is_told_and_nothing_is_written(
    run: RunDirectory, options: dict[str, Any]
) -> None:
    before = files_of(run)
    with pytest.raises(RunSettingsError, match=r"already, so there is nothing to train up to .* give more"):
        go_on(run, **options)
    assert files_of(run) == before


def test_a_run_that_has_ended_says_its_length(run: RunDirectory) -> None:
    for options in ({}, {"steps": 1024}):
        (message,) = told(go_on(run, **options))
        assert "it has 1,024 transitions, and its length is 1,024 steps; continue it with more" in message


# Runs whose settings do not fit their checkpoint


def without_settings(run: RunDirectory) -> None:
    """Makes the checkpoints as older versions of Keisei wrote them, with no more than a digest of the settings."""
    for path in CheckpointArchive(run.checkpoints, read_only=True).paths():
        checkpoint = load_checkpoint(path)
        documents = {**checkpoint.documents}
        del documents["settings"], documents["player"]
        shutil.rmtree(path)
        save_checkpoint(run.checkpoints, replace(checkpoint, documents=documents))


def misfit(run: RunDirectory) -> None:
    config = run.config()
    config["model"]["hidden_dim"] = 17
    run.change_config(config)
    config["run"]["steps"] = 1536
    run.change_config(config)


@pytest.mark.parametrize("is_old", [False, True])
def test_settings_that_do_not_fit_are_told_with_the_way_back(run: RunDirectory, is_old: bool) -> None:
    if is_old:
        without_settings(run)
    misfit(run)
    kept, current = run.path / "config.1.yaml", run.path / "config.yaml"
    spec = tiny().env.make(batch=1, seed=0).spec
    load_player("run", spec, run.path.parent)  # the checkpoint, or the file with its digest, says what it is
    with pytest.raises(
        RunSettingsError, match=rf"(?s)hidden_dim 16 → 17\n.*in config\.1\.yaml.*cp {kept} {current}$"
    ):
        go_on(run)
    shutil.copy(kept, current)
    load_player("run", spec, run.path.parent)
    assert len(go_on(run, LONGER).updates) == 2


def test_the_values_themselves_are_named_where_no_file_has_them(run: RunDirectory) -> None:
    misfit(run)
    (run.path / "config.1.yaml").unlink()
    with pytest.raises(RunSettingsError, match=r"into .*/config\.yaml again: model\.hidden_dim: 16$"):
        go_on(run)
    assert len(go_on(run, "model.hidden_dim=16").updates) == 2
    assert run.config()["model"]["hidden_dim"] == 16


def test_an_old_checkpoint_is_compared_with_the_settings_that_have_its_digest(run: RunDirectory) -> None:
    without_settings(run)
    config = run.config()
    config["learner"]["learning_rate"] = 0.005
    run.change_config(config)
    assert told(go_on(run, LONGER)) == ["learner.learning_rate 0.003 → 0.005 from update 5 on"]


# All ways to name a run


@pytest.fixture
def file(run: RunDirectory, tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(dict(TINY)))
    return path


def changed(path: Path, section: str, **settings: Any) -> Path:
    written = yaml.safe_load(path.read_text())
    written[section] |= settings
    path.write_text(yaml.safe_dump(written))
    return path


def test_a_file_goes_on_with_a_longer_run(run: RunDirectory, file: Path) -> None:
    recorder = Recorder()
    keisei.train(file, root=run.path.parent, steps=1536, callbacks=[recorder])
    keisei.train(file, root=run.path.parent, name="run", overrides=["run.steps=2048"], callbacks=[recorder])
    assert [update.counters.update for update in recorder.updates] == [5, 6, 7, 8]
    assert told(recorder) == []


def test_what_a_file_writes_now_holds(run: RunDirectory, file: Path) -> None:
    changed(file, "learner", learning_rate=0.005)
    changed(file, "run", steps=1536)
    recorder = Recorder()
    keisei.train(file, root=run.path.parent, callbacks=[recorder])
    assert (len(recorder.updates), told(recorder)) == (
        2, ["learner.learning_rate 0.003 → 0.005 from update 5 on"],
    )  # fmt: skip


def test_what_a_file_does_not_write_stays_as_it_is_in_the_run(run: RunDirectory, file: Path) -> None:
    go_on(run, "learner.clip=0.3", "run.keep=2", LONGER)
    keisei.train(file, root=run.path.parent, steps=1792)
    assert (run.config()["learner"]["clip"], run.config()["run"]["keep"]) == (0.3, 2)


def test_the_length_of_a_file_holds_as_a_whole(run: RunDirectory, file: Path) -> None:
    go_on(run, minutes=1000, callbacks=[After(raising(StopTraining("for now")), 5)])
    assert run.config()["run"]["steps"] is None
    keisei.train(changed(file, "run", steps=1536), root=run.path.parent)
    assert (run.config()["run"]["steps"], run.config()["run"]["minutes"]) == (1536, None)


@pytest.mark.parametrize("as_mapping", [True, False])
def test_a_file_and_settings_of_another_experiment_are_refused(
    run: RunDirectory, file: Path, as_mapping: bool
) -> None:
    changed(file, "model", hidden_dim=17)
    target = yaml.safe_load(file.read_text()) if as_mapping else file
    before = files_of(run)
    with pytest.raises(RunSettingsError, match=r"model\.hidden_dim 16 → 17"):
        keisei.train(target, name="run", root=run.path.parent)
    assert files_of(run) == before


def test_a_network_that_the_file_leaves_open_is_the_same_network(tmp_path: Path) -> None:
    settings = {**TINY, "model": {"network": "auto", "channels": 4, "blocks": 1}}
    for steps in (256, 512):
        result = keisei.train(settings, name="open", root=tmp_path, steps=steps)
    assert result.counters.update == 2


PRESET = ("parallel.tables=2", "parallel.games=8", "parallel.horizon=16", "learner.minibatch_size=64",
          "parallel.backend=inline", "evaluation.opponents=[]", "learner.epochs=1")  # fmt: skip


def test_a_preset_goes_on_with_the_runs_own_settings_and_tells_where_they_differ(tmp_path: Path) -> None:
    keisei.train("tictactoe-ppo", root=tmp_path, overrides=PRESET, steps=256)
    keisei.train("tictactoe-ppo", root=tmp_path, steps=512)
    recorder = Recorder()
    result = keisei.train("tictactoe-ppo", root=tmp_path, callbacks=[recorder])
    assert result.counters.transitions == 512
    note, ended = told(recorder)[:2]
    assert note.startswith("the run keeps its own settings; the preset has others (in brackets): ")
    assert "run.steps 512 (800000)" in note
    assert "parallel.tables 2 (4)" in note
    assert "its length is 512 steps" in ended


def test_a_preset_under_the_name_of_another_experiment_is_refused(run: RunDirectory) -> None:
    before = files_of(run)
    with pytest.raises(RunSettingsError, match=r"env\.game tictactoe → connect-four"):
        keisei.train("connect-four-ppo", name="run", root=run.path.parent)
    assert files_of(run) == before


def test_the_same_command_with_a_preset_and_a_name_goes_on(tmp_path: Path) -> None:
    for steps in (256, 512):
        result = keisei.train("tictactoe-ppo", name="mine", root=tmp_path, overrides=PRESET, steps=steps)
    assert result.counters.update == 2


def test_a_given_setting_is_announced_and_not_told_as_unlike_the_preset(tmp_path: Path) -> None:
    keisei.train("tictactoe-ppo", root=tmp_path, overrides=PRESET, steps=256)
    recorder = Recorder()
    keisei.train(
        "tictactoe-ppo", root=tmp_path, steps=512, overrides=["learner.trace=0.5"], callbacks=[recorder]
    )
    assert "learner.trace" not in told(recorder)[0]
    assert "learner.trace 0.9 → 0.5 from update 2 on" in told(recorder)
