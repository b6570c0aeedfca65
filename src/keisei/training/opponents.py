"""Checks all players that the settings of a run name, before it starts, so that none fails when it is first met. Checks
the openings of evaluations too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keisei.config import problem_report
from keisei.errors import ConfigError, KeiseiError
from keisei.evaluation.matches import check_opening
from keisei.parallel.config import ParallelConfig
from keisei.policies.players.saved_player import load_player
from keisei.policies.registry import build_policy, check_player, players_of
from keisei.policies.seating import OpponentConfig, PolicyConfig, Seating
from keisei.training.league.fixed_members import as_policy
from keisei.training.settings import TrainConfig

__all__ = ["check_opponents"]

_RUNS = "runs and checkpoints of that game"


@dataclass(frozen=True)
class _Names:
    """A setting that names players."""

    setting: str
    players: tuple[str | PolicyConfig, ...]
    title: str
    """What the setting's players are called in messages."""
    others: str
    """What else the setting may name, beside players by name."""


def check_opponents(config: TrainConfig, root: Path) -> None:
    """Raises one error with all players that cannot play this game: opponents of evaluations and of tables, and members
    of the league. A league that nobody would meet is refused too. Runs and checkpoints of evaluations must exist below
    ``root`` or at their path, and belong to this game. Those of the league are not looked for: a run that is resumed
    may have their weights already."""
    if config.evaluation.opening_plies is not None:
        check_opening(config.env.game, config.env.game_options(), config.evaluation.opening_plies)
    reports = [
        f"{problem_report(names.setting, problems)}\n{_who_can(names, config)}"
        for names in _named(config)
        if (problems := list(_problems(names, config, root)))
    ]
    if config.league.enabled and (unmet := list(_meets_nobody(config))):
        reports.append(problem_report("league", unmet))
    if reports:
        raise ConfigError("\n".join(reports))


def _meets_nobody(config: TrainConfig) -> Iterator[str]:
    """Finds out where the settings switch the league off without saying so."""
    league, parallel = config.league, config.parallel
    if all(parallel.override_of(table).seating is not None for table in range(parallel.table_count)):
        yield (
            f"all {parallel.table_count} tables have a seating of their own (parallel.table_overrides), and such a "
            f"table does not meet the league; leave a table without one, or play without a league: league=null"
        )
    if parallel.seating.fills_all_games:
        yield (
            "parallel.seating.opponents play in all games, and the league divides the rest; lower their shares, or "
            "play without a league: league=null"
        )
    for number, phase in enumerate(league.curriculum):
        ratio = league.latest_ratio if phase.latest_ratio is None else phase.latest_ratio
        if phase.members == () and ratio < 1:
            yield (
                f"curriculum.{number}.members = []: nobody may be drawn until {phase.until:g}; name members, or let "
                f"the learner play against itself with latest_ratio: 1"
            )


def _named(config: TrainConfig) -> Iterator[_Names]:
    without = f"{_RUNS}. Without evaluations: evaluation.opponents=[]"
    yield _Names("evaluation.opponents", config.evaluation.opponents, "Opponents", without)
    for setting, seating in _seatings(config.parallel):
        yield _Names(f"{setting}.opponents", seating.opponents, "Opponents", "learner")
    if config.league.enabled:
        yield _Names("league.members", tuple(map(as_policy, config.league.members)), "Members", _RUNS)


def _seatings(config: ParallelConfig) -> Iterator[tuple[str, Seating]]:
    yield "parallel.seating", config.seating
    for table, override in config.table_overrides.items():
        if override.seating is not None:
            yield f"parallel.table_overrides.{table}.seating", override.seating


def _problems(names: _Names, config: TrainConfig, root: Path) -> Iterator[str]:
    for player in names.players:
        try:
            _check(player, config, root)
        except (KeiseiError, OSError) as error:  # the system refuses names of 300 letters
            yield f"{player if isinstance(player, str) else player.policy}: {error}"


def _check(player: str | PolicyConfig, config: TrainConfig, root: Path) -> None:
    game = config.env.make(batch=1, seed=0)
    if isinstance(player, str):
        if check_player(player, game) is None:
            load_player(player, game.spec, root)
    elif player.policy != "learner":
        by_name = check_player(player.policy, game) is not None
        if by_name or isinstance(player, OpponentConfig):  # no run sits in a seating
            build_policy(player, game.spec)


def _who_can(names: _Names, config: TrainConfig) -> str:
    game = config.env.make(batch=1, seed=0)
    return f"{names.title} in {game.spec.name}: {', '.join(players_of(game))}, {names.others}"
