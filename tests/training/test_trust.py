"""Runs of strangers run no code: all ways to smuggle it in, through every door by which a run is read."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from runs_for_tests import make_run
from training_for_tests import train
from typer.testing import CliRunner
from web_for_tests import BEARER, WON, add_game, serving

import keisei
from keisei.cli.main import app
from keisei.errors import KeiseiError, UntrustedCodeError
from keisei.policies import trust
from keisei.policies.model_config import ModelConfig
from keisei.policies.players.saved_player import load_player
from keisei.policies.seating import PolicyConfig
from keisei.policies.trust import code_in, demand_trust, renamed_run, trust_run
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.directory import CONFIG, RunDirectory
from keisei.runs.snapshots import SnapshotStore
from keisei.training.league.roster import Member
from keisei.training.presets import run_config
from keisei.training.wiring import player_document

STATE = Path(os.environ["XDG_STATE_HOME"]) / "keisei" / "trusted"
"""Where the tests of this process keep what they trust."""
EVIL = """
from pathlib import Path
Path(__file__).with_name("it-ran").touch()

from keisei.games.tictactoe import TicTacToe
from keisei.policies.networks import MLP

class Game(TicTacToe):
    pass

class Net(MLP):
    pass
"""
HUB = "from pathlib import Path\nPath(__file__).with_name('it-ran').touch()\ndef model(**_):\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of runs. It is the current directory, and a stranger's module lies in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    shutil.rmtree(STATE, ignore_errors=True)  # a thinker of the dashboard looks there too, so the place stays
    monkeypatch.setattr(trust, "_THIS_PROCESS", {})
    (tmp_path / "evil.py").write_text(EVIL)
    (tmp_path / "hubconf.py").write_text(HUB)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("evil", "hubconf"):
            del sys.modules[name]


def ran(folder: Path) -> bool:
    return (folder / "it-ran").exists()


def changed(run: RunDirectory, section: str, **settings: Any) -> None:
    document = run.config()
    document[section] |= settings
    (run.path / CONFIG).write_text(yaml.safe_dump(document))


def by_game(run: RunDirectory) -> None:
    changed(run, "env", game="evil:Game")


def by_file(run: RunDirectory) -> None:
    """The run brings the file along, and names it by its path."""
    (run.path / "inner.py").write_text(EVIL.replace(").with_name(", ").parent.with_name("))
    changed(run, "env", game=f"{run.path}/inner.py:Game")


def by_hub(run: RunDirectory) -> None:
    here = str(run.path.parent)
    changed(
        run, "env", game="torch.hub:load", options={"repo_or_dir": here, "model": "model", "source": "local"}
    )


def by_network(run: RunDirectory) -> None:
    changed(run, "model", network="evil:Net")


def by_replay(run: RunDirectory) -> None:
    path = run.games / "game.replay.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"game": "evil:Game"}))


def by_member(run: RunDirectory) -> None:
    """A member of the league that comes from another run names its own network."""
    store = SnapshotStore(run.league)
    member = store.load(100)
    document: Any = dict(member.documents["member"])  # type: ignore[arg-type]
    document["model"] = {**document["model"], "network": "evil:Net"}
    store.save(100, Checkpoint("tictactoe", {"update": 0}, member.tensors, documents={"member": document}))
    newest = CheckpointArchive(run.checkpoints).paths()[-1]
    saved = load_checkpoint(newest)
    shutil.rmtree(newest)
    league = {"members": [document], "next_number": 101, "taken": 0}
    documents = {"league": league, "settings": run.config()}
    save_checkpoint(
        run.checkpoints, Checkpoint("tictactoe", saved.counters, saved.tensors, documents=documents)
    )


def said_of_its_player(run: RunDirectory, **changes: Any) -> None:
    """Changes what all checkpoints and members say of their player; the settings of the run name no code."""
    config = run_config(run).resolved()
    document: Any = player_document(config).model_dump(mode="json")
    for path in (*CheckpointArchive(run.checkpoints).paths(), run.league / "member-0100"):
        saved = load_checkpoint(path)
        shutil.rmtree(path)
        documents = {**saved.documents, "player": document | changes}
        save_checkpoint(path.parent, replace(saved, documents=documents), path.name)


def by_player_game(run: RunDirectory) -> None:
    said_of_its_player(run, game="evil:Game")


def by_player_network(run: RunDirectory) -> None:
    said_of_its_player(run, model={**run.config()["model"], "network": "evil:Net"})


def by_player_agents(run: RunDirectory) -> None:
    models = [run.config()["model"], {"network": "evil:Net"}]
    said_of_its_player(run, model=None, agents={"models": models, "stacks": [[0], [1]]})


BY_SETTINGS = (by_game, by_file, by_hub, by_network)
BY_PLAYER = (by_player_game, by_player_network, by_player_agents)
ROUTES = [*BY_SETTINGS, by_replay, by_member, *BY_PLAYER]


@pytest.fixture
def victim(folder: Path) -> RunDirectory:
    """A whole run with a game that was kept and a member of a league, as another machine has made it."""
    run = make_run(folder, "victim", best=10)
    add_game(run, WON)
    changed(run, "league", enabled=True)
    changed(run, "parallel", backend="inline", tables=2, games=4, horizon=8)
    changed(run, "learner", minibatch_size=16)
    changed(run, "run", steps=20_000)
    config = run_config(run).resolved()
    (run.path / CONFIG).write_text(yaml.safe_dump(config.model_dump(mode="json")))
    member = Member(100, "run", PolicyConfig(policy="friend"), model=ModelConfig.model_validate(config.model))
    weights = load_checkpoint(CheckpointArchive(run.checkpoints).paths()[0]).tensors
    document = member.document()
    SnapshotStore(run.league).save(
        100,
        Checkpoint("tictactoe", {"update": 0}, {"model": weights["model"]}, documents={"member": document}),
    )
    shutil.rmtree(STATE, ignore_errors=True)
    trust._THIS_PROCESS.clear()
    return run


def asked(*words: str) -> Callable[[RunDirectory], str]:
    def ask(run: RunDirectory) -> str:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words), input="resign\n")
        assert result.exception is None or isinstance(result.exception, SystemExit | KeiseiError), words
        return result.output

    return ask


def loaded(run: RunDirectory) -> str:
    try:
        for text in ("", "@latest", "@member-0100"):
            keisei.load(f"{run.path}{text}")
    except KeiseiError as error:
        return str(error)
    return ""


def served(run: RunDirectory) -> str:
    told = []
    with serving(run.path.parent) as dashboard:
        for path in (
            "/", "/play", "/metrics", "/api/runs", "/api/games", "/api/runs/victim",
            "/api/runs/victim/curves?metric=train/loss", "/api/runs/victim/board",
            "/api/runs/victim/replay?record=games/game.replay.json",
            "/api/runs/victim/record?record=games/game.replay.json",
        ):  # fmt: skip
            answer = dashboard.get(path, **BEARER)
            assert answer.status != 500, path
            told.append(answer.text)
        for which in ("best", "latest", "update-000000020", "member-0100"):
            for game in ({"run": "victim"}, {"game": "tictactoe"}, {"game": "evil:Game"}):
                seats = ["person", f"victim@{which}"]
                for body in ({**game, "seats": seats}, {**game, "judge": f"victim@{which}"}):
                    answer = dashboard.post("/api/play", body, **BEARER)
                    assert answer.status != 500, body
                    told.append(answer.text)
    return "\n".join(told)


DOORS = {
    "runs": asked("runs", "--root", "."),
    "one run": asked("runs", "victim", "--root", "."),
    "evaluate": asked("evaluate", "victim", "--root", ".", "--games", "2"),
    "evaluate a member": asked("evaluate", "victim@member-0100", "--root", ".", "--games", "2"),
    "opponent": asked("match", "random", "./victim", "--root", ".", "--games", "2"),
    "ladder": asked("ladder", "victim", "--root", ".", "--games", "2"),
    "tournament": asked("tournament", "victim", "--root", ".", "--games", "2"),
    "play": asked("play", "victim", "--root", ".", "--seat", "1"),
    "export": asked("export", "victim", "--root", ".", "--out", "model.onnx"),
    "config": asked("config", "victim", "--root", "."),
    "train": asked("train", "victim", "--root", ".", "--quiet"),
    "train anew": asked("train", "victim", "--root", ".", "--restart", "--steps", "64", "--quiet"),
    "train by its file": asked("train", f"victim/{CONFIG}", "--root", ".", "--name", "b", "--steps", "64"),
    "weights": asked("train", "tictactoe-ppo", "--root", ".", "--from", "victim", "--steps", "64"),
    "profile": asked("profile", "victim", "--root", ".", "--steps", "64"),
    "picture": asked("picture", "victim", "--root", ".", "--out", "a.gif"),
    "load": loaded,
    "dashboard": served,
}
NEVER_ASKS = {"runs", "one run"}
"""Doors that need no code, and so show such a run as any other."""
PLAYS = {
    "evaluate", "evaluate a member", "opponent", "ladder", "tournament", "play", "export", "load", "dashboard",
}  # fmt: skip
"""Doors by which a checkpoint plays."""
NEEDS_NO_NETWORK = {"evaluate a member", "picture"}
"""Doors that do not use the network that the settings name: a member has its own, and nothing can be drawn here."""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("door", DOORS)
def test_code_of_strangers_does_not_run(
    route: Callable[[RunDirectory], None], door: str, folder: Path, victim: RunDirectory
) -> None:
    route(victim)
    told = DOORS[door](victim)
    assert not ran(folder)
    assert str(folder) not in sys.path
    if route in BY_PLAYER:
        needed = door in PLAYS
    else:
        needed = door not in NEVER_ASKS and not (route is by_network and door in NEEDS_NO_NETWORK)
    if route in (*BY_SETTINGS, *BY_PLAYER) and needed:
        assert "nobody has said here that they trust this run" in told
        assert (
            f"--trust {victim.path.name}" in told or "--trust ./victim" in told or f"--trust {folder}" in told
        )
        assert {by_hub: "torch.hub:load", by_file: "inner.py:Game"}.get(route, "evil:") in told


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", f"victim/{CONFIG}", "--set", "learner.epochs=1,2"),
        ("train", f"victim/{CONFIG}", "--seeds", "0,1"),
        ("verify", "--training", "--config", "victim"),
    ],
)
def test_commands_that_start_others_ask_too(
    folder: Path, victim: RunDirectory, words: tuple[str, ...]
) -> None:
    by_file(victim)
    assert "nobody has said here that they trust this run" in asked(*words, "--root", ".")(victim)
    assert "no run is named 'nobody'" in asked(*words, "--root", ".", "--trust", "nobody")(victim)
    assert not ran(folder)


def test_the_settings_in_a_checkpoint_are_a_strangers_too(folder: Path) -> None:
    """A branch begins with them."""
    run = train(folder).run
    (newest,) = CheckpointArchive(run.checkpoints, keep=1).paths()[-1:]
    saved = load_checkpoint(newest)
    settings: Any = saved.documents["settings"]
    settings["env"]["game"] = "evil:Game"
    shutil.rmtree(newest)
    save_checkpoint(run.checkpoints, saved)
    trust._THIS_PROCESS.clear()
    branch = ("train", f"{run.name}@latest", "--name", "branch")
    assert "wants to run the code 'evil:Game'" in asked(*branch, "--root", str(run.root))(run)
    assert not ran(folder)


def test_a_member_of_a_stranger_is_refused(folder: Path, victim: RunDirectory) -> None:
    by_member(victim)
    spec = keisei.make_game("tictactoe").spec
    with pytest.raises(UntrustedCodeError, match=r"'evil:Net' \(model.network\), and nobody has said here"):
        load_player("victim@member-0100", spec, folder)
    assert not ran(folder)


def test_a_league_of_a_stranger_is_not_continued(folder: Path) -> None:
    settings = ("league.enabled=true", "league.save_steps=256")
    run = train(folder, *settings).run
    (newest,) = CheckpointArchive(run.checkpoints, keep=1).paths()[-1:]
    saved = load_checkpoint(newest)
    league: Any = saved.documents["league"]
    league["members"][0]["model"]["network"] = "evil:Net"
    shutil.rmtree(newest)
    save_checkpoint(run.checkpoints, saved)
    trust._THIS_PROCESS.clear()
    with pytest.raises(UntrustedCodeError, match=r"the league in the checkpoint of .* 'evil:Net'"):
        train(folder, *settings, "run.steps=2048")
    assert not ran(folder)


def test_who_trusts_a_run_is_not_asked_again(
    folder: Path, victim: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_game(victim)
    monkeypatch.syspath_prepend(folder)  # processes of the dashboard search the same path
    result = CliRunner().invoke(
        app, ["evaluate", "victim", "--root", ".", "--games", "2", "--trust", "victim"]
    )
    assert result.exit_code == 0, result.output
    assert f"victim may use evil:Game from {folder / 'evil.py'}" in " ".join(result.output.split())
    assert ran(folder)
    trust._THIS_PROCESS.clear()
    assert keisei.load(victim.path).spec.name == "tictactoe"
    with serving(folder) as dashboard:
        answer = dashboard.post("/api/play", {"run": "victim", "seats": ["person", "victim@best"]}, **BEARER)
        assert answer.status == 200


@pytest.mark.parametrize("keep", [True, False])
def test_trust_goes_along_with_another_name(folder: Path, victim: RunDirectory, keep: bool) -> None:
    by_game(victim)
    trust_run(victim, keep=keep)
    moved = renamed_run(RunDirectory(victim.path, folder), "lr/mine")
    if keep:
        trust._THIS_PROCESS.clear()
    assert keisei.load(moved.path).spec.name == "tictactoe"
    assert len(list(STATE.glob("*.json"))) == keep


def test_another_name_gives_no_trust(folder: Path, victim: RunDirectory) -> None:
    """Neither to a run that had none, nor to one that takes the place of a run that was trusted."""
    by_game(victim)
    trusted = shutil.copytree(victim.path, folder / "trusted")
    (trusted / "id").write_text("another")
    trust_run(RunDirectory(trusted, folder))
    moved = renamed_run(RunDirectory(victim.path, folder), "moved")
    with pytest.raises(UntrustedCodeError):
        keisei.load(moved.path)
    shutil.rmtree(trusted)
    moved = renamed_run(moved, "trusted")
    with pytest.raises(UntrustedCodeError):
        keisei.load(moved.path)
    assert not ran(folder)


def test_a_program_may_trust_a_run_without_a_trace(folder: Path, victim: RunDirectory) -> None:
    by_network(victim)
    with pytest.raises(UntrustedCodeError):
        keisei.load(victim.path)
    assert not ran(folder)
    keisei.load(victim.path, trust=True)
    assert ran(folder)
    keisei.load(victim.path)
    assert not STATE.exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("path", "nobody has said here"),
        ("id", "another run was trusted at this path before"),
        ("names", "this run was trusted with other code"),
        ("origin", "it came from .*evil.py before and comes from .*elsewhere"),
    ],
)
def test_what_changes_is_asked_for_again(
    change: str, reason: str, folder: Path, victim: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_game(victim)
    trust_run(victim)
    trust._THIS_PROCESS.clear()
    run_config(victim)
    if change == "path":
        victim = RunDirectory(victim.path.rename(folder / "moved"))
    elif change == "id":
        (victim.path / "id").write_text("another\n")
    elif change == "names":
        changed(victim, "env", game="evil:Other")
    else:
        (folder / "elsewhere").mkdir()
        (folder / "evil.py").rename(folder / "elsewhere" / "evil.py")
        monkeypatch.chdir(folder / "elsewhere")
    with pytest.raises(UntrustedCodeError, match=reason):
        run_config(victim)
    assert not ran(folder)


def test_a_run_of_ones_own_game_is_trusted_from_its_start(folder: Path) -> None:
    settings = {
        "env": {"game": "evil:Game"},
        "model": {"network": "evil:Net", "hidden_dim": 8},
        "learner": {"minibatch_size": 16},
        "parallel": {"backend": "inline", "tables": 1, "games": 4, "horizon": 8},
        "evaluation": {"opponents": []},
        "run": {"steps": 32},
    }
    (folder / "own.yaml").write_text(yaml.safe_dump(settings))
    result = CliRunner().invoke(app, ["train", "own.yaml", "--root", "runs", "--quiet"])
    assert result.exit_code == 0, result.output
    trust._THIS_PROCESS.clear()
    result = CliRunner().invoke(app, ["train", "runs/own", "--steps", "64", "--quiet"])
    assert result.exit_code == 0, result.output
    shutil.rmtree(STATE, ignore_errors=True)
    trust._THIS_PROCESS.clear()
    result = CliRunner().invoke(app, ["train", "own.yaml", "--root", "runs", "--steps", "96", "--quiet"])
    assert result.exit_code == 0, f"their own file names the code: {result.output}"


def test_a_run_from_before_has_no_id_and_can_be_trusted(folder: Path, victim: RunDirectory) -> None:
    by_game(victim)
    (victim.path / "id").unlink()
    with pytest.raises(UntrustedCodeError, match="an earlier version started need this once too"):
        run_config(victim)
    trust_run(victim)
    trust._THIS_PROCESS.clear()
    run_config(victim)


def test_a_cluster_that_a_run_names_is_not_connected_to(folder: Path, victim: RunDirectory) -> None:
    changed(victim, "parallel", backend="ray", address="10.0.0.1:6379")
    with pytest.raises(
        UntrustedCodeError, match=r"connect to the Ray cluster '10.0.0.1:6379' \(parallel.address\)"
    ):
        run_config(victim)
    changed(victim, "parallel", backend="ray", address="local")
    run_config(victim)


def test_what_a_user_overrides_is_their_own(folder: Path, victim: RunDirectory) -> None:
    from keisei.training.presets import run_source

    run_source(victim).config(["parallel.address=10.0.0.1:6379"])
    by_game(victim)
    with pytest.raises(UntrustedCodeError):
        run_source(victim).config(["parallel.address=10.0.0.1:6379"])


def test_trust_is_written_for_its_user_alone(folder: Path, victim: RunDirectory) -> None:
    by_game(victim)
    trust_run(victim)
    (path,) = STATE.iterdir()
    assert path.parent.stat().st_mode & 0o077 == 0
    trust._THIS_PROCESS.clear()
    for content in ("", "null", "[]", "{}", '{"path": 1, "id": 2, "code": 3}', "[" * 9000):
        path.write_text(content)
        with pytest.raises(UntrustedCodeError):
            demand_trust(victim, victim.config(), "it")


def test_without_a_place_to_remember_it_a_run_is_trusted_for_now(
    folder: Path, victim: RunDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    by_game(victim)
    trust_run(victim)
    run_config(victim)
    assert "cannot be trusted for longer than this process" in caplog.text


def test_code_is_found_wherever_it_is_named() -> None:
    document = {
        "env": {"game": "a:A", "options": {"game": "openspiel:go"}},
        "model": {"network": "slim"},
        "learner": {"agents": {3: {"model": {"network": "b:B"}}}},
        "league": [{"model": {"network": "c:C"}}, None, 3, "d:D"],
        "parallel": {"address": "local"},
    }
    assert code_in(document) == {
        "a:A": "env.game",
        "b:B": "learner.agents.3.model.network",
        "c:C": "league.0.model.network",
    }


def test_a_file_is_the_same_code_however_it_is_written(folder: Path) -> None:
    assert code_in({"game": "own.py:Game"}) == code_in({"game": f"{folder}/own.py:Game"})
