"""``keisei export``: the file gives torch's numbers in ONNX Runtime, and its numbers are explained."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner, Result

from keisei import make_game
from keisei.cli.main import app
from keisei.interfaces.onnx_export import ILLEGAL, describe, export_onnx
from keisei.policies import build_network
from keisei.policies.gather_network import legal_actions
from keisei.policies.sampling import masked_log_softmax
from keisei.runs.directory import RunDirectory

NETWORKS: list[dict[str, Any]] = [
    {"network": "mlp", "hidden_dim": 16, "num_layers": 2},
    {"network": "gather", "hidden_dim": 16, "num_layers": 2},
    {"network": "slim", "channels": 8, "blocks": 1},
    {"network": "residual", "channels": 8, "blocks": 1, "squeeze_excitation": True},
    {"network": "slim", "channels": 8, "blocks": 1, "outputs": "dueling", "quantiles": 3},
]
OF_ACTIONS: list[dict[str, Any]] = [
    {"network": "actions", "hidden_dim": 16},
    {"network": "actions", "hidden_dim": 16, "outputs": "dueling"},
    {"network": "actions", "hidden_dim": 16, "outputs": "q", "quantiles": 3},
]


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


def export(root: Path, *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["export", "--root", str(root), *arguments])


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *((name, model) for name in ("shogi", "connect-four") for model in NETWORKS),
        *(("ludo", model) for model in OF_ACTIONS),
    ],
    ids=lambda given: given if isinstance(given, str) else f"{given['network']}-{given.get('outputs', '')}",
)
def test_onnx_runtime_gives_the_numbers_of_torch(tmp_path: Path, model: dict[str, Any], name: str) -> None:
    game = make_game(name, batch=4)
    network = build_network(model, game.spec, seed=1)
    written = export_onnx(network, game, tmp_path / "model.onnx", {})
    assert written.largest_difference < 1e-4
    other = make_game(name, batch=7, seed=9)
    for _ in range(3):
        other.step(other.random_actions())
    observations, legal = other.observe(), other.legal()
    session = onnxruntime.InferenceSession(written.model)
    logits, values = session.run(["logits", "values"], {"observations": observations, "legal": legal})
    listed = legal_actions(legal)
    with torch.inference_mode():
        wanted, wanted_values = network(torch.from_numpy(observations), torch.from_numpy(listed))
    for row in range(len(listed)):
        actions = listed[row][listed[row] >= 0]
        np.testing.assert_allclose(logits[row][actions], wanted[row][: len(actions)], atol=1e-4)
    assert (logits[~legal] == np.float32(ILLEGAL)).all()
    np.testing.assert_allclose(values, wanted_values, atol=1e-4)


def test_a_run_is_exported_with_the_meaning_of_its_numbers(
    tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    make_run(tmp_path, "mine", game="shogi")
    out = tmp_path / "model.onnx"
    result = export(tmp_path, "mine@20", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "ONNX Runtime gives the numbers of torch" in result.stdout
    meaning = json.loads((tmp_path / "model.json").read_text())
    assert (meaning["game"], meaning["checkpoint"]) == ("shogi", "update-000000020")
    assert meaning["inputs"]["observations"]["shape"] == ["rows", 54, 9, 9]
    assert len(meaning["observation"]) == 54
    assert len(meaning["actions"]) == 2187
    assert meaning["observation"][34] == "pawns in own hand"
    assert meaning["actions"][59] == "up, to 7f"
    assert meaning["actions"][81 * 12 + 10] == "up right, with promotion, to 2b"
    assert onnxruntime.InferenceSession(out).get_inputs()[1].name == "legal"


@pytest.mark.parametrize("name", ["shogi", "ludo", "connect-four", "tictactoe"])
def test_every_number_of_our_games_is_explained(name: str) -> None:
    for options in ({"players": 2}, {"players": 3}) if name == "ludo" else ({},):
        game = make_game(name, **options)
        network = build_network({"network": "mlp", "hidden_dim": 4, "num_layers": 1}, game.spec, seed=1)
        told = describe(network, game)
        assert len({*told["actions"]}) == game.spec.num_actions
        assert len({*told["observation"]}) == game.spec.observation.shape[0]


def test_probabilities_follow_from_the_logits(tmp_path: Path) -> None:
    game = make_game("tictactoe", batch=2)
    network = build_network(NETWORKS[0], game.spec, seed=1)
    written = export_onnx(network, game, tmp_path / "model.onnx", {})
    fresh = make_game("tictactoe", batch=2)
    inputs = {"observations": fresh.observe(), "legal": fresh.legal()}
    logits = onnxruntime.InferenceSession(written.model).run(["logits"], inputs)[0]
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    with torch.inference_mode():
        plain = network(torch.from_numpy(inputs["observations"]))[0]
        wanted = masked_log_softmax(plain, torch.from_numpy(inputs["legal"])).exp()
    np.testing.assert_allclose(chances, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine", "--out", "model.pt"], "networks are written as ONNX; name it model.onnx"),
        (["mine", "--out", "nowhere/model.onnx"], "there is no folder"),
        (["nobody", "--out", "model.onnx"], "no run is named 'nobody'"),
    ],
)
def test_what_cannot_be_exported(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = export(tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
