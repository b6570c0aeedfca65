"""What the presets learn: each is trained from nothing, and then plays matches, with intervals.

A run is trained in a temporary folder, unless ``keep`` names one. ``compare_networks`` gives several networks the
same minutes on the same game. ``compare_modes`` lets the synchronous and the asynchronous loop learn from the same
number of transitions. ``keisei sweep`` compares settings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import learning_worlds
from benchmarks.measure import machine, plain_table, widen
from benchmarks.runs import Progress, run_folder
from keisei.evaluation import play_match, score_interval
from keisei.evaluation.matches import Player
from keisei.evaluation.statistics import elo_difference
from keisei.policies.neural import NeuralPolicy
from keisei.training.api import length_overrides, plan_run
from keisei.training.settings import TrainConfig
from keisei.training.trainer import TrainResult

QUIET = ("evaluation.every=0", "evaluation.games=2")
"""For comparisons: no matches before the end. Presets are trained unchanged."""


@dataclass(frozen=True)
class Goal:
    """The goal of a preset against an opponent; a score of None is only measured."""

    opponent: str
    score: float | None = None
    unbeaten: bool = False


GOALS: dict[str, tuple[Goal, ...]] = {
    "tictactoe-ppo": (Goal("random"), Goal("search:9", unbeaten=True)),
    "connect-four-ppo": (Goal("random", 0.98), Goal("search:2", 0.5), Goal("search:4")),
    "connect-four-dqn": (Goal("random", 0.95), Goal("search:2", 0.5)),
    "ludo-dqn": (Goal("random", 0.95), Goal("heuristic", 0.55)),
    "shogi-quickstart": (Goal("random", 0.9), Goal("greedy")),
    "shogi-ppo": (
        Goal("random", 0.99),
        Goal("greedy", 0.8),
        Goal("search:1"),
        Goal("search:2", 0.6),
        Goal("search:3"),
    ),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp 256": {"network": "mlp", "hidden_dim": 256},
    "gather 256": {"network": "gather", "hidden_dim": 256},
    "residual 32x2": {"network": "residual", "channels": 32, "blocks": 2},
    "slim 16x2": {"network": "slim", "channels": 16, "blocks": 2},
    "slim 32x2": {"network": "slim", "channels": 32, "blocks": 2},
}


@dataclass(frozen=True)
class Match:
    """A match of a trained network."""

    opponent: str
    wins: int
    draws: int
    losses: int
    score: float
    low: float
    high: float
    elo: str
    goal: str
    """The goal in words; empty if there is none."""
    reached: bool | None


@dataclass(frozen=True)
class Learned:
    """One run and its matches."""

    name: str
    seed: int
    minutes: float
    transitions: int
    updates: int
    matches: tuple[Match, ...]


def run(
    presets: Sequence[str],
    seeds: int,
    minutes: float | None,
    games: int,
    *,
    as_json: bool,
    console: Console,
    keep: Path | None = None,
) -> None:
    """Trains presets and plays their matches. ``minutes`` replaces the preset's length."""
    chosen = presets or [*GOALS, *learning_worlds.GOALS]
    worlds = [preset for preset in chosen if preset in learning_worlds.GOALS]
    found = []
    for preset in [preset for preset in chosen if preset not in worlds]:
        for seed in range(seeds):
            overrides = [f"run.seed={seed}", *length_overrides(None, minutes)]
            found.append(_learn(preset, preset, overrides, _goals(preset), games, keep, console))
    agents = learning_worlds.learn_worlds(worlds, seeds, minutes, games, keep, console)
    _show("What the presets learn", found, as_json, console, agents)


def compare_networks(preset: str, minutes: float, games: int, *, as_json: bool, console: Console) -> None:
    """Trains several networks for the same minutes."""
    found = []
    for name, model in NETWORKS.items():
        settings = [f"model.{key}={value}" for key, value in model.items()]
        overrides = [*settings, *QUIET, *length_overrides(None, minutes)]
        goals = (Goal("random"), Goal("greedy"))
        found.append(_learn(name, preset, overrides, goals, games, None, console))
    _show(f"{preset}: what networks learn in {minutes:g} minutes", found, as_json, console)


