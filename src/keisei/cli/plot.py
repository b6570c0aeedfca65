"""``keisei plot``: draws one or more runs. It only reads ``run.db``, also while a run is being trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from keisei.cli.views.left_out import whole_ones
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted, duration, one_line
from keisei.errors import ConfigError, KeiseiError, RunError
from keisei.games.options import did_you_mean
from keisei.interfaces.charts import COLOURS, Heading, Panel, Picture, Point, Series, x_ticks
from keisei.interfaces.mean_curves import mean_curve
from keisei.interfaces.terminal_charts import TerminalPicture
from keisei.runs import metric_names as tags
from keisei.runs.database import RunDatabase
from keisei.runs.directory import CONFIG, RunDirectory, list_runs, named_below
from keisei.runs.durable_files import replace_file

SHARES = {"first wins": tags.FIRST_WINS, "draws": tags.DRAWS, "cut off": tags.TRUNCATIONS}
OVERVIEW = (
    tags.ENTROPY_LOSS,
    tags.EPSILON,
    tags.GAME_LENGTH,
    *SHARES.values(),
    tags.SPEED,
    tags.WORKER_UTILISATION,
)
"""The metrics of the default picture."""
SIZES = {
    "mlp": ("hidden_dim", "num_layers"),
    "gather": ("hidden_dim", "num_layers"),
    "actions": ("hidden_dim", "num_layers"),
    "residual": ("channels", "blocks"),
    "slim": ("channels", "blocks"),
}
"""The settings that describe the size of a network."""

FORMATS = ("png", "svg", "pdf")

Points = list[Point]


@dataclass(frozen=True)
class RunCurves:
    """The data of a run for a picture."""

    name: str
    game: str
    network: str
    """Both are empty if the run's settings cannot be read."""
    transitions: int
    known: Sequence[str]
    """The names of all metrics."""
    metrics: Mapping[str, Points]
    """The requested metrics that the run has."""
    scores: Mapping[str, Points]
    """Scores by opponent, with 95 % intervals."""
    best: Points
    """Scores against the run's own best checkpoint at that time."""
    mean_of: str = ""
    """What the curves are a mean of, such as ``3 seeds``; empty for those of one run."""

    def metric(self, name: str) -> Points:
        return self.metrics.get(name, [])

    @property
    def seconds(self) -> float:
        """Seconds of training; 0 if they are not known."""
        return max((point.y for point in self.metric(tags.ELAPSED) if isfinite(point.y)), default=0.0)


def plot(
    runs: Annotated[list[str], typer.Argument(help="Runs or folders of runs: their names, or their paths.")],
    out: Annotated[Path | None, typer.Option(help="Write a PNG, SVG or PDF instead of drawing here.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Draw this metric, such as train/value_loss; may be repeated.")
    ] = None,
    mean: Annotated[
        bool, typer.Option("--mean", help="Draw the mean over the runs of each folder, such as seeds.")
    ] = False,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
) -> None:
    """Draw curves of runs: strength, entropy, games and speed over the transitions. With --mean the bands are 95 %
    intervals of the mean over runs."""
    if out is not None:
        _check_out(out)
    paths = list(dict.fromkeys(path for run in runs for path in find_directories(run, root)))
    read = whole_ones([*map(str, paths)], lambda path: read_run(Path(path), metric or OVERVIEW))
    found = {Path(path): curves for path, curves in read.items()}
    curves = mean_curves(found, root) if mean else _with_distinct_names([*found.items()])
    if len(curves) > len(COLOURS):
        raise _too_many(curves, mean)
    picture = metrics_picture(curves, metric) if metric else overview(curves)
    if out is None:
        _draw(picture)
    else:
        _write(picture, out)


