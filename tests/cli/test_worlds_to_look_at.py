"""``keisei record`` and ``keisei schelling``: pictures and numbers of what agents do in a world."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.interfaces.animations import animated_gif, animated_svg
from keisei.training.api import train
from keisei.training.studies.schelling import diagram

SMALL = (
    "env.options={agents: 2, max_turns: 6, vision: 1}",
    "learner={regime: independent, dqn: {minibatch_size: 8}, replay: {capacity: 200, learning_starts: 10}}",
    "model={network: mlp, hidden_dim: 8, num_layers: 1}",
    "parallel={backend: inline, num_workers: 1, tables: 1, games: 4, horizon: 8}",
    "evaluation={every: 0, opponents: []}",
    "run.checkpoint_every=1",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for preset in ("treasurehunt-independent", "cleanup-independent", "stag-hunt-independent"):
        train(preset, steps=200, root=root, name=preset.removesuffix("-independent"), overrides=SMALL)
    return root


def call(*args: str) -> str:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    return result.output


def frames(count: int = 3) -> list[np.ndarray]:  # type: ignore[type-arg]
    found = []
    for number in range(count):
        frame = np.zeros((2, 4, 3), np.uint8)
        frame[0, number] = (200, number, 0)
        found.append(frame)
    return found


def test_a_gif_has_all_frames() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    with image.open(io.BytesIO(animated_gif(frames(), 0.1))) as opened:
        assert opened.n_frames == 3
        assert opened.size == (64, 32)


def test_an_svg_shows_each_frame_for_its_share_of_the_time() -> None:
    tree = ElementTree.fromstring(animated_svg(frames(), 0.5))
    space = "{http://www.w3.org/2000/svg}"
    animations = tree.findall(f".//{space}animate")
    assert [one.get("keyTimes") for one in animations] == ["0;0.33333", "0;0.33333;0.66667", "0;0.66667"]
    assert all(one.get("dur") == "1.5s" for one in animations)
    still = tree.findall(f"{space}g")[0].findall(f"{space}rect")
    assert len(still) == 5, "three cells change, the other five are drawn once"


@pytest.mark.parametrize("name", ["episode.gif", "episode.svg"])
def test_an_episode_is_recorded(runs: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert "6 turns of treasurehunt" in call("record", "treasurehunt", "--out", str(out), "--root", str(runs))
    assert out.read_bytes()[:4] in (b"GIF8", b"<svg")


def test_other_files_and_games_are_refused(runs: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["record", "treasurehunt", "--out", "x.mp4", "--root", str(runs)])
    assert "an animation is NAME.gif or NAME.svg" in result.output
    result = CliRunner().invoke(app, ["schelling", "treasurehunt", "--root", str(runs)])
    assert "it is known what cooperation is for cleanup, stag-hunt only" in " ".join(result.output.split())


@pytest.mark.parametrize("world", ["cleanup", "stag-hunt"])
def test_a_schelling_diagram_has_both_choices(runs: Path, world: str) -> None:
    found = json.loads(call("schelling", world, "--games", "4", "--json", "--root", str(runs)))
    counted = sum(choice["episodes"] for kind in ("cooperators", "defectors") for choice in found[kind])
    checkpoints = len(list((runs / world / "checkpoints").glob("update-*")))
    assert counted == 4 * 2 * checkpoints
    assert "others who cooperate" in call("schelling", world, "--games", "4", "--root", str(runs))


def test_returns_are_sorted_by_choice_and_by_others() -> None:
    chosen = np.array([[True, True, False], [False, False, False]])
    returns = np.array([[1.0, 3.0, 10.0], [4.0, 4.0, 7.0]])
    found = diagram("world", "does so", chosen, returns)
    assert [choice.episodes for choice in found.cooperators] == [0, 2, 0]
    assert found.cooperators[1].mean == 2
    assert [choice.mean for choice in found.defectors][::2] == [5, 10]
    assert math.isnan(found.defectors[1].mean)
