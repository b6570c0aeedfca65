"""Settings for any game, chosen by what its spec says. They are a start that learns within minutes, not the best.

network             slim for boards (planes of squares); actions where the game says what describes each action;
                    mlp for all others, and for independent agents, which learn side by side
seats               simultaneous seats that are paid each by itself: an independent agent in every seat;
                    any other game: one network plays all seats against itself
random openings     up to four fifths of a random game, at most 20 plies, if there is somebody to play against
opponents           random, heuristic if the game brings one along, and search:2 where a search takes little time,
                    else greedy where one can look ahead
evaluations         after a tenth, a quarter, half and three quarters of a run of minutes, so that it has a curve
a game in Python    smaller updates and shorter matches, since it gives fewer decisions in a second
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from keisei.games.batched import SingleGameBatch
from keisei.games.contract import Game, GameSpec
from keisei.games.offers import LooksAhead
from keisei.games.registry import make_game
from keisei.policies.registry import players_of

__all__ = ["Regime", "chosen_in_words", "chosen_settings", "game_length"]

Regime: TypeAlias = Literal["ppo", "dqn", "independent"]

MINUTES = 5.0
EXAMS_APART = 10_000_000
"""Transitions between two evaluations of a long run. A run of minutes has fewer, so it is evaluated at shares of it."""
MOST_OPENING_PLIES = 20
SEARCHED_ACTIONS = 10
"""The most actions of a game in Python in which a match against search:2 does not outlast the training."""
LOOKED_AT_ACTIONS = 200
"""The same for greedy, which looks at each action once."""
_PROBES, _LONGEST_PROBE = 32, 200
_SHARE_OF_A_GAME = 0.8


def chosen_settings(
    game: str, options: Mapping[str, Any] | None = None, regime: Regime | None = None
) -> dict[str, dict[str, Any]]:
    """Chooses settings with which any game learns something in five minutes, in a regime that suits the game if none is
    given. The same game gets the same settings on every machine."""
    options = dict(options or {})
    probe = make_game(game, batch=_PROBES, **options)
    spec, in_python = probe.spec, isinstance(probe, SingleGameBatch)
    regime = regime or _regime(spec)
    settings: dict[str, dict[str, Any]] = {
        "env": {"game": game, "options": options, "discount": 0.95 if regime == "independent" else 0.99},
        "model": _network(spec, regime),
        "learner": {"regime": regime, **_learner(regime, in_python)},
        "parallel": _tables(in_python, regime),
        "run": {"steps": None, "minutes": MINUTES},
        "evaluation": {
            "every": EXAMS_APART,
            "games": 40 if in_python else 100,
            "opponents": _opponents(game, options),
        },
    }
    if regime != "independent" and spec.seats > 1:
        opening = min(MOST_OPENING_PLIES, int(game_length(probe) * _SHARE_OF_A_GAME))
        settings["parallel"]["seating"] = {"opening_plies": opening}
    return settings


def chosen_in_words(settings: Mapping[str, Mapping[str, Any]], spec: GameSpec) -> str:
    """Describes what was chosen, in one sentence."""
    board = "a board" if _is_board(spec) else "no board"
    seats = f"{spec.seats} seats" if spec.seats > 1 else "one seat"
    how = {
        "ppo": "one network in every seat, PPO",
        "dqn": "one network in every seat, DQN",
        "independent": "an agent in every seat, PPO",
    }[settings["learner"]["regime"]]
    return (
        f"settings chosen for {spec.name} ({board}, {seats}): network {settings['model']['network']}; {how}; "
        f"{settings['run']['minutes']:g} minutes unless told otherwise; evaluated against "
        f"{', '.join(settings['evaluation']['opponents'])}"
    )


def _regime(spec: GameSpec) -> Regime:
    """Chooses independent agents for seats that act at once and have rewards of their own."""
    return "independent" if spec.simultaneous and spec.seats > 1 and not spec.zero_sum else "ppo"


def game_length(game: Game) -> float:
    """Measures the mean length of random games. It plays these games, and gives up on long ones."""
    lengths = [_LONGEST_PROBE] * game.batch
    for _ in range(_LONGEST_PROBE):
        step = game.step(game.random_actions())
        for slot in step.done.nonzero()[0]:
            lengths[slot] = min(lengths[slot], int(step.plies[slot]))
        if max(lengths) < _LONGEST_PROBE:
            break
    return sum(lengths) / len(lengths)


def _network(spec: GameSpec, regime: Regime) -> dict[str, Any]:
    if _is_board(spec) and regime != "independent":
        return {"network": "slim", "channels": 32, "blocks": 2}
    network = "mlp" if spec.action_inputs is None else "actions"
    return {"network": network, "hidden_dim": 128, "num_layers": 2}


def _is_board(spec: GameSpec) -> bool:
    return len(spec.observation.shape) == 3


def _learner(regime: Regime, in_python: bool) -> dict[str, Any]:
    match regime:
        case "dqn":
            return {
                "learning_rate": 5e-4,
                "schedule": "linear",
                "final_rate": 0.1,
                "minibatch_size": 128 if in_python else 256,
                "target_interval": 500,
                "epsilon_share": 0.3,
                "replay": {"capacity": 200_000, "learning_starts": 2_000 if in_python else 10_000},
            }
        case "independent":
            return {"algorithm": "ppo", "ppo": _ppo(512) | {"final_entropy_weight": 0.005}}
        case "ppo":
            return _ppo(256 if in_python else 512)


def _ppo(minibatch: int) -> dict[str, Any]:
    return {
        "learning_rate": 1e-3,
        "epochs": 3,
        "minibatch_size": minibatch,
        "entropy_weight": 0.02,
        "final_entropy_weight": 0.01,
        "trace": 0.9,
    }


def _tables(in_python: bool, regime: Regime) -> dict[str, Any]:
    if regime == "independent":
        return {"tables": 4, "games": 16, "horizon": 32}
    return (
        {"tables": 4, "games": 32, "horizon": 32} if in_python else {"tables": 4, "games": 64, "horizon": 64}
    )


def _opponents(game: str, options: Mapping[str, Any]) -> list[str]:
    fresh = make_game(game, **options)
    can, actions = players_of(fresh), fresh.spec.num_actions
    looks = isinstance(fresh, LooksAhead)
    chosen = ["random", *(["heuristic"] if "heuristic" in can else [])]
    if "search:DEPTH" in can and (looks or actions <= SEARCHED_ACTIONS):
        return [*chosen, "search:2"]
    if "greedy" in can and (looks or actions <= LOOKED_AT_ACTIONS):
        return [*chosen, "greedy"]
    return chosen