def mean_curves(read: Mapping[Path, RunCurves], root: Path) -> list[RunCurves]:
    """Computes the mean of the runs in each folder."""
    folders: dict[Path, list[Path]] = {}
    for path in read:
        folders.setdefault(path.parent, []).append(path)
    return [
        _mean_of(named_below(folder, root).name, [read[path] for path in paths], _seeds_of(paths))
        for folder, paths in folders.items()
    ]


def _mean_of(name: str, runs: Sequence[RunCurves], seeds: set[object]) -> RunCurves:
    """Merges several runs into one whose curves are their means."""
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    opponents = list(dict.fromkeys(opponent for run in runs for opponent in run.scores))
    return RunCurves(
        name=one_line(name),
        game=_common([run.game for run in runs]),
        network=_common([run.network for run in runs]),
        transitions=min(run.transitions for run in runs),
        known=list(dict.fromkeys(metric for run in runs for metric in run.known)),
        metrics={metric: mean_curve([run.metric(metric) for run in runs]) for metric in metrics},
        scores={
            name: [_within_bounds(point) for point in mean_curve([run.scores.get(name, []) for run in runs])]
            for name in opponents
        },
        best=[],
        mean_of=counted(len(runs), "seed" if len(seeds) == len(runs) else "run"),
    )


def _within_bounds(point: Point) -> Point:
    """Limits scores to 0 … 1, since Student's interval of a few runs may go beyond."""
    return (
        point._replace(low=max(0.0, point.low), high=min(1.0, point.high)) if isfinite(point.low) else point
    )


def _seeds_of(paths: Sequence[Path]) -> set[object]:
    """Reads the seeds of runs, as far as they can be read."""
    found: set[object] = set()
    for path in paths:
        with suppress(KeiseiError):
            found.add(str(_table(RunDirectory(path).config(), "run").get("seed")))
    return found


def _common(texts: Sequence[str]) -> str:
    """Returns the text that all share; empty if they differ."""
    return texts[0] if len(set(texts)) == 1 else ""


def _too_many(curves: Sequence[RunCurves], mean: bool) -> ConfigError:
    way_out = "name fewer folders" if mean else "name fewer, or draw the mean of each folder: --mean"
    what = "folders" if mean else "runs"
    return ConfigError(
        f"{len(curves)} {what} are too many for one picture, which has room for {len(COLOURS)}; {way_out}"
    )


def read_run(path: Path, wanted: Iterable[str]) -> RunCurves:
    """Reads the wanted metrics of a run, and its evaluations."""
    run = RunDirectory(path)
    nothing = RunError(f"run {path} has no numbers yet; look again when it has made its first update")
    if not run.database.exists():
        raise nothing
    with RunDatabase(run.database, read_only=True) as database:
        progress = database.progress()
        if progress is None:
            raise nothing
        known = database.metric_names()
        metrics = {
            name: [Point(point.step, point.value) for point in database.metric(name)]
            for name in {tags.ELAPSED, *wanted} & set(known)
        }
        rows = database.evaluations()
    scores: dict[str, Points] = {}
    best: Points = []
    for row in rows:
        own = row.against_checkpoint
        points = best if own else scores.setdefault(one_line(row.opponent), [])
        points.append(Point(row.step, row.score, row.low, row.high))
    name, (game, network) = one_line(path.resolve().name), _game_and_network(run)
    return RunCurves(name, game, network, progress.step, known, metrics, scores, best)


def overview(runs: Sequence[RunCurves]) -> Picture:
    """Makes the panels of the default picture: strength, entropy, games and speed."""
    opponents = list(dict.fromkeys(opponent for run in runs for opponent in run.scores))
    strength = _curves({name: [run.scores.get(name, []) for run in runs] for name in opponents})
    if len(runs) == 1 and runs[0].best:  # no band: this curve is always near 50 %
        strength.append(Series([Point(p.x, p.y) for p in runs[0].best], "best so far", colour=None, dash=1))
    shares = partial(Panel, percent=True, low=0.0, high=1.0)
    from_zero = partial(Panel, low=0.0)
    length, speed, busy = (
        _metric_curves(runs, {"": name}) for name in (tags.GAME_LENGTH, tags.SPEED, tags.WORKER_UTILISATION)
    )
    panels = [
        shares("Score in matches against", strength, _bands(runs), columns=2, rows=2),
        from_zero(*_exploration(runs)),
        from_zero("Game length", length, "mean plies"),
        shares("Self-play games", _metric_curves(runs, SHARES), "shares"),
        from_zero("Speed", speed, "transitions a second"),
        shares("Workers", busy, "share of time at play"),
    ]
    return _picture(runs, panels, columns=3)


