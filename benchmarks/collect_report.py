"""The results of ``collect``: the figures, the promises they are compared with, and tables of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.measure import widen

Group = Literal["keisei", "limit", "baseline", "peer"]

FORWARD = "forward"
SAMPLING = "forward and sampling"
LARGE_SLOTS = "shared memory, a slab a slot"
SMALL_SLOTS = "shared memory, a step a slot"
"""Small slots stay in caches but need more messages; large slots the reverse. Which is faster depends on the
machine and its load, so both are measured."""
QUEUES = {"steps": "queue of dicts", "episode": "queue of episodes"}
NETWORK, RANDOM = "network", "random"


@dataclass(frozen=True)
class Shares:
    """Shares of the workers' time, from the first order of a turn to the last slab."""

    game: float
    policy: float
    transport: float
    """Checksums, saved states, records, and all else besides games and policy."""
    waiting: float


@dataclass(frozen=True)
class Result:
    """One contender."""

    group: Group
    name: str
    """The mode for ours; a description for others."""
    game: str
    policy: str
    workers: int
    per_second: float = 0.0
    """Transitions per second at the learner; rows for limits."""
    bytes_per_transition: float | None = None
    shares: Shares | None = None


@dataclass(frozen=True)
class Target:
    """A promise, and its measured value."""

    name: str
    wanted: float
    reached: float
    met: bool


@dataclass(frozen=True)
class CollectReport:
    machine: str
    games_per_worker: int
    rounds: int
    seconds: float
    results: list[Result]
    peers_missing: dict[str, str]
    """Peers that were requested and did not run, with the reason."""
    scaling: dict[str, float]
    """The speed of most workers over that of one, by game, policy and mode."""
    targets: list[Target]


def scaling_of(results: Sequence[Result]) -> dict[str, float]:
    """Computes how much faster most workers are than one. Limits are included, since no design scales better than
    they do."""
    most = max(result.workers for result in results if result.group in ("keisei", "limit"))
    found: dict[str, float] = {}
    if most == 1:
        return found
    for result in results:
        if result.workers == most and result.group in ("keisei", "limit"):
            one = _find(results, result.name, result.game, result.policy, 1)
            if one is not None:
                found[f"{result.game}, {result.policy}, {result.name}"] = result.per_second / one.per_second
    return found


def targets_of(results: Sequence[Result]) -> list[Target]:
    return list(_targets(results))


def _targets(results: Sequence[Result]) -> Iterator[Target]:
    most = max(result.workers for result in results if result.group in ("keisei", "limit"))
    network, random = (_best(results, "dummy", policy, most) for policy in (NETWORK, RANDOM))
    if network and random:
        for limit in (FORWARD, SAMPLING):
            bare = _find(results, limit, "dummy", NETWORK, most)
            yield from _ratio(f"share of the inference limit ({limit})", 0.9, network, bare)
        one = _best(results, "dummy", NETWORK, 1)
        if most > 1:
            yield from _ratio(f"{most} workers over 1, network", 1.85 * most / 2, network, one)
        for limit in (LARGE_SLOTS, SMALL_SLOTS):
            bare = _find(results, limit, "dummy", RANDOM, most)
            yield from _ratio(f"share of the limit ({limit})", 0.9, random, bare)
        for policy, wanted, ours in ((NETWORK, 1.5, network), (RANDOM, 1.4, random)):
            yield from _ratio(
                f"over the best peer, {policy}", wanted, ours, _best_peer(results, "dummy", policy)
            )
    shogi = _best(results, "shogi", RANDOM, most)
    if shogi and shogi.bytes_per_transition is not None:
        yield _at_least("Shogi, random, transitions/s", 300_000, shogi.per_second)
        wanted, cost = 200, shogi.bytes_per_transition
        yield Target("Shogi, bytes per transition, at most", wanted, cost, cost <= wanted)
        yield from _ratio(
            "Shogi over the best peer with cshogi", 10, shogi, _best_peer(results, "shogi", RANDOM)
        )


def _find(results: Sequence[Result], name: str, game: str, policy: str, workers: int) -> Result | None:
    wanted = (name, game, policy, workers)
    return next((r for r in results if (r.name, r.game, r.policy, r.workers) == wanted), None)


def _best(results: Sequence[Result], game: str, policy: str, workers: int) -> Result | None:
    """Gives the faster of our modes."""
    wanted = ("keisei", game, policy, workers)
    ours = [r for r in results if (r.group, r.game, r.policy, r.workers) == wanted]
    return max(ours, key=lambda result: result.per_second, default=None)


def _best_peer(results: Sequence[Result], game: str, policy: str) -> Result | None:
    peers = [r for r in results if (r.group, r.game, r.policy) == ("peer", game, policy)]
    return max(peers, key=lambda result: result.per_second, default=None)


def _ratio(name: str, wanted: float, ours: Result, other: Result | None) -> Iterator[Target]:
    if other is not None:
        yield _at_least(name, wanted, ours.per_second / other.per_second)


def _at_least(name: str, wanted: float, reached: float) -> Target:
    return Target(name, wanted, reached, reached >= wanted)


def show(report: CollectReport, console: Console) -> None:
    widen(console)
    for game in dict.fromkeys(result.game for result in report.results):
        for policy in (NETWORK, RANDOM):
            rows = [r for r in report.results if (r.game, r.policy) == (game, policy)]
            if rows:
                console.print(_table(f"{game}, {policy} policy: transitions per second", rows))
    table = Table(title="More workers over one", title_justify="left", box=SIMPLE)
    table.add_column("game, policy, mode or limit")
    table.add_column("ratio", justify="right")
    for name, ratio in report.scaling.items():
        table.add_row(name, f"{ratio:.2f} x")
    if report.scaling:
        console.print(table)
    console.print(_target_table(report.targets))
    for name, why in report.peers_missing.items():
        console.print(f"not measured: {name}: {why}", markup=False)
    console.print(f"{report.machine}; {report.games_per_worker} games a worker")


def _table(title: str, rows: Sequence[Result]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for heading in ("", "workers", "per second", "bytes", "game", "policy", "transport", "waiting"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        shares = row.shares
        parts = (shares.game, shares.policy, shares.transport, shares.waiting) if shares else ()
        table.add_row(
            f"keisei, {row.name}" if row.group == "keisei" else f"{row.group}: {row.name}",
            str(row.workers),
            f"{row.per_second:,.0f}",
            f"{row.bytes_per_transition:,.0f}" if row.bytes_per_transition else "",
            *(f"{part:.0%}" for part in parts),
            style="bold" if row.group == "keisei" else None,
        )
    return table


def _target_table(targets: Sequence[Target]) -> Table:
    table = Table(title="Targets, by the faster mode and all workers", title_justify="left", box=SIMPLE)
    for heading in ("", "wanted", "reached", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for target in targets:
        digits = 0 if target.wanted >= 100 else 2
        figures = (f"{value:,.{digits}f}" for value in (target.wanted, target.reached))
        table.add_row(target.name, *figures, "met" if target.met else "missed")
    return table
