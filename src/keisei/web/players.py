"""Players for the browser: those without a network by name, and the checkpoints of the runs in the served folder.

A text from a browser never names a path. This is the only module of the dashboard that loads networks.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from keisei.errors import ConfigError, RunError
from keisei.games.contract import Game, GameSpec
from keisei.policies.contract import Policy
from keisei.web.catalogue import Catalogue, NotFoundError

__all__ = ["Players"]

DEEPEST = 3
"""Plies that a player may search for a page."""
_KEPT = 4
"""Networks in memory."""
_WHICH = re.compile(r"best|latest|update-\d{9,}(-\d+)?|member-\d{4,}")


class Players:
    """Loads players, and keeps the last few."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._loaded: OrderedDict[tuple[object, ...], Policy] = OrderedDict()

    def game_of(self, run: str) -> tuple[str, dict[str, Any]]:
        """Reads the game of a run and its options. It does not wait for torch, since watching needs none."""
        from keisei.policies.players.finding import game_of

        game = game_of(str(self.catalogue.run(run).path), self.catalogue.root)
        return game.name, dict(game.options)

    def names(self, game: Game) -> list[str]:
        """Lists the players without a network that can play a game. Pass a new game: the test plays it."""
        from keisei.policies.registry import players_of

        found = [name for name in players_of(game) if ":" not in name]
        deepest = DEEPEST if "search:DEPTH" in players_of(game) else 0
        return [*found, *(f"search:{depth}" for depth in range(1, deepest + 1))]

    def load(self, text: str, spec: GameSpec, temperature: float = 0.0) -> Policy:
        """Loads ``random``, ``greedy``, ``heuristic``, ``search:DEPTH``, ``RUN@best``, ``RUN@latest`` or
        ``RUN@update-000000042``."""
        run, at, which = text.rpartition("@")
        if not at:
            return self._named(text, spec)
        if not _WHICH.fullmatch(which):
            raise NotFoundError(f"a checkpoint is named best, latest or update-NUMBER, got {which[:50]!r}")
        directory = self.catalogue.run(run)
        # A link such as ``latest`` leads elsewhere after the next checkpoint.
        newest = (self.catalogue.checkpoints(directory) or [""])[0]
        best = directory.checkpoints / "best"
        key = (run, which, newest, best.resolve() if best.exists() else None, temperature, spec.name)
        if key not in self._loaded:
            from keisei.policies.players.saved_player import load_player

            text = f"{directory.path}@{which}"
            self._loaded[key] = load_player(text, spec, self.catalogue.root, temperature).policy
        self._loaded.move_to_end(key)
        while len(self._loaded) > _KEPT:
            self._loaded.popitem(last=False)
        return self._loaded[key]

    def judge(self, run: str, spec: GameSpec) -> Policy | None:
        """Loads the newest weights of a run; None if it has none yet."""
        try:
            return self.load(f"{run}@latest", spec)
        except RunError:
            return None

    def _named(self, text: str, spec: GameSpec) -> Policy:
        from keisei.policies.players.search_player import SearchPlayer
        from keisei.policies.registry import PLAYERS, named_player

        policy = named_player(text, spec)
        if policy is None:
            raise NotFoundError(
                f"no player is named {text[:50]!r}; players are {', '.join(PLAYERS)} and RUN@best"
            )
        if isinstance(policy, SearchPlayer) and policy.depth > DEEPEST:
            raise ConfigError(
                f"a page may ask for search:1 … search:{DEEPEST}, got {text!r}; `keisei play {text}` searches deeper"
            )
        return policy