def _bands(runs: Sequence[RunCurves]) -> str:
    """Says what the bands of scores mean: bands over runs differ from bands over games."""
    over_runs = any(run.mean_of for run in runs)
    return "95 % intervals of the mean over runs" if over_runs else "with 95 % intervals of the games"


def metrics_picture(runs: Sequence[RunCurves], names: Sequence[str]) -> Picture:
    """Makes one panel for each of these metrics."""
    for name in names:
        if not any(name in run.known for run in runs):
            raise _unknown(name, runs)
    rows = 2 if len(names) == 1 else 1
    panels = [Panel(name, _metric_curves(runs, {"": name}), rows=rows) for name in names]
    return _picture(runs, panels, columns=min(2, len(names)))


def _unknown(name: str, runs: Sequence[RunCurves]) -> ConfigError:
    """Lists metric names, without the matches against own checkpoints, of which there are too many."""
    own = tags.EVALUATION + "update-"
    known = sorted({name for run in runs for name in run.known if not name.startswith(own)})
    return ConfigError(
        f"no metric is named {name!r}{did_you_mean(name, known)}. There are {', '.join(known)}"
    )


def _picture(runs: Sequence[RunCurves], panels: Sequence[Panel], columns: int) -> Picture:
    if len(runs) > 1:
        headings = [Heading(run.name, _detail(run), number) for number, run in enumerate(runs)]
        return Picture(f"{len(runs)} runs", headings, panels, columns, "transitions")
    marks, unit = _time_scale(runs[0])
    headings = [Heading(detail=_detail(runs[0]))]
    return Picture(runs[0].name, headings, panels, columns, "transitions", marks, unit)


def _metric_curves(runs: Sequence[RunCurves], names: Mapping[str, str]) -> list[Series]:
    return _curves({label: [run.metric(name) for run in runs] for label, name in names.items()})


