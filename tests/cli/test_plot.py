"""``keisei plot`` as a person runs it, on runs that were written as the trainer writes them."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.interfaces.charts import COLOURS
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import EvaluationRow

CONFIG: dict[str, Any] = {
    "env": {"game": "connect-four"},
    "model": {"network": "residual", "channels": 32, "blocks": 2},
}
ROLLOUT = 1000
NAMESPACE = "{http://www.w3.org/2000/svg}"
CORNER = re.compile(r"[ML] (\S+) (\S+)")


def plot(root: Path, *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["plot", "--root", str(root), *arguments])


def svg_of(root: Path, *arguments: str) -> ElementTree.Element:
    out = root / "picture.svg"
    result = plot(root, *arguments, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert str(out) in result.stderr
    return ElementTree.fromstring(out.read_bytes())


def texts(picture: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in picture.iter(f"{NAMESPACE}text")]


def curves(picture: ElementTree.Element) -> list[tuple[str, list[tuple[float, float]]]]:
    """The colour and the corners of each curve. Other lines are grey, or belong to the axes."""
    paths = [path.attrib for path in picture.iter(f"{NAMESPACE}path")]
    return [
        (match[1], [(float(x), float(y)) for x, y in CORNER.findall(path["d"])])
        for path in paths
        if (match := re.search(r"stroke: (#\w+); stroke-width: 1.3(?:;|$)", path.get("style", "")))
    ]


def strokes(picture: ElementTree.Element) -> list[str]:
    return [colour for colour, _ in curves(picture)]


def numbers(update: int) -> Mapping[str, float]:
    return {
        "train/entropy_loss": -2.0 / update,
        "train/value_loss": math.nan if update == 5 else 0.5 / update,
        "rollout/ep_len_mean": 20.0 + update,
        "selfplay/first_win_rate": 0.625,
        "selfplay/draw_rate": 0.25,
        "selfplay/truncation_rate": 0.125,
        "perf/transitions_per_second": 3000.0 + update,
        "perf/worker_utilisation": 0.875,
        "time/time_elapsed": 60.0 * update,
    }


def evaluation(update: int, opponent: str, score: float) -> EvaluationRow:
    return EvaluationRow(
        update,
        update * ROLLOUT,
        0.0,
        f"update-{update:09d}",
        opponent,
        1,
        0,
        1,
        score,
        score - 0.1,
        score + 0.1,
    )


def make_run(root: Path, name: str, updates: int = 10) -> RunDirectory:
    run = RunDirectory.create(root, name, CONFIG)
    with RunDatabase(run.database) as database:
        for update in range(1, updates + 1):
            database.add_metrics(update, update * ROLLOUT, numbers(update), at=1.7e9 + update)
        for update in (4, 8):
            database.add_evaluation(evaluation(update, "random", 0.1 * update))
            database.add_evaluation(evaluation(update, "search:2", 0.05 * update))
            database.add_evaluation(evaluation(update, f"update-{update - 1:09d}", 0.55))
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "runs", "first")


def test_a_run_as_svg(run: RunDirectory) -> None:
    picture = svg_of(run.path.parent, "first")
    shown = texts(picture)
    assert {"first", "connect-four · residual 32×2 · 10,000 transitions · 10 min of training"} <= set(shown)
    labels = ["random 80%", "search:2 40%", "best so far 55%", "0.2", "30", "3,010", "87.5%"]
    shares = ["first wins 62.5%", "draws 25%", "cut off 12.5%"]
    assert {*labels, *shares, "transitions", "minutes"} <= set(shown)
    assert len(strokes(picture)) == 10


def test_a_run_on_the_terminal(run: RunDirectory) -> None:
    result = plot(run.path.parent, "first")
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:2] == ["first", "connect-four · residual 32×2 · 10,000 transitions · 10 min of training"]
    for text in ("random 80% (70–90%)", "best so far 55%", "draws 25%", "3,010", "minutes"):
        assert text in result.stdout
    assert any("\u2800" < sign <= "\u28ff" for sign in result.stdout)


def test_the_curves_are_those_of_the_database(run: RunDirectory) -> None:
    picture = svg_of(run.path.parent, "first", "--metric", "rollout/ep_len_mean")
    ((_, points),) = curves(picture)
    steps = {round(after[0] - before[0]) for before, after in pairwise(points)}
    assert len(points) == 10
    assert max(steps) - min(steps) <= 1  # updates are equally far apart, and games grow by one ply in each
    rises = {round(before[1] - after[1]) for before, after in pairwise(points)}
    assert min(rises) > 0
    assert max(rises) - min(rises) <= 1


def test_metrics_by_name(run: RunDirectory) -> None:
    picture = svg_of(
        run.path.parent, "first", "--metric", "train/value_loss", "--metric", "time/time_elapsed"
    )
    shown = texts(picture)
    assert {"train/value_loss", "time/time_elapsed"} <= set(shown)
    assert {"0.05", "600"} <= set(shown)
    assert len(strokes(picture)) == 3  # one value is not a number


def test_several_runs(run: RunDirectory) -> None:
    root = run.path.parent
    make_run(root, "second", updates=8)
    picture = svg_of(root, "first", "second")
    shown = texts(picture)
    assert {"2 runs", "first", "second"} <= set(shown)
    assert sum(text.startswith("connect-four · residual 32×2") for text in shown) == 2
    assert "best so far 55%" not in shown
    assert shown.count("random 80%") == 2
    assert strokes(picture).count(COLOURS[0]) == strokes(picture).count(COLOURS[1]) == 9
    result = plot(root, "first", "second")
    assert "━━ second" in result.stdout


def test_a_metric_that_only_one_run_has(run: RunDirectory) -> None:
    root = run.path.parent
    other = make_run(root, "other")
    with RunDatabase(other.database) as database:
        database.add_metrics(3, 3000, {"own/number": 1.0})
        database.add_metrics(4, 4000, {"own/number": 2.0})
    assert strokes(svg_of(root, "first", "other", "--metric", "own/number")) == [COLOURS[1]]


def test_runs_of_one_name_go_by_their_paths(run: RunDirectory, tmp_path: Path) -> None:
    namesake = make_run(tmp_path / "elsewhere", "first")
    shown = texts(svg_of(run.path.parent, "first", str(namesake.path)))
    assert {str(run.path), str(namesake.path)} <= set(shown)


def test_an_unknown_metric(run: RunDirectory) -> None:
    with RunDatabase(run.database) as database:
        database.add_metrics(4, 4000, {"evaluation/update-000000003": 0.5})
    result = plot(run.path.parent, "first", "--metric", "train/valueloss")
    assert result.exit_code == 2
    assert "no metric is named 'train/valueloss' (did you mean 'train/value_loss'" in result.stderr
    assert (
        "There are perf/transitions_per_second, perf/worker_utilisation, rollout/ep_len_mean" in result.stderr
    )
    assert "update-000000003" not in result.stderr


def test_an_unknown_run(run: RunDirectory) -> None:
    result = plot(run.path.parent, "frist")
    assert result.exit_code == 2
    assert (
        f"no run is named 'frist' (did you mean 'first'?). Runs in {run.path.parent}: first" in result.stderr
    )


def test_a_run_without_numbers(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "new", CONFIG)
    for _ in range(2):
        result = plot(tmp_path, "new")
        assert result.exit_code == 2
        assert "has no numbers yet; look again when it has made its first update" in result.stderr
        RunDatabase(run.database).close()  # there now, but with nothing in it


def test_what_is_not_there_yet_is_said(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "young", CONFIG)
    with RunDatabase(run.database) as database:
        database.add_metrics(1, 512, {"train/entropy_loss": -1.5})
    shown = texts(svg_of(tmp_path, "young"))
    assert shown.count("no numbers yet") == 5
    assert "1.5" in shown
    assert "minutes" not in shown
    assert plot(tmp_path, "young").stdout.count("no numbers yet") == 5


def test_the_database_alone_is_enough(run: RunDirectory, tmp_path: Path) -> None:
    copy = tmp_path / "copied"
    copy.mkdir()
    shutil.copy(run.database, copy)
    shown = texts(svg_of(tmp_path, str(copy)))
    assert {"copied", "10,000 transitions · 10 min of training"} <= set(shown)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"env": {"game": None}, "model": {"network": "mlp", "hidden_dim": 64, "num_layers": 3}},
            "mlp 64×3 · ",
        ),
        ({"env": 3, "model": {"network": "my.module:Net", "channels": 8}}, "my.module:Net · "),
        ({"model": {"network": "slim"}}, "slim · "),
        ({}, ""),
    ],
)
def test_settings_of_all_kinds(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    run = RunDirectory.create(tmp_path, "a", config)
    with RunDatabase(run.database) as database:
        database.add_metrics(1, 512, {"time/time_elapsed": 90.0})
    assert f"{words}512 transitions · 1 min 30 s of training" in texts(svg_of(tmp_path, "a"))


def test_it_reads_while_a_trainer_writes(run: RunDirectory) -> None:
    with run.lock(), RunDatabase(run.database) as database, database.batch():
        database.add_metrics(11, 11_000, numbers(11))
        during = texts(svg_of(run.path.parent, "first"))
    assert any("· 10,000 transitions ·" in text for text in during)  # an update counts when it is whole
    assert any("· 11,000 transitions ·" in text for text in texts(svg_of(run.path.parent, "first")))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("picture.gif", "pictures are PNG, SVG or PDF, by the end of their name; name it"),
        ("nowhere/picture.svg", "there is no folder"),
        ("taken.svg", "the picture cannot be written to"),
    ],
)
def test_where_a_picture_cannot_go(run: RunDirectory, tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "taken.svg").mkdir()
    result = plot(run.path.parent, "first", "--out", str(tmp_path / out))
    assert result.exit_code == 2
    assert message in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "taken.svg"]


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("b.PDF", b"%PDF"), ("c.svg", b"<?xml")])
def test_the_name_decides_the_format(run: RunDirectory, tmp_path: Path, name: str, start: bytes) -> None:
    result = plot(run.path.parent, "first", "--out", str(tmp_path / name))
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_terminal_that_cannot_draw_is_told(run: RunDirectory) -> None:
    code = "from keisei.cli.main import app; app()"
    command = [sys.executable, "-c", code, "plot", str(run.path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PYTHONIOENCODING": "latin-1"}
    )
    assert done.returncode == 2
    assert "use --out FILE.png" in done.stderr
    assert done.stdout == ""


def test_it_starts_without_torch(run: RunDirectory) -> None:
    code = (
        "import sys; from keisei.cli.main import app\n"
        "try: app()\n"
        "finally: sys.stderr.write(str('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", code, "plot", str(run.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "connect-four" in done.stdout
    assert done.stderr == "False"


# Means over seeds


def write_seeds(root: Path, folder: str, scores: list[float], seeds: list[int] | None = None) -> None:
    for number, score in enumerate(scores):
        seed = number if seeds is None else seeds[number]
        run = RunDirectory.create(root, f"{folder}/seed{number}", {**CONFIG, "run": {"seed": seed}})
        with RunDatabase(run.database) as database:
            for update in (1, 2, 3):
                values = {"train/loss": score * update, "time/time_elapsed": 60.0 * update}
                database.add_metrics(update, update * ROLLOUT, values)
                row = EvaluationRow(update, update * ROLLOUT, 0.0, "x", "random", 1, 0, 1, score, 0.0, 1.0)
                database.add_evaluation(row)


def test_the_mean_of_seeds_has_its_own_interval(tmp_path: Path) -> None:
    write_seeds(tmp_path, "lr", [0.4, 0.5, 0.6])
    result = plot(tmp_path, "lr", "--mean")
    assert result.exit_code == 0, result.output
    assert "mean of 3 seeds · connect-four" in result.stdout
    assert "95 % intervals of the mean over runs" in result.stdout
    assert re.search(r"random 50(\.0)?% \(25\.2–74\.8%\)", result.stdout)
    assert "games" not in result.stdout.replace("Self-play games", "")


def test_folders_are_compared_by_their_means(tmp_path: Path) -> None:
    write_seeds(tmp_path, "sweep/a", [0.1, 0.2])
    write_seeds(tmp_path, "sweep/b", [0.8, 0.9], seeds=[4, 4])
    written = texts(svg_of(tmp_path, "sweep", "--mean"))
    assert any("sweep/a" in text for text in written)
    assert any("mean of 2 seeds" in text for text in written)
    assert any("mean of 2 runs" in text for text in written)
    assert "2 runs" in written


def test_no_score_is_above_all_games(tmp_path: Path) -> None:
    write_seeds(tmp_path, "lr", [0.6, 1.0])
    assert "(0–100%)" in plot(tmp_path, "lr", "--mean").stdout.replace(".0", "")


def test_a_folder_without_a_mean_is_all_of_its_runs(tmp_path: Path) -> None:
    write_seeds(tmp_path, "lr", [0.1, 0.2])
    written = texts(svg_of(tmp_path, "lr"))
    assert {"seed0", "seed1"} <= {text.split(" ")[0] for text in written}
    write_seeds(tmp_path, "many", [0.1] * 9)
    result = plot(tmp_path, "many")
    assert "9 runs are too many" in result.output
    assert "--mean" in result.output
