"""Checks the opponents of evaluations before a run starts, so that none fails at the first evaluation."""

from __future__ import annotations

from pathlib import Path

from keisei.config import problem_report
from keisei.errors import ConfigError, KeiseiError
from keisei.policies.registry import check_player, players_of
from keisei.training.players import load_player
from keisei.training.settings import TrainConfig

__all__ = ["check_opponents"]


def check_opponents(config: TrainConfig, root: Path) -> None:
    """Raises one error with all opponents that cannot play this game. Runs and checkpoints must exist below ``root``
    or at their path, and belong to this game."""
    problems = []
    for opponent in config.evaluation.opponents:
        try:
            _check(opponent, config, root)
        except KeiseiError as error:
            problems.append(f"{opponent}: {error}")
    if problems:
        game = config.env.make(batch=1, seed=0)
        raise ConfigError(
            f"{problem_report('evaluation.opponents', problems)}\n"
            f"Opponents in {game.spec.name}: {', '.join(players_of(game))}, runs and checkpoints of that game. Without "
            f"evaluations: evaluation.opponents=[]"
        )


def _check(opponent: str, config: TrainConfig, root: Path) -> None:
    game = config.env.make(batch=1, seed=0)
    if check_player(opponent, game) is None:
        load_player(opponent, game.spec, root)
