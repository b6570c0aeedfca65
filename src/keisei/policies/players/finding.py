"""How texts name runs and checkpoints.

    NAME, PATH                  a run, by its name below the root or its path: its best checkpoint, or if none is
                                marked best, its latest whole one
    RUN@best, RUN@latest        its best or latest checkpoint; ``latest`` skips damaged ones
    RUN@42                      the checkpoint of an update; also RUN@update-000000042
    RUN@member-0104             a member of its league
    RUN/checkpoints/NAME        a checkpoint's directory; also RUN/league/NAME
    PATH                        a checkpoint that was copied out of its run

This module imports no torch, since commands that watch a run need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keisei.config import parse_settings
from keisei.errors import RunError
from keisei.games.contract import GameSpec
from keisei.games.env_config import EnvConfig
from keisei.games.options import did_you_mean
from keisei.games.registry import make_game
from keisei.policies.players import PLAYERS
from keisei.policies.trust import demand_trust
from keisei.runs.directory import CONFIG, RunDirectory, list_runs, named_below, run_at

__all__ = ["RUNS", "RunGame", "find_run", "game_of", "locate", "located_run", "shown_run"]

RUNS = Path("runs")
"""The default folder of runs."""
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class RunGame:
    """The game of a run or of a checkpoint."""

    name: str
    options: Mapping[str, Any]
    spec: GameSpec

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> RunGame:
        return cls(name, options, make_game(name, **dict(options)).spec)


def locate(text: str, root: Path = RUNS) -> tuple[RunDirectory | None, str]:
    """Finds the run of a text, and the part that names a checkpoint, as it is written; empty if there is none. A
    checkpoint outside of a run has no run, and its path as its name."""
    name, at, which = text.rpartition("@")
    directory = Path(text).absolute()
    if run := run_at(text, root):
        return run, ""
    if at and (run := run_at(name, root)):
        return run, which
    if directory.parent.name in ("checkpoints", "league") and (
        run := run_at(str(directory.parents[1]), root)
    ):
        return run, directory.name
    if (directory / _MANIFEST).is_file():
        return None, text
    runs = [run.name for run in list_runs(root)]
    wanted = name if at else text
    near = did_you_mean(wanted, [*runs, *PLAYERS])
    raise RunError(
        f"no run is named {wanted!r}{near}. Runs in {root}: {', '.join(runs) or 'none'}. Write a run's name or path, "
        f"RUN@best, RUN@latest, RUN@UPDATE, or a checkpoint's directory; players without a run are {', '.join(PLAYERS)}"
    )


def located_run(text: str, root: Path = RUNS) -> tuple[RunDirectory, str]:
    """Finds the same as ``locate``, and refuses a checkpoint outside of a run."""
    run, which = locate(text, root)
    if run is None:
        raise RunError(f"{text} is a checkpoint outside of a run, and a run is needed here; name its run")
    return run, which


def find_run(text: str, root: Path = RUNS) -> RunDirectory:
    """Finds the run that a text names. A text that names a checkpoint is refused."""
    run, which = located_run(text, root)
    if which:
        raise RunError(
            f"{text!r} names one checkpoint, and a whole run is meant here; write {shown_run(run, root)}"
        )
    return run


def game_of(text: str, root: Path = RUNS) -> RunGame:
    """Gets the game of a run, of its checkpoint, or of a checkpoint outside of a run."""
    run, _ = locate(text, root)
    if run is None:
        from keisei.policies.players.saved_player import find_player  # it imports torch

        return find_player(text, root).game
    settings, where = run.config().get("env") or {}, str(run.path / CONFIG)
    demand_trust(run, {"env": settings}, where)
    env = parse_settings(EnvConfig, settings, where)
    return RunGame.of(env.game, env.game_options())


def shown_run(run: RunDirectory, root: Path) -> str:
    """Gets the name of a run below ``root``, or its path if it lies elsewhere."""
    named = named_below(run.path.resolve(), root.resolve())
    return str(run.path) if named.folder is None else named.name
