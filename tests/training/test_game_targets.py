"""``keisei train GAME``: a game of any kind is a target, and its run is resumed like that of a preset."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_for_tests import Recorder, tiny

import keisei
from keisei.errors import ConfigError, RunSettingsError, UnknownGameError
from keisei.policies.trust import _THIS_PROCESS
from keisei.runs.directory import RunDirectory, config_digest
from keisei.training.api import plan_run
from keisei.training.presets import find_source, run_config
from keisei.training.wiring import games_digest

HEX = Path(__file__).parents[2] / "examples" / "hex.py"
QUICK = (
    "parallel.tables=1",
    "parallel.games=8",
    "parallel.horizon=8",
    "parallel.backend=inline",
    "learner.minibatch_size=32",
    "model.channels=8",
    "evaluation.opponents=[]",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory with a game in a file, which is imported anew in each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    shutil.copy(HEX, tmp_path / "hex.py")
    before = set(sys.modules)
    yield tmp_path
    forget(before)


def forget(before: set[str]) -> None:
    for name in set(sys.modules) - before:
        if name == "hex" or name.startswith("keisei.games.own_files."):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("target", "run", "game"),
    [
        ("hex.py", "hex", "{here}/hex.py:Hex"),
        ("hex.py:Hex", "hex", "{here}/hex.py:Hex"),
        ("./hex.py", "hex", "{here}/hex.py:Hex"),
        ("hex:Hex", "hex", "hex:Hex"),
        ("keisei.games.tictactoe:TicTacToe", "tictactoe", "keisei.games.tictactoe:TicTacToe"),
        ("connect-four", "connect-four", "connect-four"),
        ("ConnectFour", "connect-four", "ConnectFour"),
        ("openspiel:tic_tac_toe", "openspiel-tic_tac_toe", "openspiel:tic_tac_toe"),
        ("pettingzoo:tictactoe_v3", "pettingzoo-tictactoe_v3", "pettingzoo:tictactoe_v3"),
    ],
)
def test_a_target_may_be_a_game(target: str, run: str, game: str, here: Path) -> None:
    source = find_source(target, here / "runs")
    assert source.name == run
    assert source.config().resolved().env.game == game.format(here=here)
    assert f"settings chosen for {run.split('-')[0]}" in source.chosen
    assert f"To change them: keisei config {target} > mine.yaml" in source.chosen
    assert not (here / "runs").exists()


def test_presets_that_are_made_for_a_game_are_told(here: Path) -> None:
    assert (
        "Presets made for it: connect-four-dqn, connect-four-ppo." in find_source("connect-four", here).chosen
    )
    assert "Presets made for it" not in find_source("hex.py", here).chosen


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("hex", ConfigError, r"hex is a module\. Its games are Hex; name one of them, such as hex:Hex"),
        ("two.py", ConfigError, r"two\.py is a file of Python\. Its games are Hex, Larger; .* such as two\.py:Hex"),
        ("none.py", ConfigError, r"It defines no game: write a class that extends keisei\.SingleGame"),
        ("hexx.py", UnknownGameError, r"there is no file hexx\.py on this machine \(did you mean 'hex\.py'\?\)"),
        ("hex.py:Hx", UnknownGameError, r"has no 'Hx' \(did you mean 'Hex'\?\)"),
        ("hexgame:Hex", UnknownGameError, r"there is no module 'hexgame'"),
        ("json", ConfigError, "neither a preset nor a settings file nor a run nor a game"),
        ("conect-four", ConfigError, r"nor a game \(did you mean .*'connect-four'.*or one of your own as module:Class"),
    ],
)  # fmt: skip
def test_what_is_meant_is_told(target: str, error: type[Exception], message: str, here: Path) -> None:
    two = HEX.read_text() + "\n\nclass Larger(Hex):\n    name = 'larger'\n"
    (here / "two.py").write_text(two)
    (here / "none.py").write_text("NUMBER = 1\n")
    with pytest.raises(error, match=message):
        find_source(target, here / "runs")


def test_the_same_target_again_goes_on_with_its_own_settings(here: Path) -> None:
    recorder = Recorder()
    first = keisei.train("hex.py", steps=64, overrides=QUICK, callbacks=[recorder])
    assert first.run.path == Path("runs/hex")
    assert [
        text for _, text in recorder.notes if text.startswith("settings chosen for hex (a board, 2 seats)")
    ]
    again = Recorder()
    second = keisei.train("hex.py", steps=128, callbacks=[again])
    assert second.counters.update > first.counters.update
    told = [text for _, text in again.notes]
    assert any("keeps its own settings; others would be chosen now (in brackets)" in text for text in told)
    assert not any("has changed since" in text for text in told)
    assert keisei.train("hex", steps=192, callbacks=[]).run.path == first.run.path, "by its name"
    other = keisei.train("hex.py", steps=64, name="other", overrides=QUICK)
    assert other.counters.update == first.counters.update


def test_another_game_of_the_same_name_is_another_run(here: Path) -> None:
    keisei.train("hex.py", steps=64, overrides=QUICK)
    shutil.copy(HEX, here / "copy.py")
    with pytest.raises(RunSettingsError, match=r"env\.game .*hex\.py:Hex → .*copy\.py:Hex"):
        keisei.train("copy.py", steps=128)


def test_a_registered_game_begins_another_run_beside_that_of_its_name(here: Path) -> None:
    keisei.train("tictactoe", steps=64, overrides=QUICK)
    assert plan_run("tictactoe", root=Path("runs")).resumes
    plan = plan_run("tictactoe", name="second", root=Path("runs"), overrides=QUICK)
    assert (plan.run.name, plan.resumes) == ("second", False)


def test_a_change_of_the_file_is_told_when_the_run_is_resumed(here: Path) -> None:
    before = set(sys.modules)
    first = keisei.train("hex.py", steps=64, overrides=QUICK)
    digest = run_config(first.run).env.source_digest
    forget(before)  # as in another process
    with open("hex.py", "a", encoding="utf-8") as file:
        file.write("# a change\n")
    recorder = Recorder()
    keisei.train("hex", steps=128, callbacks=[recorder])
    told = " ".join(text for _, text in recorder.notes)
    assert f"{here}/hex.py has changed since this run was last trained" in told
    assert run_config(first.run).env.source_digest not in (None, digest)
    recorder = Recorder()
    keisei.train("hex", steps=192, callbacks=[recorder])
    assert "has changed since" not in " ".join(text for _, text in recorder.notes)


def test_a_run_of_a_file_is_trusted_by_whoever_began_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = keisei.train("hex.py", steps=64, overrides=QUICK).run
    _THIS_PROCESS.clear()
    assert keisei.load(run.path).spec.name == "hex"
    moved = RunDirectory(run.path.rename(here / "moved"))
    with pytest.raises(keisei.KeiseiError, match=r"wants to run the code '.*/hex\.py:Hex'"):
        keisei.load(moved.path)


def test_a_file_that_trains_when_it_is_imported_is_refused(here: Path) -> None:
    (here / "eager.py").write_text(HEX.read_text() + "\n\nkeisei.train('tictactoe-ppo', steps=1)\n")
    with pytest.raises(
        keisei.KeiseiError, match=r"eager\.py trains as soon as it is imported.*__name__ == '__main__'"
    ):
        keisei.train("eager.py")
    assert not (here / "runs").exists()


def test_games_of_earlier_versions_still_fit_their_settings() -> None:
    """They know no digest of a file, and a game that is in no file has none."""
    config = tiny()
    env = config.env.model_dump(mode="json")
    del env["source_digest"]
    before = {"env": env, "tables": config.parallel.tables, "games": config.parallel.games, "seed": 0}
    assert games_digest(config) == config_digest(before)
