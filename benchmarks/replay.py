"""Replay: insertions and samples per second and bytes per decision, ours and other libraries', on the same decisions.

Ours keeps slabs where workers wrote them, so an insertion finds what came of each decision and copies nothing. A
sample has packed positions; ``+ planes`` expands them into planes and masks of both positions, which is what the
others give. Prioritised samples include the update of their priorities.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Contender, machine, race, rate_of, widen
from benchmarks.peers import PeerMissingError
from benchmarks.peers.replay_buffers import BUFFERS, BufferPeer, Decisions, PeerBuffer
from keisei.experience.collected import CollectedSlab
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.schema import SlabShape
from keisei.experience.slab import common_bytes, slab_layout
from keisei.games import make_game
from keisei.games.contract import Game, GameSpec
from keisei.machine.freed_memory import keep_freed_memory
from keisei.machine.torch_threads import single_threaded
from keisei.parallel import ParallelManager
from keisei.parallel.deliveries import copy_slab

OURS = "keisei"
KINDS = {False: "uniform", True: "prioritised"}


@dataclass(frozen=True)
class Settings:
    rounds: int = 5
    seconds: float = 0.5
    games: tuple[str, ...] = ("shogi", "connect-four")
    batch_size: int = 256
    table_games: int = 128
    """Games of a table, which the others call environments."""
    horizon: int = 64
    slabs: int = 4
    """Slabs that each buffer holds."""


@dataclass(frozen=True)
class Result:
    game: str
    name: str
    kind: str
    """uniform or prioritised"""
    inserts_per_second: float
    samples_per_second: float
    """Decisions in samples with planes and masks, per second."""
    packed_samples_per_second: float | None
    """The same without planes; only ours has packed positions."""
    bytes_per_decision: float


@dataclass(frozen=True)
class Target:
    """A figure of ours over the best of the others."""

    name: str
    reached: float
    wanted: float

    @property
    def met(self) -> bool:
        return self.reached >= self.wanted


@dataclass(frozen=True)
class ReplayReport:
    machine: str
    batch_size: int
    results: list[Result]
    targets: list[Target]
    peers_missing: dict[str, str] = field(default_factory=dict)
    """Why a peer was not measured, by name."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    results: list[Result] = []
    missing: dict[str, str] = {}
    keep_freed_memory()  # as in a run; else the planes of each sample are on new pages, which takes most of the time
    with single_threaded():  # some of the others use torch
        for game in settings.games:
            results += _measure(game, settings, missing, console)
    report = ReplayReport(machine(), settings.batch_size, results, _targets(results), missing)
    if as_json:
        plain = asdict(report)
        for row, target in zip(plain["targets"], report.targets, strict=True):
            row["met"] = target.met
        console.file.write(json.dumps(plain, indent=2) + "\n")
    else:
        _show(report, console)


@dataclass(frozen=True)
class _Measured:
    """One buffer, full, with its contenders."""

    name: str
    kind: str
    bytes_per_decision: float
    contenders: dict[str, Contender]


def _measure(game: str, settings: Settings, missing: dict[str, str], console: Console) -> list[Result]:
    played = _Played(game, settings)
    measured = [_ours(played, settings, prioritised) for prioritised in KINDS]
    for peer in BUFFERS:
        try:
            measured.append(_theirs(peer, played, settings))
        except PeerMissingError as error:
            missing[f"{peer.name}, {KINDS[peer.prioritised]}"] = str(error)
    contenders = {
        f"{number}/{what}": contender
        for number, buffer in enumerate(measured)
        for what, contender in buffer.contenders.items()
    }
    rates = race(contenders, settings.seconds, settings.rounds, console)
    return [
        Result(
            game,
            buffer.name,
            buffer.kind,
            rates[f"{number}/insert"],
            rates[f"{number}/sample"],
            rates.get(f"{number}/packed"),
            buffer.bytes_per_decision,
        )
        for number, buffer in enumerate(measured)
    ]


class _Played:
    """Random games, as slabs and as the decisions that other libraries store."""

    def __init__(self, game: str, settings: Settings) -> None:
        parallel = {
            "backend": "inline",
            "num_workers": 1,
            "tables": 1,
            "games": settings.table_games,
            "horizon": settings.horizon,
        }
        self.slabs: list[CollectedSlab] = []
        with ParallelManager({"game": game}, None, parallel) as manager:
            for number in range(settings.slabs):
                (item,) = manager.collect_experiences()
                record = replace(item.record, slab=number)
                self.slabs.append(CollectedSlab(record, item.first_game, copy_slab(item.slab)))
        self.game: Game = make_game(game, batch=1, seed=0)
        self.shape: SlabShape = self.slabs[0].slab.shape
        self.capacity = settings.slabs * self.shape.transitions

    @property
    def spec(self) -> GameSpec:
        return self.game.spec

    def decisions(self) -> Decisions:
        """The decisions of the first slab. A last position stands in where a game ends or the slab does."""
        slab, (steps, slots) = self.slabs[0].slab, (self.shape.steps, self.shape.slots)
        planes, mask = self.game.unpack(slab.packed.reshape(-1, self.shape.packed_bytes))
        planes, mask = (column.reshape(steps + 1, slots, *column.shape[1:]) for column in (planes, mask))
        mover = slab.seat[:steps].astype(np.int64)
        return Decisions(
            planes=planes[:steps],
            mask=mask[:steps],
            next_planes=planes[1:],
            next_mask=mask[1:],
            action=slab.action.copy(),
            reward=np.take_along_axis(slab.reward, mover[..., None], axis=2)[..., 0],
            done=slab.terminated | slab.truncated,
        )


