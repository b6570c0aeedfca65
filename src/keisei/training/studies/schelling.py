"""Schelling diagrams: what cooperating and what defecting earns, by the number of others who cooperate.

Agents of a run play whole episodes. In each, an agent counts as a cooperator by what it did: in cleanup, if it cleaned
the river often enough; in stag hunt, if it caught more stags than hares. All checkpoints of a run play, since agents at
the end of it may all do the same. (Schelling, 1973; Hughes and others, 2018, draw them for worlds like these.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.games.contract import BoolArray, FloatArray, IntArray
from keisei.games.registry import make_game
from keisei.games.worlds.cleanup import ACTIONS
from keisei.games.worlds.environment import Environment
from keisei.policies.contract import Policy
from keisei.policies.players.finding import find_run, game_of
from keisei.policies.players.saved_player import load_players
from keisei.training.studies.episodes import play_turns

__all__ = ["Choice", "Diagram", "schelling_diagram"]

CLEANING_SHARE = 0.1
"""An agent of cleanup cooperates if it cleans in at least this share of its turns."""


@dataclass(frozen=True)
class Choice:
    """What one choice earned."""

    episodes: int
    """Agents in episodes that chose so."""
    mean: float
    """The mean return of an agent; NaN if nobody chose so."""


@dataclass(frozen=True)
class Diagram:
    """The returns of both choices, by the number of other agents that cooperate."""

    game: str
    cooperating: str
    """What counts as cooperation, in words."""
    cooperators: Sequence[Choice]
    defectors: Sequence[Choice]

    @property
    def is_dilemma(self) -> bool:
        """Whether all agents earn more if all cooperate than if none does."""
        return self.cooperators[-1].mean > self.defectors[0].mean


@dataclass
class _Deeds:
    """What agents did in one episode, [games, seats] each."""

    turns: NDArray[np.int64]
    cleanings: NDArray[np.int64]
    stags: NDArray[np.int64]
    hares: NDArray[np.int64]
    returns: NDArray[np.float64]

    @classmethod
    def none(cls, shape: tuple[int, int]) -> _Deeds:
        turns, cleanings, stags, hares = np.zeros((4, *shape), np.int64)
        return cls(turns, cleanings, stags, hares, np.zeros(shape))

    def note(self, places: IntArray, actions: IntArray, rewards: FloatArray) -> None:
        """Notes one turn of all games."""
        self.turns.reshape(-1)[places] += 1
        self.cleanings.reshape(-1)[places] += actions == ACTIONS.number("clean")
        self.stags += rewards >= _STAG
        self.hares += (rewards > 0) & (rewards < _STAG)
        self.returns += rewards


Cooperates: TypeAlias = Callable[[_Deeds], BoolArray]
_STAG = 2.0
"""A reward of at least this is for a stag; a hare is worth less."""
_KINDS: Mapping[str, tuple[str, Cooperates]] = {
    "cleanup": (
        f"cleans in at least {CLEANING_SHARE:.0%} of its turns",
        lambda deeds: deeds.cleanings >= CLEANING_SHARE * np.maximum(1, deeds.turns),
    ),
    "stag-hunt": ("catches more stags than hares", lambda deeds: deeds.stags > deeds.hares),
}


def schelling_diagram(text: str, *, root: Path, games: int = 32, seed: int = 0) -> Diagram:
    """Lets all checkpoints of a run play, and sorts the returns of agents by what they and the others did."""
    game = game_of(text, root)
    if game.name not in _KINDS:
        raise ConfigError(
            f"{text} plays {game.name}, and it is known what cooperation is for {', '.join(_KINDS)} only"
        )
    players = load_players(find_run(text, root), game.spec, temperature=0.0)
    if not players:
        raise ConfigError(f"{text} has no checkpoint that can play; train it first")
    words, cooperates = _KINDS[game.name]
    played = []
    for number, player in enumerate(players):
        world = make_game(game.name, batch=games, seed=seed + number, **dict(game.options))
        assert isinstance(world, Environment)
        played.append(_episode(world, player.policy, seed + number))
    chosen = np.concatenate([cooperates(deeds) for deeds in played])
    returns = np.concatenate([deeds.returns for deeds in played])
    return diagram(game.name, words, chosen, returns)


def _episode(world: Environment, policy: Policy, seed: int) -> _Deeds:
    """Plays one episode of each game of a batch."""
    deeds = _Deeds.none((world.batch, world.spec.seats))
    turns = world.spec.max_plies or 0
    for turn, found in enumerate(play_turns(world, policy, seed), start=1):
        deeds.note(*found)
        if turn == turns:
            break
    return deeds


def diagram(game: str, words: str, chosen: BoolArray, returns: NDArray[np.float64]) -> Diagram:
    """Sorts returns [episodes, agents] by choice and by the number of others who cooperate."""
    others = chosen.sum(axis=1, keepdims=True) - chosen
    agents = chosen.shape[1]

    def choices(own: BoolArray) -> list[Choice]:
        return [_choice(returns[own & (others == count)]) for count in range(agents)]

    return Diagram(game, words, choices(chosen), choices(~chosen))


def _choice(returns: NDArray[np.float64]) -> Choice:
    return Choice(len(returns), float(returns.mean()) if len(returns) else float("nan"))
