"""The settings that a worker gets when it starts. They are the same for every table that it plays."""

from __future__ import annotations

from keisei.config import Settings
from keisei.parallel.config import EnvConfig, ParallelConfig, TableOverride
from keisei.policies.model_config import ModelConfig
from keisei.policies.seating import Seating

MAX_IN_FLIGHT = 64
"""The most orders that a worker may have at once. A pipe takes about 250 small messages. The limit ensures that
manager and worker never both wait for the other to read."""


class WorkerPlan(Settings):
    """Describes what is played. It is the same for all workers, except for the worker number. It is sent as JSON."""

    worker: int
    env: EnvConfig
    model: ModelConfig | None
    """None means random play."""
    seed: int
    games: int
    """How many games a table has."""
    horizon: int
    seating: Seating
    overrides: dict[int, TableOverride]
    """Overrides by table number."""
    central: bool
    """True if the manager makes the decisions and the worker only steps games."""

    @classmethod
    def of(
        cls, worker: int, env: EnvConfig, model: ModelConfig | None, config: ParallelConfig, seed: int
    ) -> WorkerPlan:
        return cls(
            worker=worker,
            env=env,
            model=model,
            seed=seed,
            games=config.games,
            horizon=config.horizon,
            seating=config.seating,
            overrides=config.table_overrides,
            central=config.inference == "central" and model is not None,
        )

    def first_game(self, table: int) -> int:
        """Gives the number of a table's first game. Games are numbered across all tables."""
        return table * self.games

    @property
    def seatings(self) -> list[Seating]:
        """The seatings of all tables, since the worker may play any of them."""
        own = [override.seating for override in self.overrides.values()]
        return [self.seating, *(seating for seating in own if seating is not None)]

    def override_of(self, table: int) -> TableOverride:
        return self.overrides.get(table, TableOverride())