def _ours(played: _Played, settings: Settings, prioritised: bool) -> _Measured:
    chosen = ReplaySettings(capacity=played.capacity, n_step=1, learning_starts=0, prioritised=prioritised)
    buffer = ReplayBuffer(played.spec, played.shape, chosen, 0.99, batch_size=settings.batch_size)
    buffer.take(played.slabs)
    insert = _Inserting(buffer, played.slabs)
    sample = _Sampling(buffer, played.game, settings.batch_size, prioritised)
    contenders: dict[str, Contender] = {
        "insert": lambda seconds: rate_of(insert, seconds),
        "sample": lambda seconds: rate_of(sample.with_planes, seconds),
        "packed": lambda seconds: rate_of(sample.packed, seconds),
    }
    return _Measured(OURS, KINDS[prioritised], _bytes_per_decision(buffer, played.shape), contenders)


def _bytes_per_decision(buffer: ReplayBuffer, shape: SlabShape) -> float:
    """What is in use. The memory for last positions of truncated games is reserved, and used where there are some."""
    unused = slab_layout(shape).nbytes - common_bytes(shape)
    return buffer.nbytes / buffer.capacity - unused / shape.transitions


class _Inserting:
    """Takes the same slabs again and again, as if they were new ones of their table."""

    def __init__(self, buffer: ReplayBuffer, slabs: list[CollectedSlab]) -> None:
        self._buffer, self._slabs = buffer, slabs
        self._sequence = slabs[-1].record.sequence

    def __call__(self) -> int:
        self._sequence += 1
        item = self._slabs[self._sequence % len(self._slabs)]
        self._buffer.take([replace(item, record=replace(item.record, sequence=self._sequence))])
        return item.record.transitions


class _Sampling:
    def __init__(self, buffer: ReplayBuffer, game: Game, size: int, prioritised: bool) -> None:
        self._view, self._game = buffer.view(), game
        self._size, self._prioritised = size, prioritised
        self._errors = np.random.default_rng(1).random(size).astype(np.float32)
        self._key = 0

    def packed(self) -> int:
        self._draw()
        return self._size

    def with_planes(self) -> int:
        sample = self._draw()
        self._game.unpack(sample.packed)
        self._game.unpack(sample.next_packed[sample.discounts != 0])
        return self._size

    def _draw(self) -> object:
        self._key += 1
        sample = self._view.sample(self._size, 1, self._key)
        if self._prioritised:
            self._view.update_priorities(sample, self._errors)
        return sample


def _theirs(peer: BufferPeer, played: _Played, settings: Settings) -> _Measured:
    decisions = played.decisions()
    buffer: PeerBuffer = peer.make(played.spec, played.capacity, decisions.games)
    for _ in range(settings.slabs):
        buffer.insert(decisions)

    def insert() -> int:
        buffer.insert(decisions)
        return decisions.action.size

    def sample() -> int:
        buffer.sample(settings.batch_size)
        return settings.batch_size

    works: dict[str, Callable[[], int]] = {"insert": insert, "sample": sample}
    contenders: dict[str, Contender] = {
        name: lambda seconds, work=work: rate_of(work, seconds)  # type: ignore[misc]
        for name, work in works.items()
    }
    return _Measured(peer.name, KINDS[peer.prioritised], buffer.nbytes / played.capacity, contenders)


def _targets(results: list[Result]) -> list[Target]:
    """Three times the rates of the best peer, and a tenth of its bytes."""
    targets = []
    for ours in (result for result in results if result.name == OURS):
        peers = [r for r in results if r.name != OURS and (r.game, r.kind) == (ours.game, ours.kind)]
        if not peers:
            continue
        about = f"{ours.game}, {ours.kind}"
        inserts, samples = (
            max(getattr(p, what) for p in peers) for what in ("inserts_per_second", "samples_per_second")
        )
        targets += [
            Target(f"{about}: insert", ours.inserts_per_second / inserts, 3.0),
            Target(f"{about}: sample + planes", ours.samples_per_second / samples, 3.0),
            Target(f"{about}: sample, packed", (ours.packed_samples_per_second or 0) / samples, 3.0),
            Target(
                f"{about}: bytes", min(p.bytes_per_decision for p in peers) / ours.bytes_per_decision, 10.0
            ),
        ]
    return targets


def _show(report: ReplayReport, console: Console) -> None:
    widen(console)
    table = Table(title="Replay, decisions per second", title_justify="left")
    for heading in ("game", "buffer", "", "insert", "sample + planes", "sample, packed", "bytes a decision"):
        table.add_column(heading, justify="left" if heading in ("game", "buffer", "") else "right")
    for row in report.results:
        packed = row.packed_samples_per_second
        table.add_row(
            row.game,
            row.name,
            row.kind,
            f"{row.inserts_per_second:,.0f}",
            f"{row.samples_per_second:,.0f}",
            "-" if packed is None else f"{packed:,.0f}",
            f"{row.bytes_per_decision:,.0f}",
            style="bold" if row.name == OURS else "",
        )
    console.print(table)
    for target in report.targets:
        mark = "reached" if target.met else "not reached"
        console.print(
            f"{target.name}: {target.reached:.1f} x the best peer (wanted {target.wanted:g} x, {mark})"
        )
    for name, why in report.peers_missing.items():
        console.print(f"{name} was not measured: {why}", markup=False)
    console.print(f"{report.machine}; samples of {report.batch_size}")