def _curves(kinds: Mapping[str, Sequence[Points]]) -> list[Series]:
    """Makes curves of several kinds for every run. With one run, colours distinguish the kinds. With several runs,
    colours distinguish the runs and dashes the kinds."""
    return [
        Series(points, label, *((run, kind) if len(of_runs) > 1 else (kind, kind // len(COLOURS))))
        for kind, (label, of_runs) in enumerate(kinds.items())
        for run, points in enumerate(of_runs)
        if points
    ]


def _exploration(runs: Sequence[RunCurves]) -> tuple[str, list[Series], str]:
    """Makes title, curves and unit of the panel on exploration: entropy, or epsilon if no run has an entropy."""
    entropy = _curves({"": [_entropy(run) for run in runs]})
    epsilon = _metric_curves(runs, {"": tags.EPSILON})
    if epsilon and not entropy:
        return "Exploration", epsilon, "share of random decisions"
    return "Entropy", entropy, "of the policy"


def _entropy(run: RunCurves) -> Points:
    return [Point(point.x, -point.y) for point in run.metric(tags.ENTROPY_LOSS)]


def _detail(run: RunCurves) -> str:
    trained = f"{duration(run.seconds)} of training" if run.seconds else ""
    mean = f"mean of {run.mean_of}" if run.mean_of else ""
    parts = [mean, run.game, run.network, f"{run.transitions:,} transitions", trained]
    return " · ".join(part for part in parts if part)


def _time_scale(run: RunCurves) -> tuple[list[tuple[float, str]], str]:
    """Computes where round times lie on the axis of transitions, and their unit."""
    known = [point for point in run.metric(tags.ELAPSED) if isfinite(point.y)]
    if run.seconds <= 0:
        return [], ""
    length, unit = next(
        (length, unit)
        for length, unit in ((3600, "hours"), (60, "minutes"), (1, "seconds"))
        if run.seconds >= 2 * length or length == 1
    )
    times = x_ticks((0.0, run.seconds / length), 8)
    places = np.interp(
        [time * length for time in times],
        [0.0, *(point.y for point in known)],
        [0.0, *(point.x for point in known)],
    )
    marks: list[tuple[float, str]] = []
    for place, time in zip(places, times, strict=True):
        if (
            not marks or place - marks[-1][0] > run.transitions / 20
        ):  # evaluations take time, but no transitions
            marks.append((float(place), f"{time:g}"))
    return marks, unit


def find_directory(text: str, root: Path) -> Path:
    """Finds the directory of a run. Its database is enough, so it may be copied alone."""
    for path in (root / text, Path(text)):
        if RunDirectory(path).database.exists() or (path / CONFIG).is_file():
            return path
    names = [run.name for run in list_runs(root)]
    raise RunError(
        f"no run is named {text!r}{did_you_mean(text, names)}. Runs in {root}: {', '.join(names) or 'none'}. "
        f"Write a run's name, its path, or another --root"
    )


def find_directories(text: str, root: Path) -> list[Path]:
    """Finds the directory of a run, or those of all runs in a folder."""
    for folder in (root / text, Path(text)):
        if not RunDirectory(folder).database.exists() and (found := list_runs(folder)):
            return [run.path for run in found]
    return [find_directory(text, root)]


def _with_distinct_names(runs: Sequence[tuple[Path, RunCurves]]) -> list[RunCurves]:
    """Names the runs; runs with equal names are named by their paths."""
    names = [run.name for _, run in runs]
    return [replace(run, name=str(path) if names.count(run.name) > 1 else run.name) for path, run in runs]


def _game_and_network(run: RunDirectory) -> tuple[str, str]:
    """Reads the size of the network from the settings file. The classes of the settings take seconds to import."""
    try:
        config = run.config()
    except KeiseiError:
        return "", ""
    env, model = _table(config, "env"), _table(config, "model")
    network = str(model.get("network") or "")
    sizes = [model.get(key) for key in SIZES.get(network, ())]
    size = "×".join(map(str, sizes)) if all(sizes) else ""
    return one_line(str(env.get("game") or "")), one_line(f"{network} {size}".strip())


def _table(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = config.get(key)
    return part if isinstance(part, dict) else {}


def _check_out(out: Path) -> None:
    if out.suffix.lower().removeprefix(".") not in FORMATS:
        raise ConfigError(
            f"--out {out}: pictures are PNG, SVG or PDF, by the end of their name; name it {out.with_suffix('.png')}"
        )
    if not out.resolve().parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.resolve().parent}; make it first")


def _write(picture: Picture, out: Path) -> None:
    from keisei.interfaces.figures import image  # matplotlib takes half a second to import

    content = image(picture, out.suffix.lower().removeprefix("."))
    try:
        replace_file(out, content)
    except OSError as error:
        raise KeiseiError(
            f"the picture cannot be written to {out}: {error.strerror}; name another file"
        ) from error
    Terminal(stderr=True, highlight=False).print(f"Picture: {out}", soft_wrap=True, markup=False)


def _draw(picture: Picture) -> None:
    console = Terminal(highlight=False)
    if not console.encoding.lower().startswith("utf"):
        raise ConfigError(
            f"a terminal with encoding {console.encoding} has no signs to draw with; use --out FILE.png, or set "
            f"PYTHONUTF8=1"
        )
    console.print(TerminalPicture(picture))
