"""``keisei picture`` of runs and ``keisei schelling``: pictures and numbers of what agents do in a world."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.games.worlds.colours import agent_colour
from keisei.games.worlds.picture import Shot
from keisei.interfaces.animations import animated_gif, animated_svg
from keisei.training.api import train
from keisei.training.studies.episodes import episode_of
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


LEGEND = [("ground", (0, 0, 0)), ("gold", (200, 150, 0))]


def shots(count: int = 3) -> list[Shot]:
    """Two agents: one walks to the right over gold, the other one stays."""
    ground = np.zeros((6, 8, 3), np.uint8)
    ground[0, 1] = (200, 150, 0)
    return [Shot(ground, [(0, turn), (5, 7)], turn, (turn * 1.5, -2.0)) for turn in range(count)]


def test_a_gif_shows_turns_returns_and_each_agent_in_its_colour() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    with image.open(io.BytesIO(animated_gif(shots(), LEGEND, 0.1))) as opened:
        assert opened.n_frames == 3
        pictures = []
        for number in range(3):
            opened.seek(number)
            pictures.append(np.asarray(opened.convert("RGB")).astype(int))
    first, second, _ = pictures
    for picture, (x, y), colour in (
        (first, (8, 8), agent_colour(0)),
        (first, (7 * 16 + 8, 5 * 16 + 8), agent_colour(1)),
        (second, (16 + 8, 8), agent_colour(0)),
        (first, (16 + 8, 8), (200, 150, 0)),
    ):
        assert np.abs(picture[y, x] - colour).max() < 12
    panel = np.s_[:40, 8 * 16 :]
    assert (first[panel] != second[panel]).any(), "the turn and the return of the first agent are written"


def test_an_svg_shows_each_frame_for_its_share_of_the_time() -> None:
    tree = ElementTree.fromstring(animated_svg(shots(), LEGEND, 0.5))
    space = "{http://www.w3.org/2000/svg}"
    animations = tree.findall(f".//{space}animate")
    assert [one.get("keyTimes") for one in animations] == ["0;0.33333", "0;0.33333;0.66667", "0;0.66667"]
    assert all(one.get("dur") == "1.5s" for one in animations)
    still, *frames = tree.findall(f"{space}g")
    assert len(still.findall(f"{space}rect")) == 6 * 8 + len(LEGEND), (
        "cells that do not change are drawn once"
    )
    assert {one.text for one in still.findall(f"{space}text")} >= {"ground", "gold", "agent 1", "-2"}
    assert [[one.text for one in frame.findall(f"{space}text")] for frame in frames] == [
        ["turn 0", "0"],
        ["turn 1", "1.5"],
        ["turn 2", "3"],
    ]
    assert all(len(frame.findall(f"{space}circle")) == 4 for frame in frames), "two agents and their keys"


@pytest.mark.parametrize("name", ["episode.gif", "episode.svg"])
def test_an_episode_is_drawn(runs: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert "6 turns of treasurehunt" in call(
        "picture", "treasurehunt", "--out", str(out), "--root", str(runs)
    )
    assert out.read_bytes()[:4] in (b"GIF8", b"<svg")


def test_an_episode_ends_with_the_final_returns(runs: Path) -> None:
    shots = episode_of("treasurehunt", root=runs).shots
    assert [shot.turn for shot in shots] == list(range(7))
    longer = episode_of("treasurehunt", root=runs, turns=8).shots
    assert [shot.turn for shot in longer] == [*range(7), 1, 2]
    assert [one.returns for one in longer[:7]] == [one.returns for one in shots]


def test_other_files_and_games_are_refused(runs: Path, tmp_path: Path) -> None:
    for arguments, told in (
        (["--out", "x.png"], "this picture is NAME.gif or NAME.svg"),
        (
            ["--out", "x.gif", "--ply", "3"],
            "--ply 3 is for a record, and treasurehunt is a run; leave it out",
        ),
        (["--out", "x.gif", "--number", "1"], "--number 1 is for a record"),
    ):
        result = CliRunner().invoke(app, ["picture", "treasurehunt", *arguments, "--root", str(runs)])
        assert told in " ".join(result.output.split())
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
