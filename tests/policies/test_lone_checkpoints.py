"""A checkpoint that was copied out of its run plays, and says what it lacks. What it says of its player is foreign."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import independent_for_tests
import numpy as np
import pytest
from runs_for_tests import checkpoint_of, make_run, network_of
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.cli.usi import _load
from keisei.errors import CheckpointError, KeiseiError, PolicyError, RunError, UntrustedCodeError
from keisei.interfaces.usi.protocol import EngineOptions
from keisei.policies import NeuralPolicy
from keisei.policies.agents_policy import AgentsPolicy
from keisei.policies.players.finding import find_run, game_of, locate
from keisei.policies.players.player_document import read_document
from keisei.policies.players.saved_player import checkpoint_facts, find_player, load_player
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.runs.directory import RunDirectory
from keisei.training.settings import TrainConfig
from keisei.training.wiring import player_document

OWN = """
from pathlib import Path
Path(__file__).with_name("it-ran").touch()

from keisei.games.tictactoe import TicTacToe
from keisei.policies.networks import MLP

class Game(TicTacToe):
    pass

class Net(MLP):
    pass
"""


def alone(folder: Path, run: RunDirectory, update: int = 5, **changes: Any) -> Path:
    """Writes a checkpoint as a trainer does, with some changes of what it says of its player, and removes its run."""
    config = TrainConfig.model_validate(run.config())
    config = config.model_copy(update={"model": config.model.resolved(config.env.make(batch=1, seed=0).spec)})
    document: Any = player_document(config).model_dump(mode="json")
    checkpoint = replace(checkpoint_of(run, update), documents={"player": document | changes})
    (folder / "elsewhere").mkdir()
    path = save_checkpoint(folder / "elsewhere", checkpoint)
    shutil.rmtree(run.path)
    return path


@pytest.fixture
def own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with code of a user, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / "owncode.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("owncode", None)


def test_it_plays_with_its_own_weights_game_and_temperature(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "a", (), game="connect-four", options={"max_plies": 30})
    network = network_of(run, 5)
    path = alone(tmp_path, run, temperature=0.25)
    assert locate(str(path)) == (None, str(path))
    assert find_player(str(path)).path == path
    player = keisei.load(path)
    assert player.name == str(path)
    assert player.spec == game_of(str(path)).spec
    assert player.spec.max_plies == 30
    assert isinstance(player.policy, NeuralPolicy)
    assert player.policy.temperature == 0.25
    weights = player.policy.network.state_dict()
    assert all(bool((tensor == weights[name]).all()) for name, tensor in network.state_dict().items())
    game = player.game(batch=4, seed=1)
    again = NeuralPolicy(network, game.spec, 0.0).log_probabilities(game.observe(), game.legal())
    assert np.array_equal(player.policy.log_probabilities(game.observe(), game.legal()), again)
    assert checkpoint_facts(str(path)) is None
    with pytest.raises(PolicyError, match="one network plays all seats"):
        keisei.load(path, seat=0)


@pytest.mark.parametrize(
    "words", [("evaluate", "--games", "2"), ("play", "--seat", "1"), ("match", "random", "--games", "2")]
)
def test_commands_take_its_path(words: tuple[str, ...], tmp_path: Path) -> None:
    path = alone(tmp_path, make_run(tmp_path / "runs", "a", ()))
    result = CliRunner().invoke(app, [words[0], str(path), *words[1:]], input="resign\n")
    assert result.exit_code == 0, result.output
    assert "random" in result.output or "You play tictactoe" in result.output


def test_it_plays_in_a_tournament(tmp_path: Path) -> None:
    path = alone(tmp_path, make_run(tmp_path / "runs", "a", ()))
    result = CliRunner().invoke(app, ["tournament", str(path), "random", "--games", "2", "--json"])
    assert result.exit_code == 0, result.output
    assert path.name in result.output


def test_a_gui_plays_against_it(tmp_path: Path) -> None:
    path = alone(tmp_path, make_run(tmp_path / "runs", "s", (), game="shogi"))
    assert type(_load(EngineOptions(run=str(path)))).__name__ == "NetworkMind"


def test_a_whole_run_is_still_a_run(tmp_path: Path) -> None:
    path = alone(tmp_path, make_run(tmp_path / "runs", "a", ()))
    with pytest.raises(RunError, match="is a checkpoint outside of a run, and a run is needed here"):
        find_run(str(path))
    run = make_run(tmp_path / "runs", "b")
    assert locate(str(run.checkpoints / "update-000000010")) == (run, "update-000000010")


def test_each_agent_sits_in_its_seat(tmp_path: Path) -> None:
    run = independent_for_tests.train(
        tmp_path, "learner.agents={1: {algorithm: ppo, model: {hidden_dim: 9}}}", "run.steps=64"
    ).run
    newest = CheckpointArchive(run.checkpoints, read_only=True).paths()[-1]
    there = keisei.load(newest)
    path = Path(shutil.copytree(newest, tmp_path / "alone"))
    agents = read_document(load_checkpoint(path), None, trusted=True).agents
    assert agents is not None
    assert [model.outputs for model in agents.models[:3]] == ["dueling", "policy", "dueling"]
    assert agents.models[1].hidden_dim == 9
    shutil.rmtree(run.path)
    here = keisei.load(path, trust=True)  # the game is one of the tests
    assert isinstance(here.policy, AgentsPolicy)
    game = here.game(batch=3, seed=2)
    observations, legal = game.observe()[:4], game.legal()[:4]
    for seat in range(game.spec.seats):
        mine, theirs = (player.policy.of_seat(seat) for player in (here, there))  # type: ignore[attr-defined]
        assert np.array_equal(mine.evaluate(observations, legal), theirs.evaluate(observations, legal))


# What is not there, and what is wrong


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"game": "owncode:Game"}, "owncode:Game"),
        ({"game": "torch.hub:load"}, "torch.hub:load"),
        ({}, "owncode:Net"),
    ],
)
def test_code_that_it_names_needs_the_word_of_the_user(
    change: dict[str, Any], named: str, own_code: Path
) -> None:
    run = make_run(own_code / "runs", "a", ())
    model: Any = {**run.config()["model"], "network": "owncode:Net"}
    path = alone(own_code, run, **(change or {"model": model}))
    for ask in (
        lambda: keisei.load(path),
        lambda: game_of(str(path)),
        lambda: load_player(str(path), keisei.make_game("tictactoe").spec),
    ):
        with pytest.raises(UntrustedCodeError, match=rf"needs the code '{named}' \(player\..*trust=True"):
            ask()
    result = CliRunner().invoke(app, ["evaluate", str(path), "--games", "2"])
    assert named in str(result.exception) + result.output
    result = CliRunner().invoke(app, ["evaluate", str(path), "--games", "2", "--trust", str(path)])
    assert "a checkpoint outside of a run" in " ".join((str(result.exception) + result.output).split())
    assert not (own_code / "it-ran").exists()
    if named != "torch.hub:load":
        assert keisei.load(path, trust=True).spec.name == "tictactoe"
        assert (own_code / "it-ran").exists()
        with pytest.raises(UntrustedCodeError):
            keisei.load(path)


@pytest.mark.parametrize("change", ["game", "network"])
def test_code_that_is_not_there_is_named(change: str, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "a", ())
    model: Any = {**run.config()["model"], "network": f"{tmp_path}/gone.py:Net"}
    changes = {"game": f"{tmp_path}/gone.py:Game"} if change == "game" else {"model": model}
    path = alone(tmp_path, run, **changes)
    with pytest.raises(
        KeiseiError, match=rf"{path.name} needs the {change} '.*gone\.py:.*there is no file .*gone\.py"
    ):
        keisei.load(path, trust=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"game": 3}, r"update-000000005:\n.*game"),
        ({"game": "no-such-game"}, "no game is named 'no-such-game'"),
        ({"game": "connect-four"}, "is of the game 'tictactoe'"),
        ({"options": {"colour": 1}}, "colour"),
        ({"options": {"max_plies": 10**30}}, "more than 64 bits"),
        ({"options": [1]}, "options"),
        ({"temperature": -1}, "temperature"),
        ({"later": 1}, "later"),
        ({"model": None}, "either one model plays all seats, or agents have one each"),
        ({"model": {"network": "mlp", "hidden_dim": 10**9}}, "hidden_dim"),
        ({"model": {"network": "mlp", "hidden_dim": 65536, "num_layers": 64}}, "its weights are .* numbers"),
        ({"model": {"network": "mlp", "hidden_dim": 9, "num_layers": 1}}, "another network"),
        ({"model": None, "agents": {"models": [{}], "stacks": [[0]]}}, "1 agents for the 2 seats"),
        ({"model": None, "agents": {"models": [{}, {}], "stacks": [[0, 0]]}}, "each of the 2 agents once"),
        (
            {"model": None, "agents": {"models": [{}, {}], "stacks": [[0, 1], []]}},
            "each of the 2 agents once",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_words(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = alone(tmp_path, make_run(tmp_path / "runs", "a", ()), **changes)
    with pytest.raises(KeiseiError, match=f"(?s){message}"):
        keisei.load(path)


def test_without_any_settings_an_old_checkpoint_needs_its_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "a", (5,))
    path = Path(shutil.copytree(run.checkpoints / "update-000000005", tmp_path / "alone"))
    with pytest.raises(CheckpointError, match=r"earlier version.*Put it back into the folder checkpoints"):
        keisei.load(path)