def compare_modes(preset: str, steps: int, games: int, *, as_json: bool, console: Console) -> None:
    """Trains both loops with the same transitions. They are too few for the preset's goals, so goals are not
    checked."""
    found, opponents = [], [Goal(goal.opponent) for goal in _goals(preset)]
    for mode in ("sync", "async"):
        overrides = [f"parallel.mode={mode}", *QUIET, *length_overrides(steps, None)]
        found.append(_learn(mode, preset, overrides, opponents, games, None, console))
    _show(f"{preset}: both loops after {steps:,} transitions", found, as_json, console)


def _goals(preset: str) -> tuple[Goal, ...]:
    """Gives the goals of a preset. Other settings files only play against random."""
    return GOALS.get(preset, (Goal("random"),))


def _learn(
    name: str,
    preset: str,
    overrides: Sequence[str],
    goals: Sequence[Goal],
    games: int,
    keep: Path | None,
    console: Console,
) -> Learned:
    with run_folder(keep) as root:
        plan = plan_run(preset, overrides=overrides, root=root, existing="restart")
        with console.status(f"{name} …") as status:
            result = plan.trainer([Progress(status, name)]).train()
            matches = tuple(_play(result, plan.config, goal, games) for goal in goals)
    counters = result.counters
    return Learned(
        name, plan.config.run.seed, counters.seconds / 60, counters.transitions, counters.update, matches
    )


def _play(result: TrainResult, config: TrainConfig, goal: Goal, games: int) -> Match:
    spec = config.env.make(batch=1, seed=0).spec
    player = Player("learner", NeuralPolicy(result.network, spec, config.evaluation.temperature))
    options = config.env.game_options()
    match = play_match(
        config.env.game, options, player, goal.opponent, games, seed=1_000_003 + config.run.seed,
        opening_plies=config.evaluation.opening_plies,
    )  # fmt: skip
    tally = match.tally()
    interval = score_interval(tally)
    return Match(
        goal.opponent, tally.wins, tally.draws, tally.losses, interval.value, interval.low, interval.high,
        str(elo_difference(tally)), *_verdict(goal, tally.losses, interval.value),
    )  # fmt: skip


def _verdict(goal: Goal, losses: int, score: float) -> tuple[str, bool | None]:
    if goal.unbeaten:
        return "no loss", losses == 0
    return ("", None) if goal.score is None else (f"{goal.score:.0%}", score >= goal.score)


def _show(
    title: str,
    found: Sequence[Learned],
    as_json: bool,
    console: Console,
    worlds: Sequence[learning_worlds.LearnedWorld] = (),
) -> None:
    if as_json:
        document = {"machine": machine(), "title": title, "runs": list(map(asdict, found))}
        console.print_json(json.dumps(document | {"worlds": list(map(asdict, worlds))}))
        return
    widen(console)
    if found:
        console.print(_table(title, found))
    if worlds:
        learning_worlds.show_worlds(worlds, console)
    console.print(f"\n{machine()}")


def _table(title: str, found: Sequence[Learned]) -> Table:
    headings = ("Run", "Seed", "Transitions", "Minutes", "Against", "W-D-L", "Score", "95 %", "Elo", "Goal")
    table = plain_table(title, headings, words=("Run", "Against", "Goal"))
    for learned in found:
        for number, match in enumerate(learned.matches):
            run = (learned.name, str(learned.seed), f"{learned.transitions:,}", f"{learned.minutes:.1f}")
            verdict = {None: "", True: "reached", False: "[bold red]missed[/]"}[match.reached]
            table.add_row(
                *(run if number == 0 else ("", "", "", "")),
                match.opponent,
                f"{match.wins}-{match.draws}-{match.losses}",
                f"{match.score:.1%}",
                f"{match.low:.1%} … {match.high:.1%}",
                match.elo,
                f"{match.goal} {verdict}".strip(),
            )
    return table
