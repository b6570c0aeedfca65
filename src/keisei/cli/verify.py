"""``keisei verify``: checks that every backend and every number of workers gives the same experience, or the same
weights, bit for bit, also when workers fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keisei.cli.numbers import MAX_FEW, MAX_GAMES, MAX_SEED
from keisei.cli.views.quiet import quiet_workers
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError
from keisei.games.registry import DEFAULT_GAME
from keisei.parallel.backend_names import known_backends, runs_elsewhere

if TYPE_CHECKING:
    from keisei.proving.disturbance import Toll
    from keisei.proving.same_experience import Observer, Run, VerifyReport, VerifySettings
    from keisei.proving.same_weights import TrainingReport
    from keisei.training.settings import TrainConfig

MOST_WORKERS = 64
SHOWN_DIGITS = 16
"""Characters of a digest in the table, of 64; --json has all of them."""


def verify(
    ctx: typer.Context,
    game: Annotated[str, typer.Option(help="A name from `keisei games`.")] = DEFAULT_GAME,
    backends: Annotated[
        str, typer.Option(help="Which backends; the first is the reference. ray plays on a Ray cluster.")
    ] = "inline,thread,process",
    address: Annotated[str, typer.Option(help="The Ray cluster: local, auto or host:port.")] = "local",
    workers: Annotated[str, typer.Option(help="How many workers, run by run: 1,2,3,5.")] = "1,2,3",
    tables: Annotated[
        int | None, typer.Option(min=1, max=512, help="Tables of games; by default 5, with --training 3.")
    ] = None,
    games: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Games of each table.")] = 16,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_FEW,
            help="Collections; the weights change after each. By default 20, with --training 4.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED)] = 0,
    network: Annotated[bool, typer.Option("--network/--random", help="A network decides, or chance.")] = True,
    kills: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_FEW,
            help="Also kill (SIGKILL) this many workers in one run; by default 0, with --training 4.",
        ),
    ] = None,
    stops: Annotated[bool, typer.Option("--stops", help="Stop (SIGSTOP) some of them instead.")] = False,
    central: Annotated[bool, typer.Option("--central", help="One inference for all workers.")] = False,
    league: Annotated[
        bool, typer.Option("--league", help="The learner meets a league of opponents.")
    ] = False,
    training: Annotated[
        bool, typer.Option("--training", help="Train instead, and compare the final weights.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(help="With --training: a preset, a settings file or a run, in place of a small run."),
    ] = None,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check that all backends and all numbers of workers collect the same experience. Exit code 1 if it differs.

    With --training, compare the final weights, also of runs that are stopped and resumed, and of runs whose workers
    or trainer are killed.
    """
    ctx.with_resource(quiet_workers())
    counts, places = _worker_counts(workers), _backends(backends)
    if training:
        _refuse(ctx, ("network", "stops", "central"), "with --training")
        if config is not None:
            _refuse(
                ctx, ("game", "tables", "games", "seed", "league"), "with --config, whose settings are taken"
            )
        settings = _training_config(config, root, game, tables or 3, games, seed, league, address)
        same = _verify_training(settings, places, counts, rounds or 4, 4 if kills is None else kills, as_json)
    else:
        _refuse(ctx, ("config",), "without --training")
        if league and not network:
            raise ConfigError(
                "--league keeps snapshots of a network, so it means nothing with --random; leave it out"
            )
        if central and any(runs_elsewhere(name) for name in places):
            raise ConfigError("--central serves no workers on other machines; leave it out, or ray")
        from keisei.proving.same_experience import VerifySettings

        collected = VerifySettings(
            game=game, tables=tables or 5, games=games, workers=counts, rounds=rounds or 20, seed=seed,
            network=network, central=central, kills=kills or 0, stops=stops, league=league, backends=places,
            address=address,
        )  # fmt: skip
        same = _verify_collection(collected, as_json)
    if not same:
        raise typer.Exit(1)


