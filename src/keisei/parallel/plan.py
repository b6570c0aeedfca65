"""What a worker is given when it starts: what is played, whichever of the tables it will be asked to play."""

from __future__ import annotations

from keisei.config import Settings
from keisei.parallel.config import EnvConfig, ParallelConfig, TableOverride
from keisei.policies.networks import ModelConfig
from keisei.policies.seating import Seating

MAX_IN_FLIGHT = 64
"""Orders that a worker has in hand at the most. A pipe takes some 250 small messages; manager and worker must never
both wait for the other to read."""


class WorkerPlan(Settings):
    """What is played. It is the same for all workers but for their numbers, and travels as JSON."""

    worker: int
    env: EnvConfig
    model: ModelConfig | None
    """None plays at random."""
    seed: int
    games: int
    """Of a table."""
    horizon: int
    seating: Seating
    overrides: dict[int, TableOverride]
    """By the table's number."""
    central: bool
    """True where the manager decides, and the worker only steps games."""

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
        """Games are numbered across all tables."""
        return table * self.games

    @property
    def seatings(self) -> list[Seating]:
        """Of all tables, whichever the worker will play."""
        own = [override.seating for override in self.overrides.values()]
        return [self.seating, *(seating for seating in own if seating is not None)]

    def override_of(self, table: int) -> TableOverride:
        return self.overrides.get(table, TableOverride())
