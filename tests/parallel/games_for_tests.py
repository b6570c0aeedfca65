"""Games that make trouble, and what the tests of parallel collection share. Workers import this module."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import keisei
from keisei.games import Outcome
from keisei.games.contract import Array, Game, Step
from keisei.games.randomness import KeyedRandom
from keisei.parallel import Experiences, ParallelManager
from keisei.parallel.plan import LeaguePlan

BACKENDS = ("inline", "thread", "process")
ALWAYS = 1 << 30


class Relay(keisei.SingleGame):
    """Three seats act at once, but in each round some of them rest: rows come and go. Cut off by max_plies."""

    name = "relay"
    seats = 3
    num_actions = 5
    observation = keisei.ObservationSpec((4,), np.dtype(np.float32))
    simultaneous = True
    scored_by_rewards = True
    max_plies = 11

    def reset(self, rng: KeyedRandom) -> None:
        self.round, self.luck, self.total = 0, rng.integer(7), [0.0] * 3

    def acting(self) -> Sequence[int]:
        resting = (self.round + self.luck) % 4
        return [seat for seat in range(3) if seat != resting]

    def legal(self, seat: int) -> list[int]:
        return [action for action in range(5) if action != (self.luck + seat) % 5]

    def play(self, action: Any, rng: KeyedRandom) -> list[float]:
        rewards = [0.0] * 3
        for seat, choice in zip(self.acting(), action, strict=True):
            rewards[seat] = float(choice == self.luck % 5)
            self.total[seat] += rewards[seat]
        self.round += 1
        self.luck = rng.integer(7)
        return rewards

    def observe(self, seat: int) -> Array:
        return np.array([self.round, self.luck, self.total[seat], seat], np.float32)

    def outcome(self) -> Outcome | None:
        return Outcome() if max(self.total) >= 5 else None


class Opaque:
    """Tic-tac-toe as a batch that shows no single game, so that nobody can look ahead in it."""

    def __init__(self, *, batch: int, seed: int, first_game: int) -> None:
        self._inner = keisei.make_game("tictactoe", batch=batch, seed=seed, first_game=first_game)

    def __getattr__(self, name: str) -> Any:
        if name == "peek":
            raise AttributeError(name)
        return getattr(self._inner, name)


class Troubled:
    """Tic-tac-toe that does something bad when its first game begins episode ``at``.

    ``trouble`` is raise, stall, exit or kill (-9). With a ``marker`` file it happens once; ``games_from`` and
    ``games_below`` say to which tables, and ``only_seed`` that it is over after a reset. ``chance`` raises at random,
    in a share of all steps. ``step_seconds`` is what a step takes; where costs are ``uneven``, it takes table n so long
    n times. ``only_starts`` many games are made to ask for a spec (the manager makes the first, and each worker one
    when it starts), and no more.
    """

    def __init__(
        self,
        *,
        batch: int,
        seed: int,
        first_game: int,
        trouble: str = "none",
        at: int = 0,
        games_from: int = 0,
        games_below: int = ALWAYS,
        only_seed: int = -1,
        marker: str = "",
        chance: float = 0.0,
        step_seconds: float = 0.0,
        uneven: bool = False,
        only_starts_in: int = 0,
        only_starts: int = ALWAYS,
    ) -> None:
        if only_starts_in and os.getpid() != only_starts_in:
            raise RuntimeError("this game starts in one process alone")
        if only_starts < ALWAYS and batch == 1:
            count_start(marker, only_starts)
        self._inner = keisei.make_game("tictactoe", batch=batch, seed=seed, first_game=first_game)
        self._troubled = games_from <= first_game < games_below and only_seed in (-1, seed)
        self._trouble, self._at, self._marker = trouble, at, marker
        self._chance = chance
        self._step_seconds = step_seconds * (first_game // batch if uneven else 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def step(self, actions: Array) -> Step:
        if self._step_seconds:
            time.sleep(self._step_seconds)
        if self._chance and int.from_bytes(os.urandom(4), "little") < self._chance * 2**32:
            raise RuntimeError("bad luck")
        if self._troubled and self._is_time():
            self._make_trouble()
        return self._inner.step(actions)

    def _is_time(self) -> bool:
        rows = self._inner.rows()
        if self._trouble == "none" or rows.episode[0] != self._at or rows.ply[0] != 1:
            return False
        if not self._marker:
            return True
        try:
            os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _make_trouble(self) -> None:
        if self._trouble == "raise":
            raise RuntimeError("trouble in the game")
        if self._trouble == "exit":
            os._exit(3)
        if self._trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while self._trouble == "stall":
            time.sleep(0.01)
            if Path(self._marker + ".over").exists():
                return


def count_start(marker: str, most: int) -> None:
    """Raise where so many have started before, be it in another process."""
    for number in range(most):
        try:
            os.close(os.open(f"{marker}.{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return
    raise RuntimeError(f"no more than {most} games start")


def slow_to_start(*, batch: int, seed: int, first_game: int, marker: str) -> Game:
    """Tic-tac-toe that takes workers a second to start with, while the file ``marker`` exists."""
    if batch == 1 and Path(marker).exists():
        time.sleep(1)
    return keisei.make_game("tictactoe", batch=batch, seed=seed, first_game=first_game)


TROUBLED = "games_for_tests:Troubled"
RELAY = "games_for_tests:Relay"


def manager_of(
    game: str = "tictactoe",
    backend: str = "process",
    model: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    env: dict[str, Any] | None = None,
    seed: int = 0,
    leased_slabs: int = 0,
    league: LeaguePlan | None = None,
    first_version: int = 1,
    **parallel: Any,
) -> ParallelManager:
    """A small manager: two tables of four games, slabs of eight steps and two workers, unless said otherwise."""
    settings = {"tables": 2, "games": 4, "horizon": 8, "num_workers": 2, "backend": backend}
    return ParallelManager(
        {"game": game, "options": options or {}, **(env or {})},
        model,
        {**settings, **parallel},
        seed=seed,
        leased_slabs=leased_slabs,
        league=league,
        first_version=first_version,
    )


def digests(manager: ParallelManager, rounds: int = 4, target: int | None = None) -> list[str]:
    """What a few collections give, with the weights changed in between."""
    result = []
    with manager:
        for _ in range(rounds):
            result.append(manager.collect_experiences(target).digest())
            if manager.model is not None:
                nudge(manager)
                manager.sync_model_to_workers()
    return result


def nudge(manager: ParallelManager) -> None:
    """Other weights, the same in every run."""
    assert manager.model is not None
    for parameter in manager.model.parameters():
        parameter.data.mul_(1.125).add_(0.01)


def steps_of(manager: ParallelManager) -> int:
    """Made by all workers since the start."""
    return sum(worker.handle.steps for worker in manager.workers if worker.handle is not None)


def rests(manager: ParallelManager) -> bool:
    """Whether nobody plays, because no slab is free."""
    before = steps_of(manager)
    time.sleep(0.2)
    return steps_of(manager) == before


def sequences_of(manager: ParallelManager, count: int) -> dict[int, list[int]]:
    """The numbers of the slabs that are handed out, by table, until each table has so many."""
    found: dict[int, list[int]] = {table.number: [] for table in manager.tables}
    while min(map(len, found.values())) < count:
        for item in manager.collect_experiences(timeout=20):
            found[item.record.table].append(item.record.sequence)
        manager.release_experiences()
    return found


def players(experiences: Experiences) -> set[int]:
    """The workers that played."""
    return {item.record.worker for item in experiences}


def pids_of(manager: ParallelManager) -> list[int]:
    return [worker.process_id for worker in manager.get_status().workers if worker.process_id is not None]


def kill(pid: int) -> None:
    """Ends a process of a worker. It may be dead already: by a kill before, which the manager has not noticed yet."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for something that must come; the time is only there to end a test that fails. It is not asked again once
    it has come: what collects experiences gives something else then."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found


def worker_processes(pid: int | None = None) -> list[int]:
    """Processes that run workers for a process: its own children and those of its fork server."""
    workers = []
    for child in children_of(pid or os.getpid()):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"forkserver" in command:
            workers += children_of(child)
        elif b"spawn_main" in command:
            workers.append(child)
    return workers


def is_running(pid: int) -> bool:
    """Whether a process is there and not just a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def keisei_mappings() -> int:
    """Shared memory of ours that this process maps."""
    return Path("/proc/self/maps").read_text().count("memfd:keisei")
