"""The speed of worlds on one core: treasure hunt in a batch, beside a plain loop with an object for each cell.

The loop is written in the manner of Sorrel, which is not on PyPI: an array of objects, a visit to each of them in every
turn, and a view that is put together cell by cell. It is kinder to itself than Sorrel: one layer instead of two, and no
deep copies. Both observe for all agents, choose random actions and play the turn; both restart after 100 turns.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Contender, machine, race, rate_of
from keisei.games import make_game

BATCH = 256
BATCHES = (16, 64, 1024)
"""Further sizes of the batch, with two agents."""
AGENTS = (2, 8, 32, 128)
OTHERS = ("tag", "stag-hunt", "cleanup", "prisoners-dilemma")
SIDE, VISION, SPAWN, TURNS = 21, 2, 0.005, 100
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class WorldsReport:
    machine: str
    batch: int
    turns_per_second: dict[str, float]
    """Treasure hunt in a batch, by the number of agents."""
    objects_per_second: dict[str, float]
    """The plain loop, by the number of agents."""
    over_objects: float
    """Turns of the batch over turns of the loop, with two agents."""
    by_batch: dict[str, float]
    """Treasure hunt with two agents, by the size of the batch."""
    other_games: dict[str, float]
    """Turns per second of other games in a batch."""


def run(*, rounds: int, seconds: float, as_json: bool, console: Console) -> None:
    contenders: dict[str, Contender] = {}
    for agents in AGENTS:
        contenders[f"batch/{agents}"] = _batch("treasurehunt", BATCH, agents=agents)
        contenders[f"objects/{agents}"] = partial(_objects, agents)
    contenders |= {f"size/{size}": _batch("treasurehunt", size) for size in BATCHES}
    contenders |= {name: _batch(name, BATCH) for name in OTHERS}
    rates = race(contenders, seconds, rounds, console)
    report = WorldsReport(
        machine=machine(),
        batch=BATCH,
        turns_per_second={str(agents): rates[f"batch/{agents}"] for agents in AGENTS},
        objects_per_second={str(agents): rates[f"objects/{agents}"] for agents in AGENTS},
        over_objects=rates["batch/2"] / rates["objects/2"],
        by_batch={str(size): rates[f"size/{size}"] for size in BATCHES},
        other_games={name: rates[name] for name in OTHERS},
    )
    if as_json:
        console.file.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        _show(report, console)


def _show(report: WorldsReport, console: Console) -> None:
    table = Table(title="Treasure hunt, turns per second on one core", title_justify="left")
    for heading in ("agents", "batch", "object for each cell", "ratio"):
        table.add_column(heading, justify="right")
    for agents, rate in report.turns_per_second.items():
        loop = report.objects_per_second[agents]
        table.add_row(agents, f"{rate:,.0f}", f"{loop:,.0f}", f"{rate / loop:.0f} x")
    console.print(table)
    loop = report.objects_per_second["2"]
    for size, rate in report.by_batch.items():
        console.print(f"2 agents, batch {size:>4} {rate:12,.0f} turns/s, {rate / loop:.0f} x")
    for name, rate in report.other_games.items():
        console.print(f"{name:20} {rate:12,.0f} turns/s")
    console.print(f"{report.machine}; batch {report.batch}")


def _batch(name: str, batch: int, **options: int) -> Contender:
    game = make_game(name, batch=batch, seed=1, **options)

    def play() -> int:
        for _ in range(4):
            game.rows()
            game.observe()
            game.step(game.random_actions())
        return 4 * batch

    return lambda seconds: rate_of(play, seconds)


class Thing:
    """What stands in a cell."""

    kind, value, passable, changes = "wall", -1.0, False, False

    def transition(self, field: ObjectField) -> None:
        """Most things stay as they are."""


class Gem(Thing):
    kind, value, passable = "gem", 10.0, True


class Food(Thing):
    kind, value, passable = "food", 5.0, True


class Bone(Thing):
    kind, value, passable = "bone", -10.0, True


class Soil(Thing):
    kind, value, passable, changes = "empty", 0.0, True, True

    def __init__(self, cell: tuple[int, int]) -> None:
        self.cell = cell

    def transition(self, field: ObjectField) -> None:
        if random.random() < SPAWN:
            field.cells[self.cell] = random.choice((Gem, Food, Bone))()


class Walker(Thing):
    kind, value = "agent", 0.0

    def __init__(self, cell: tuple[int, int]) -> None:
        self.cell = cell

    def pov(self, field: ObjectField) -> NDArray[np.float64]:
        """One-hot planes of the cells around it."""
        side = 2 * VISION + 1
        planes = np.zeros((len(ObjectField.KINDS), side, side))
        top, left = self.cell[0] - VISION, self.cell[1] - VISION
        for row in range(side):
            for column in range(side):
                here = (top + row, left + column)
                inside = 0 <= here[0] < SIDE and 0 <= here[1] < SIDE
                kind = field.cells[here].kind if inside else "wall"
                if kind != "empty":
                    planes[ObjectField.KINDS[kind], row, column] = 1
        return planes

    def act(self, field: ObjectField, action: int) -> float:
        down, right = STEPS[action]
        target = (self.cell[0] + down, self.cell[1] + right)
        thing: Thing = field.cells[target]
        if thing.passable:
            field.cells[self.cell] = Soil(self.cell)
            field.cells[target] = self
            self.cell = target
        return thing.value


class ObjectField:
    """One field with an object in each cell."""

    KINDS = {"wall": 0, "gem": 1, "food": 2, "bone": 3, "agent": 4}  # noqa: RUF012

    def __init__(self, agents: int) -> None:
        self.cells = np.empty((SIDE, SIDE), dtype=object)
        for cell in np.ndindex(SIDE, SIDE):
            self.cells[cell] = Thing() if {0, SIDE - 1} & set(cell) else Soil(cell)
        inner = [(row, column) for row in range(1, SIDE - 1) for column in range(1, SIDE - 1)]
        self.walkers = [Walker(cell) for cell in random.sample(inner, agents)]
        for walker in self.walkers:
            self.cells[walker.cell] = walker

    def take_turn(self) -> None:
        views = [walker.pov(self) for walker in self.walkers]
        actions = [random.randrange(4) for _ in views]
        for walker, action in zip(self.walkers, actions, strict=True):
            walker.act(self, action)
        for _, thing in np.ndenumerate(self.cells):
            if thing.changes:
                thing.transition(self)


def _objects(agents: int, seconds: float) -> float:
    random.seed(1)
    fields = [ObjectField(agents)]
    turns = [0]

    def play() -> int:
        for _ in range(4):
            fields[0].take_turn()
        turns[0] += 4
        if turns[0] % TURNS == 0:
            fields[0] = ObjectField(agents)
        return 4

    return rate_of(play, seconds)
