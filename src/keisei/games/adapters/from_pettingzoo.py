"""PettingZoo's AEC games as Keisei games.

A game needs discrete actions, the same for all agents. An ``action_mask`` in its observation dict or info marks the
legal ones. The game is seeded from the keyed randomness at every reset, so it depends only on (seed, game,
episode).

Players that look ahead play on copies of the environment. If it cannot be copied, a new environment plays the same
actions from the same seed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self, cast

import numpy as np

from keisei.errors import ConfigError, GameError, UnknownGameError, in_one_line
from keisei.games.adapters.copies import Dice, copy_env, throw
from keisei.games.adapters.pettingzoo_texts import action_text, drawing
from keisei.games.adapters.spaces import need
from keisei.games.batched import BatchFactory, SingleGameBatch
from keisei.games.contract import Array, ObservationSpec
from keisei.games.options import did_you_mean
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome, SingleGame

INSTALL = "pip install pettingzoo pygame rlcard"
_DISTRIBUTIONS = {"Box2D": "box2d", "pyspiel": "open_spiel"}
"""The packages that are installed under another name than they are imported."""
_TRIAL_PLIES = 4
_ZERO_SUM = frozenset({"chess-v6", "connect_four-v3", "go-v5", "leduc_holdem-v4", "rps-v2", "tictactoe-v3"})


def pettingzoo_game(
    name: str | Callable[..., Any], *, batch: int = 1, seed: int = 0, first_game: int = 0, **options: Any
) -> SingleGameBatch:
    """Makes a batch of a PettingZoo game: ``connect_four_v3``, ``classic/connect_four-v3``, or a function that
    makes an AEC environment. Options are those of the environment, and ``max_plies`` and ``zero_sum``."""
    factory = BatchFactory(PettingZooGame)
    return factory(batch=batch, seed=seed, first_game=first_game, env=name, **options)


class PettingZooGame(SingleGame):
    """One AEC environment."""

    scored_by_rewards = True

    def __init__(
        self, *, env: str | Callable[..., Any], zero_sum: bool | None = None, **options: Any
    ) -> None:
        identity = _registered(env) if isinstance(env, str) else ""
        self._made_from = (env, identity, options)
        self._env = _make(*self._made_from)
        self._agents = list(self._env.possible_agents)
        self.name = f"pettingzoo:{self._env.metadata.get('name', identity or 'game')}"
        self.seats = len(self._agents)
        self.zero_sum = identity.rpartition("/")[2] in _ZERO_SUM if zero_sum is None else bool(zero_sum)
        self.num_actions = self._one_for_all("action", self._actions_of)
        self.observation = self._one_for_all("observation", self._observation_of)
        self._copies: bool | None = None
        """Whether the environment can be copied; None until a player looks ahead."""
        self._dice: list[Dice] = []
        """The dice of a copy. They are thrown anew at every ply, so that a look-ahead does not see future chance
        events."""

    def reset(self, rng: KeyedRandom) -> None:
        self._begin(rng.integer(1 << 31))

    def _begin(self, seed: int) -> None:
        self._seed: int = seed
        self._played: list[int] = []
        self._env.reset(seed=seed)
        self._follow()

    def legal(self, seat: int) -> Array | Sequence[int]:
        agent = self._agents[seat]
        seen = self._env.observe(agent)
        mask = seen.get("action_mask") if isinstance(seen, dict) else None
        if mask is None:
            mask = self._env.infos.get(agent, {}).get("action_mask")
        return range(self.num_actions) if mask is None else np.asarray(mask).astype(np.bool_)

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        for dice in self._dice:
            throw(dice, rng.word())
        self._env.step(action)
        self._played.append(action)
        rewards = [float(self._env.rewards.get(agent, 0.0)) for agent in self._agents]
        self._follow()
        return rewards

    def observe(self, seat: int) -> Array:
        seen = self._env.observe(self._agents[seat])
        plain = seen["observation"] if isinstance(seen, dict) else seen
        return np.asarray(plain, self.observation.dtype)

    def move_name(self, action: int) -> str:
        return action_text(self._env, self.to_move, action)

    def __str__(self) -> str:
        return drawing(self._env, self.to_move, self.observe(self.to_move))

    def outcome(self) -> Outcome | None:
        env = self._env
        alive = [agent for agent in env.agents if not (env.terminations[agent] or env.truncations[agent])]
        if alive:
            return None
        return Outcome(truncated=any(env.truncations.values()) and not any(env.terminations.values()))

    def copy(self) -> Self:
        if self._copies is None:
            self._copies = _copies_well(self._anew())
        return self._copied() if self._copies else self._replayed()

    def _copied(self) -> Self:
        other = copy(self)
        other._env, other._dice = copy_env(self._env)
        other._played = self._played.copy()
        return other

    def _anew(self) -> Self:
        """Makes a new game from the same seed."""
        other = copy(self)
        other._env, other._dice = _make(*self._made_from), []
        other._begin(self._seed)
        return other

    def _replayed(self) -> Self:
        """Makes a new game from the same seed, and plays the same actions."""
        other = self._anew()
        for action in self._played:
            other._env.step(action)
            other._played.append(action)
            other._follow()
        if other.sight() != self.sight():
            raise GameError(
                f"{self.name} cannot be looked ahead in: it cannot be copied, and the same actions from the same seed "
                f"lead to another position. Let reset(seed) decide all its chance events, or give it a __deepcopy__"
            )
        return other

    def first_legal(self) -> int:
        legal = self.legal(self.to_move)
        return int(np.flatnonzero(legal)[0]) if isinstance(legal, np.ndarray) else 0

    def sight(self) -> tuple[object, ...]:
        """Collects who must act and what each agent sees, to compare positions."""
        seats = [seat for seat, agent in enumerate(self._agents) if agent in self._env.agents]
        return self.to_move, *((seat, self.observe(seat).tobytes()) for seat in seats)

    def _follow(self) -> None:
        """Skips the empty turns of agents that are out while others play on, and finds whose turn it is."""
        env = self._env
        while self.outcome() is None and self._is_out(env.agent_selection):
            env.step(None)
        self.to_move = self._agents.index(env.agent_selection)

    def _is_out(self, agent: str) -> bool:
        return bool(self._env.terminations[agent] or self._env.truncations[agent])

    def _one_for_all(self, what: str, read: Callable[[str], Any]) -> Any:
        kinds = [read(agent) for agent in self._agents]
        if any(kind != kinds[0] for kind in kinds):
            raise ConfigError(
                f"the agents of {self.name} differ in their {what} spaces: {kinds}; Keisei needs one"
            )
        return kinds[0]

    def _actions_of(self, agent: str) -> int:
        space = self._env.action_space(agent)
        if not hasattr(space, "n") or getattr(space, "start", 0) != 0:
            raise ConfigError(f"{self.name} has the action space {space}; Keisei needs Discrete(n) from 0")
        return int(space.n)

    def _observation_of(self, agent: str) -> ObservationSpec:
        space = self._env.observation_space(agent)
        plain = space["observation"] if hasattr(space, "spaces") else space
        if plain.shape is None or plain.dtype is None:
            raise ConfigError(f"{self.name} has the observation space {plain}; Keisei needs arrays")
        return ObservationSpec(tuple(plain.shape), np.dtype(plain.dtype))


def _copies_well(game: PettingZooGame) -> bool:
    """Checks for some plies that copies equal the game and that playing on them does not change it. The game cannot be
    used afterwards."""
    try:
        for _ in range(_TRIAL_PLIES):
            before, copied = game.sight(), game._copied()
            was_equal, action = copied.sight() == before, copied.first_legal()
            copied.play(action, KeyedRandom(0, 0, 0))
            if not was_equal or game.sight() != before:
                return False
            game.play(action, KeyedRandom(0, 0, 0))
            if game.outcome() is not None:
                return True
            if not copied._dice and copied.sight() != game.sight():
                return False
    except Exception:  # a window, a generator, a handle of another library
        return False
    return True


def _registered(name: str) -> str:
    """Writes a name as PettingZoo's registry does: connect_four_v3 is classic/connect_four-v3."""
    known = list(need("pettingzoo", INSTALL).aec_registry)
    wanted = re.sub(r"_v(\d+)$", r"-v\1", name.strip())
    for identity in known:
        if wanted in (identity, identity.rpartition("/")[2]):
            return str(identity)
    short = [identity.rpartition("/")[2] for identity in known]
    near = did_you_mean(wanted.rpartition("/")[2], short)
    raise UnknownGameError(f"PettingZoo has no AEC game {name!r}{near}. It has: {', '.join(sorted(short))}")


