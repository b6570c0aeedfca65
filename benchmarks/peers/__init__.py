"""Other libraries' collectors on the same games and with the same network, with the settings of the published
comparison if it has them. They run in their own process, and only if they are installed (the extra ``peers``).

Network, sampling and dummy game are ours in all of them. So only the way from the games to the learner is compared.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from keisei.errors import KeiseiError

START_SECONDS = 120.0


class PeerMissingError(KeiseiError):
    """A peer is not installed, or does not run here."""


@dataclass(frozen=True)
class Peer:
    name: str
    game: str
    policy: str
    workers: int
    games: int
    """Games of each worker."""
    module: str
    """A module of this package; its ``Collector(peer)`` gives a contender."""
    needs: str
    """The package to install."""
    style: str
    """The module's way to collect."""
    threads: int = 1
    """Threads of torch, in the process that has the network."""

    def start(self) -> RunningPeer:
        return RunningPeer(self)


SB3 = ("sb3", "stable_baselines3")
GYMNASIUM = ("gymnasium_", "gymnasium")
TORCHRL = ("torchrl_", "torchrl")


def _peers() -> Iterator[Peer]:
    for name, library in (("SB3", SB3), ("gymnasium", GYMNASIUM)):
        # Two threads are the published best setting. If others use the cores too, one thread is much faster.
        for threads in (1, 2):
            yield _peer(
                f"{name}, in process, threads: {threads}", "network", "inprocess", 1, 64, library, threads
            )
        yield _peer(f"{name}, in process", "random", "inprocess", 1, 32, library)
        vector = "SubprocVecEnv" if library is SB3 else "AsyncVectorEnv"
        for policy in ("network", "random"):
            yield _peer(f"{name}, {vector}", policy, "subprocess", 2, 1, library)
    for policy, games in (("network", 32), ("random", 8)):
        yield _peer("TorchRL, two collectors", policy, "subprocess", 2, games, TORCHRL)
    for name, style, workers, games, library in (
        ("gymnasium with cshogi, in process", "inprocess", 1, 32, GYMNASIUM),
        ("gymnasium with cshogi, AsyncVectorEnv", "subprocess", 8, 1, GYMNASIUM),
        ("SB3 with cshogi, SubprocVecEnv", "subprocess", 8, 1, SB3),
    ):
        yield _peer(name, "random", style, workers, games, library, game="shogi")


def _peer(
    name: str,
    policy: str,
    style: str,
    workers: int,
    games: int,
    library: tuple[str, str],
    threads: int = 1,
    game: str = "dummy",
) -> Peer:
    module, package = library
    return Peer(f"{name}, {workers} x {games}", game, policy, workers, games, module, package, style, threads)


PEERS = tuple(_peers())


class RunningPeer:
    """A peer in its own process, so its settings of torch and signals do not affect others."""

    def __init__(self, peer: Peer) -> None:
        for package in (peer.needs, *(["cshogi"] if peer.game == "shogi" else [])):
            if importlib.util.find_spec(package) is None:
                raise PeerMissingError(f"{package} is not installed: pip install 'keisei[peers]'")
        self._peer = peer
        start = multiprocessing.get_context("spawn")
        self._pipe, theirs = start.Pipe()
        # Not a daemon, since daemons cannot have children, and most peers have some.
        self._process = start.Process(target=_serve, args=(peer, theirs), daemon=False)
        self._process.start()
        theirs.close()
        try:
            self._answer()
        except PeerMissingError:
            self.close()
            raise

    def __call__(self, seconds: float) -> float:
        self._pipe.send(seconds)
        return self._answer()

    def _answer(self) -> float:
        if not self._pipe.poll(START_SECONDS):
            raise PeerMissingError(f"it did nothing for {START_SECONDS:g} s")
        try:
            answer: float | str = self._pipe.recv()
        except EOFError:
            raise PeerMissingError("its process died; an error may be printed above") from None
        if isinstance(answer, str):
            raise PeerMissingError(answer)
        return answer

    def close(self) -> None:
        self._pipe.close()
        self._process.join(20)
        self._process.kill()
        self._process.join(5)


def _serve(peer: Peer, pipe: Connection) -> None:
    import torch

    torch.set_num_threads(peer.threads)
    collect: Callable[[float], float] | None = None
    try:
        module: Any = importlib.import_module(f"benchmarks.peers.{peer.module}")
        collect = module.Collector(peer)
        pipe.send(0.0)
        while True:
            pipe.send(collect(pipe.recv()))
    except (EOFError, ConnectionError):
        return
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
    finally:
        close = getattr(collect, "close", None)
        if close is not None:
            close()
