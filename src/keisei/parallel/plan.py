"""The settings that a worker gets when it starts. They are the same for every table that it plays."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from keisei.config import Settings
from keisei.games.env_config import EnvConfig
from keisei.parallel.config import ParallelConfig, TableOverride
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.behaviour import Play, TableGames
from keisei.policies.model_config import ModelConfig
from keisei.policies.seating import PolicyConfig, Seating

MAX_IN_FLIGHT = 64
"""The most orders that a worker may have at once. A pipe takes about 250 small messages. The limit ensures that
manager and worker never both wait for the other to read."""


class LeaguePlan(Settings):
    """The opponents that the learner may meet. Its own earlier versions come and go on the shelf; the others are known
    from the start."""

    players: dict[int, PolicyConfig] = Field(default_factory=dict)
    """The members without a place on the shelf, by number: players that need no weights."""
    places: Annotated[int, Field(ge=0)] = 16
    """Places on the shelf for earlier versions of the learner."""
    networks: tuple[ModelConfig, ...] = ()
    """The networks of further members with weights. Each has a place of its own on the shelf."""


class WorkerPlan(Settings):
    """Describes what is played. It is the same for all workers, except for the worker number. It is sent as JSON."""

    worker: int
    env: EnvConfig
    model: ModelConfig | None
    """None means random play."""
    seed: int
    tables: int
    games: int
    """How many games a table has."""
    horizon: int
    seating: Seating
    overrides: dict[int, TableOverride]
    """Overrides by table number."""
    central: bool
    """True if the manager makes the decisions and the worker only steps games."""
    league: LeaguePlan | None = None
    """None if the learner meets no league."""
    agents: AgentsPlan | None = None
    """The networks of independent agents, one for each seat. None if one network plays all seats."""

    @classmethod
    def of(
        cls,
        worker: int,
        env: EnvConfig,
        model: ModelConfig | None,
        config: ParallelConfig,
        seed: int,
        league: LeaguePlan | None = None,
        agents: AgentsPlan | None = None,
    ) -> WorkerPlan:
        return cls(
            worker=worker,
            env=env,
            model=model,
            seed=seed,
            tables=config.table_count,
            games=config.games,
            horizon=config.horizon,
            seating=config.seating,
            overrides=config.table_overrides,
            central=config.inference == "central" and model is not None,
            league=league,
            agents=agents,
        )

    def first_game(self, table: int) -> int:
        """Computes the number of a table's first game. Games are numbered across all tables."""
        return table * self.games

    def games_of(self, table: int) -> TableGames:
        return TableGames(self.first_game(table), self.games, self.tables * self.games)

    @property
    def renews_at_steps(self) -> bool:
        """Whether a worker without an order for a version takes new weights at every step, and not only with an
        order."""
        return self.agents is not None

    @property
    def seatings(self) -> list[Seating]:
        """The seatings of all tables, since the worker may play any of them."""
        own = [override.seating for override in self.overrides.values()]
        return [self.seating, *(seating for seating in own if seating is not None)]

    def seating_of(self, table: int) -> Seating:
        own = self.override_of(table).seating
        return self.seating if own is None else own

    def meets_league(self, table: int) -> bool:
        """Checks if games of a table meet the league. A table with a seating of its own does not."""
        return self.league is not None and self.override_of(table).seating is None

    def override_of(self, table: int) -> TableOverride:
        return self.overrides.get(table, TableOverride())

    def play_at(self, table: int, settings: Play) -> Play:
        """Gets how freely the learner plays at a table. The table's own settings come first."""
        override = self.override_of(table)
        own = {} if override.temperature is None else {"temperature": override.temperature}
        if override.epsilon is not None:
            own |= {"epsilon": override.epsilon, "spread": 0.0}
        return tuple(each._replace(**own) for each in settings) if own else settings