def _make(env: str | Callable[..., Any], identity: str, options: dict[str, Any]) -> Any:
    if not isinstance(env, str):
        return env(**options)
    pettingzoo = need("pettingzoo", INSTALL)
    try:
        made = pettingzoo.make("aec", identity, **options)
        if "ansi" in made.metadata.get("render_modes", ()) and "render_mode" not in options:
            made = pettingzoo.make("aec", identity, render_mode="ansi", **options)
        return made
    except (ImportError, _failed_to_import()) as error:
        raise GameError(_how_to_install(identity, error)) from error
    except TypeError as error:
        raise ConfigError(
            f"{identity} refuses the options {options}: {error}; {_known(pettingzoo, identity)}"
        ) from error


def _failed_to_import() -> type[Exception]:
    """Gets the error that PettingZoo raises for a missing package. It is no ImportError."""
    from pettingzoo.env_registry.exceptions import FailedToImport

    return cast("type[Exception]", FailedToImport)


def _how_to_install(identity: str, error: Exception) -> str:
    """Names the missing package of an environment, and the extra of PettingZoo that installs the whole family."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    extra = f"pip install 'pettingzoo[{identity.partition('/')[0]}]'"
    module = (getattr(cause, "name", None) or "").partition(".")[0]
    if not isinstance(cause, ModuleNotFoundError) or not module:
        return f"{identity} cannot be imported: {in_one_line(cause)}; {extra} installs what it needs"
    package = _DISTRIBUTIONS.get(module, module)
    return (
        f"{identity} needs the package {package!r}, which is not installed; pip install {package}, or all that "
        f"such games need: {extra}"
    )


def _known(pettingzoo: Any, identity: str) -> str:
    """Lists the options of an environment, from the signature of its class."""
    kind = type(pettingzoo.make("aec", identity).unwrapped)
    return f"its options: {', '.join(inspect.signature(kind).parameters)}"