def _worker_counts(text: str) -> tuple[int, ...]:
    """Reads ``--workers``: numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    counts = tuple(int(part) for part in parts if part.isdecimal() and 1 <= int(part) <= MOST_WORKERS)
    if len(counts) < len(parts):
        raise ConfigError(f"--workers takes numbers from 1 to {MOST_WORKERS}, such as 1,2,3; got {text!r}")
    return counts


def _backends(text: str) -> tuple[str, ...]:
    """Reads ``--backends``: names with commas between them."""
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in known_backends()]
    if unknown:
        raise ConfigError(
            f"--backends takes names such as {','.join(known_backends())}; there is no {unknown[0]!r}"
        )
    return names


def _refuse(ctx: typer.Context, options: Iterable[str], when: str) -> None:
    """Refuses options that would have no effect."""
    given = [name for name in options if str(ctx.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise ConfigError(f"--{given[0]} has no effect {when}; leave it out")


def _verify_collection(settings: VerifySettings, as_json: bool) -> bool:
    from keisei.proving.same_experience import verify

    with _progress() as observe:
        report = verify(settings, observe)
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        _print(report)
    return report.same


def _training_config(
    target: str | None,
    root: Path,
    game: str,
    tables: int,
    games: int,
    seed: int,
    league: bool,
    address: str,
) -> TrainConfig:
    from keisei.proving.same_weights import small_config
    from keisei.training.presets import find_source

    small = small_config(game, tables, games, seed, league)
    config = small if target is None else find_source(target, root).config()
    return config.model_copy(update={"parallel": config.parallel.model_copy(update={"address": address})})


def _verify_training(
    config: TrainConfig,
    backends: tuple[str, ...],
    workers: tuple[int, ...],
    updates: int,
    kills: int,
    as_json: bool,
) -> bool:
    from keisei.proving.same_weights import verify_training

    with _progress() as observe:
        report = verify_training(
            config, backends=backends, workers=workers, updates=updates, kills=kills, observe=observe
        )
    if as_json:
        typer.echo(json.dumps(_training_as_json(report), indent=2))
    else:
        _print_training(report)
    return report.same


@contextmanager
def _progress() -> Iterator[Observer]:
    """Shows a progress bar for each run."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        yield show


def _print(report: VerifyReport) -> None:
    table = _table("Backend", "Workers", "Rounds", "Transitions", "Seconds")
    for run in report.runs:
        numbers = (run.workers, str(len(run.digests)), f"{run.transitions:,}", f"{run.seconds:.1f}")
        table.add_row(run.name, *numbers, _digest(run.digest, run.title in report.differences))
    console = Terminal(highlight=False)
    console.print(table)
    for run in report.runs:
        if run.toll is not None:
            console.print(f"\n{_disturbance(run, run.toll)}", soft_wrap=True)
    lines = [
        f"{name} differs from {report.runs[0].title} from round {number} on"
        for name, number in report.differences.items()
    ]
    console.print(_verdict(lines), soft_wrap=True)


def _disturbance(run: Run, toll: Toll) -> str:
    """Describes what happened to the workers of a run."""
    return (
        f"{run.name}: {toll.kills} workers were killed and {toll.stops} stopped, "
        f"{toll.heirs} of them just after they took over a table; {run.restarts} restarts"
    )


def _print_training(report: TrainingReport) -> None:
    table = _table("Run", "Workers", "Times", "Updates", "Transitions", "Seconds")
    for run in report.runs:
        times = str(run.times) if run.times else ""
        numbers = (run.workers, times, str(run.updates), f"{run.transitions:,}", f"{run.seconds:.1f}")
        table.add_row(run.name, *numbers, _digest(run.digest, run.title in report.differences))
    console = Terminal(highlight=False)
    console.print(table)
    first = report.runs[0].title
    verdict = _verdict([f"{name} differs from {first}" for name in report.differences])
    console.print(verdict, soft_wrap=True)


def _table(what: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(what, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Digest", no_wrap=True)
    return table


def _digest(digest: str, differs: bool) -> Text:
    return Text(digest[:SHOWN_DIGITS], style="bold red" if differs else "green")


def _verdict(differences: Sequence[str]) -> Text:
    if not differences:
        return Text("\nOK: all digests are equal.", style="green")
    return Text("\nDIFFERENT: " + "; ".join(differences) + ".", style="bold red")


def _as_json(report: VerifyReport) -> dict[str, object]:
    return {
        "same": report.same,
        "first_difference": report.differences,
        "runs": [_run_as_json(run) for run in report.runs],
    }


def _run_as_json(run: Run) -> dict[str, object]:
    figures: dict[str, object] = {
        "backend": run.name,
        "workers": run.workers,
        "rounds": len(run.digests),
        "transitions": run.transitions,
        "seconds": round(run.seconds, 3),
        "digest": run.digest,
    }
    if run.toll is not None:
        figures |= {
            "kills": run.toll.kills,
            "stops": run.toll.stops,
            "heirs": run.toll.heirs,
            "restarts": run.restarts,
        }
    return figures


def _training_as_json(report: TrainingReport) -> dict[str, object]:
    return {
        "same": report.same,
        "differences": report.differences,
        "runs": [asdict(run) for run in report.runs],
    }
