"""What independent agents learn: presets are trained from nothing, and then their agents play whole episodes.

All seats of a world are played by the agents of the run, then by random players, and by the players with simple rules
where the world has them. Their mean returns are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.answers import TOLERATED, Answer, best_answers, largest_gain
from benchmarks.measure import plain_table
from benchmarks.runs import Progress, run_folder
from benchmarks.worlds_played import Played, play_episodes
from keisei.games.contract import GameSpec
from keisei.games.offers import HasHeuristic
from keisei.policies.contract import Policy
from keisei.policies.players.saved_player import find_player
from keisei.policies.registry import named_player
from keisei.training.api import length_overrides, plan_run

MODES: Mapping[str, Sequence[str]] = {
    "one after another": ("learner.training=sequential", "learner.acting=one-by-one"),
    "parallel": (),
    "asynchronous": ("parallel.mode=async",),
}
"""How agents act and learn, as settings beside the preset's own."""
DEFECT = 1
STAG = 2.0
"""A reward in stag hunt of at least this is for a stag; a hare is worth less, and a stag attacked alone costs."""


@dataclass(frozen=True)
class Compared:
    """The agents of a run beside random players, and beside players with simple rules if there are any."""

    learned: Played
    random: Played
    rules: Played | None
    answers: Sequence[Answer] = ()
    """What each agent gains by learning on against the others, if that was tried."""


Verdict = Callable[[Compared], tuple[str, bool]]
"""Says what agents learned, and whether the goal is reached."""


@dataclass(frozen=True)
class WorldGoal:
    """What the agents of a preset should learn, and in which modes."""

    verdict: Verdict
    modes: Sequence[str] = ("parallel",)
    answers: bool = False
    """Whether agents look for better answers to each other."""


def _half_of_the_rules(found: Compared) -> tuple[str, bool]:
    assert found.rules is not None
    random = found.random.mean.value
    share = (found.learned.mean.value - random) / (found.rules.mean.value - random)
    return f"{share:.0%} of the rules' gain (goal 50%)", share >= 0.5


def _more_than_random(found: Compared) -> tuple[str, bool]:
    lead = found.learned.mean.low - found.random.mean.high
    return "more than random" if lead > 0 else "no more than random", lead > 0


def _both_defect(found: Compared) -> tuple[str, bool]:
    share = float((found.learned.actions == DEFECT).all(axis=2).mean())
    return f"both defect in {share:.0%} (goal 95%)", share >= 0.95


def _stags_or_hares(found: Compared) -> tuple[str, bool]:
    """Says where most rewards come from, and whether agents are in an equilibrium: none of them finds an answer to the
    other that earns much more."""
    rewards = found.learned.rewards
    stags, hares = rewards[rewards >= STAG].sum(), rewards[(rewards > 0) & (rewards < STAG)].sum()
    name = "stags together" if stags > hares else "hares alone"
    share = float(max(stags, hares) / max(1e-9, stags + hares))
    gain = largest_gain(found.answers)
    return (
        f"{name}, {share:.0%} of rewards; the best answer gains {gain:+.0%} (goal {TOLERATED:.0%})",
        gain <= TOLERATED,
    )


GOALS: Mapping[str, WorldGoal] = {
    "treasurehunt-independent": WorldGoal(_half_of_the_rules, tuple(MODES)),
    "prisoners-dilemma-independent": WorldGoal(_both_defect),
    "stag-hunt-independent": WorldGoal(_stags_or_hares, answers=True),
    "cleanup-independent": WorldGoal(_more_than_random),
}


@dataclass(frozen=True)
class LearnedWorld:
    """One run, and the mean returns of its agents and of others."""

    name: str
    mode: str
    seed: int
    minutes: float
    transitions: int
    mean: float
    low: float
    high: float
    random: float
    rules: float | None
    learned: str
    """What the agents learned, in words."""
    reached: bool


def learn_worlds(
    presets: Sequence[str],
    seeds: int,
    minutes: float | None,
    games: int,
    keep: Path | None,
    console: Console,
) -> list[LearnedWorld]:
    """Trains presets in all their modes, and lets their agents play ``games`` episodes."""
    return [
        _learn(preset, mode, [f"run.seed={seed}", *length_overrides(None, minutes)], games, keep, console)
        for preset in presets
        for mode in GOALS[preset].modes
        for seed in range(seeds)
    ]


def _learn(
    preset: str, mode: str, overrides: Sequence[str], games: int, keep: Path | None, console: Console
) -> LearnedWorld:
    goal = GOALS[preset]
    with run_folder(keep) as root:
        plan = plan_run(preset, overrides=[*MODES[mode], *overrides], root=root, existing="restart")
        with console.status(f"{preset}, {mode} …") as status:
            result = plan.trainer([Progress(status, f"{preset}, {mode}")]).train()
            config = plan.config
            game = config.env.make(batch=1, seed=0)
            spec = game.spec
            agents = find_player(str(result.run.path), root).policy(spec)
            found = Compared(
                play_episodes(config, agents, games),
                play_episodes(config, _named("random", spec), games),
                play_episodes(config, _named("heuristic", spec), games)
                if isinstance(game, HasHeuristic)
                else None,
                best_answers(result.run, games, status.update) if goal.answers else (),
            )
    words, reached = goal.verdict(found)
    counters, mean = result.counters, found.learned.mean
    return LearnedWorld(
        preset, mode, config.run.seed, counters.seconds / 60, counters.transitions, mean.value, mean.low, mean.high,
        found.random.mean.value, None if found.rules is None else found.rules.mean.value, words, reached,
    )  # fmt: skip


def _named(name: str, spec: GameSpec) -> Policy:
    policy = named_player(name, spec)
    assert policy is not None
    return policy


def show_worlds(found: Sequence[LearnedWorld], console: Console) -> None:
    title = "What independent agents learn: mean returns"
    headings = (
        "Run",
        "Mode",
        "Seed",
        "Transitions",
        "Minutes",
        "Return",
        "95 %",
        "Random",
        "Rules",
        "Learned",
    )
    table = plain_table(title, headings, words=("Run", "Mode", "Learned"))
    for run in found:
        verdict = "reached" if run.reached else "[bold red]missed[/]"
        table.add_row(
            run.name.removesuffix("-independent"),
            run.mode,
            str(run.seed),
            f"{run.transitions:,}",
            f"{run.minutes:.1f}",
            f"{run.mean:.1f}",
            f"{run.low:.1f} … {run.high:.1f}",
            f"{run.random:.1f}",
            "" if run.rules is None else f"{run.rules:.1f}",
            f"{run.learned}: {verdict}",
        )
    console.print(table)
