"""``keisei train --seeds``: several runs that differ in their seed alone, side by side as cores allow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from keisei.cli.side_by_side import Job, JobState, SideBySide, Standing, share_done
from keisei.cli.views.group_view import GroupView
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted
from keisei.errors import ConfigError
from keisei.runs.directory import CONFIG, RunDirectory, RunState, run_name
from keisei.training.experiments.seeds import check_folder, seed_name
from keisei.training.presets import find_source, names_checkpoint

if TYPE_CHECKING:
    from keisei.training.api import Existing
    from keisei.training.settings import TrainConfig

__all__ = ["checked_source", "exit_code", "job_for", "train_seeds", "train_together"]


def train_seeds(
    target: str,
    seeds: Sequence[int],
    overrides: Sequence[str],
    name: str | None,
    root: Path,
    existing: Existing,
    weights_from: str | None,
    at_once: int | None,
    *,
    plain: bool,
    quiet: bool,
) -> int:
    """Trains a preset, a settings file or a branch once for each seed, and returns the exit code."""
    own, _ = checked_source(target, overrides, root)
    folder = name or f"{own}-seeds"
    check_folder(root, folder, below=1)
    jobs = [
        job_for(
            target,
            [*overrides, f"run.seed={seed}"],
            seed_name(folder, seed),
            root,
            existing,
            weights_from=weights_from,
        )
        for seed in seeds
    ]
    console = Terminal(highlight=False)
    standings = train_together(jobs, console, at_once, plain=plain, quiet=quiet)
    if exit_code(standings) == 130 and not quiet:
        console.print("Continue them: the same command", soft_wrap=True)
    elif not quiet:
        console.print(f"Compare them: keisei plot {root / folder} --mean", soft_wrap=True, markup=False)
    return exit_code(standings)


def checked_source(target: str, overrides: Sequence[str], root: Path) -> tuple[str, TrainConfig]:
    """Checks the settings once, before any process starts, and returns the name of their source with them."""
    if names_checkpoint(target, root):
        from keisei.training.branching import StartingPoint  # it imports torch

        return run_name(target), StartingPoint.of(target, root).branch_config(overrides)
    source = find_source(target, root)
    if source.run is not None:
        raise ConfigError(
            f"{target} is a run and has its seed; name a preset or a settings file, or go on from one of its "
            f"checkpoints with other seeds: {target}@UPDATE"
        )
    return source.name, source.config(overrides).resolved()


def job_for(
    target: str,
    overrides: Sequence[str],
    name: str,
    root: Path,
    existing: Existing = "resume",
    *,
    weights_from: str | None = None,
    until: float = 1.0,
) -> Job:
    """Makes the job that trains one run. A run that has come to its end, and would not change, needs no process."""
    options = [word for override in overrides for word in ("--set", override)]
    if weights_from is not None:
        options += ["--from", weights_from]
    if existing != "resume":
        options.append(f"--{existing}")
    run = RunDirectory(root / name, root)
    done = existing == "resume" and (share_done(run) >= until < 1 or _has_ended(run, target, overrides))
    return Job(run, (target, "--name", name, "--root", str(root), *options), until, done)


def train_together(
    jobs: Sequence[Job], console: Console, at_once: int | None, *, plain: bool, quiet: bool
) -> list[Standing]:
    """Trains jobs side by side, and shows how they stand."""
    together = SideBySide(jobs, at_once)
    with GroupView(console, plain=plain, quiet=quiet) as view:
        if not quiet:
            console.print(_beginning(together), soft_wrap=True, markup=False)
        standings = together.run(view.show)
    view.close_with(standings)
    return standings


def exit_code(standings: Sequence[Standing]) -> int:
    """Returns 1 if a run failed, 130 if runs were interrupted, else 0."""
    states = {standing.state for standing in standings}
    if JobState.FAILED in states:
        return 1
    return 130 if states & {JobState.INTERRUPTED, JobState.WAITING} else 0


def _beginning(together: SideBySide) -> str:
    jobs, shares = together.standings, together.shares
    done = sum(standing.job.done for standing in jobs)
    ended = f", {done} of which have ended before" if done else ""
    cores = " and ".join(sorted({counted(len(share), "core") for share in shares}))
    return f"{counted(len(jobs), 'run')}{ended}: {len(shares)} at once, each on {cores}"


def _has_ended(run: RunDirectory, target: str, overrides: Sequence[str]) -> bool:
    if not (run.path / CONFIG).is_file() or run.status().state is not RunState.FINISHED:
        return False
    from keisei.training.api import plan_run
    from keisei.training.presets import run_config

    return plan_run(target, overrides=overrides, name=run.name, root=run.root).config == run_config(run)
