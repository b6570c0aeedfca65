"""The settings that say what is played."""

from __future__ import annotations

import platform
from typing import Annotated, Any, TypeAlias

from pydantic import Field, model_validator

from keisei.config import Rule, Settings
from keisei.errors import ConfigError
from keisei.games.contract import Game, GameSpec
from keisei.games.own_files import absolute_name
from keisei.games.registry import DEFAULT_GAME, make_game, source_digest, takes_option
from keisei.ranges import PositiveShare

Reward: TypeAlias = Annotated[float, Field(ge=-1e9, le=1e9)]
"""Rewards, returns and their squares are numbers of 32 bits."""


class EnvConfig(Settings):
    """What is played."""

    game: str = DEFAULT_GAME
    """A name that ``make_game`` knows, such as shogi, module:Class or path.py:Class."""
    source_digest: Annotated[str | None, Rule.ANNOUNCED] = None
    """The digest of the game's file, if it is named as path.py:Class. Keisei fills it in, to notice
    when the file changes."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further options of the game, such as ``max_plies``, where games are cut off."""
    board_size: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    """The size of the board. It may be left out; if it is given, it must be the size that the game has."""
    discount: Annotated[PositiveShare, Rule.ANNOUNCED] = 0.99
    """What a reward is worth one ply earlier. Learners use it, and so do games whose rewards depend on it."""
    reward_structure: Annotated[dict[str, Reward], Rule.ANNOUNCED] = Field(default_factory=dict)
    """Rewards by name, as options of the game: win, loss, draw and others."""

    @model_validator(mode="after")
    def _one_discount(self) -> EnvConfig:
        if "discount" in self.reward_structure or "discount" in self.options:
            raise ValueError("discount has one place for games and learners: write env.discount")
        return self

    def game_options(self) -> dict[str, Any]:
        """Collects the options for ``make_game``."""
        known = {"discount": self.discount} if takes_option(self.game, "discount") else {}
        return known | self.reward_structure | self.options

    def make(self, *, batch: int, seed: int, first_game: int = 0) -> Game:
        game = make_game(self.game, batch=batch, seed=seed, first_game=first_game, **self.game_options())
        self._check_board(game.spec)
        return game

    def located(self) -> EnvConfig:
        """The same settings, with the whole path of the game's file and the digest of its content."""
        name = absolute_name(self.game)
        return self.model_copy(update={"game": name, "source_digest": source_digest(name)})

    def check_source(self) -> None:
        """Refuses a game's file whose content differs from the one that the run was started with."""
        found = source_digest(self.game) if self.source_digest is not None else None
        if found != self.source_digest:
            raise ConfigError(
                f"{self.game.rpartition(':')[0]} on {platform.node()} is not the file that this run plays by (its "
                f"digest is {found}, not {self.source_digest}). Every machine needs the same file. If you have changed "
                f"it, end the program that has imported the old one, and resume the run"
            )

    def _check_board(self, spec: GameSpec) -> None:
        """Checks the size of the board, which is the last axis of its planes. Other observations have no board."""
        if self.board_size is None:
            return
        shape = spec.observation.shape
        if len(shape) != 3:
            raise ConfigError(
                f"env_config: board_size = {self.board_size}, but {spec.name} has no board (its observations have "
                f"shape {shape}); leave it out"
            )
        if self.board_size != shape[-1]:
            raise ConfigError(
                f"env_config: board_size = {self.board_size}, but the board of {spec.name} has size {shape[-1]}; "
                f"write that, or leave it out"
            )
