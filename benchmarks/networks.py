"""The cost of the built-in networks on this machine: to play, on one thread like a worker, and to learn.

Times are for one position. A network plays with a batch of 64 or 256 positions, and computes the logits of all
actions or only of the legal ones. It learns from minibatches of 1024, as PPO does: unpacking positions, losses,
gradients, Adam, on one thread and on all cores. The residual network is measured with both memory formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.measure import Contender, machine, race, rate_of, widen
from keisei.experience.rollout import Minibatch
from keisei.games import Game, make_game
from keisei.games.contract import ByteArray, IntArray
from keisei.learners.ppo import PPO, PPOConfig
from keisei.machine.cores import usable_cores
from keisei.machine.freed_memory import keep_freed_memory
from keisei.machine.torch_threads import single_threaded
from keisei.policies import ActorCritic, ResidualNet, build_network
from keisei.policies.gather_network import legal_actions
from keisei.policies.sampling import legal_counts

GAMES, EVERY, ROWS = 64, 8, 1024
SECONDS = 0.2
MICROSECONDS = 1e6


class ContiguousResidual(ResidualNet):
    """Stores planes one after the other in memory, as torch does by default, not square by square."""

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.tower(self.stem(inputs))
        return self.policy(features), self.value(features).squeeze(-1)


FULLY_CONNECTED: dict[str, dict[str, Any]] = {
    "mlp 256": {"network": "mlp", "hidden_dim": 256},
    "gather 256": {"network": "gather", "hidden_dim": 256},
    "gather 512": {"network": "gather", "hidden_dim": 512},
}
SLIM: dict[str, dict[str, Any]] = {
    f"slim {channels}x2": {"network": "slim", "channels": channels, "blocks": 2} for channels in (16, 32, 64)
}
RESIDUAL: dict[str, dict[str, Any]] = {
    f"residual {channels}x2{note}": {"network": network, "channels": channels, "blocks": 2}
    for channels in (16, 32, 64)
    for note, network in (("", "residual"), (", contiguous", f"{__name__}:ContiguousResidual"))
}


@dataclass(frozen=True)
class NetworksReport:
    machine: str
    game: str
    parameters: dict[str, int]
    microseconds_per_row: dict[str, dict[str, float]]
    """By network, then by what it does."""


def run(*, game: str, rounds: int, as_json: bool, console: Console) -> None:
    keep_freed_memory()
    positions = make_game(game, batch=GAMES, seed=1)
    batch = _minibatch(positions)
    for_planes = SLIM | RESIDUAL if len(positions.spec.observation.shape) == 3 else {}
    networks = {
        name: build_network(config, positions.spec, seed=1)
        for name, config in (FULLY_CONNECTED | for_planes).items()
    }
    contenders = {
        (name, task): contender
        for name, network in networks.items()
        for task, contender in _tasks(network, positions, batch).items()
    }
    rates = race(
        {"/".join(key): contender for key, contender in contenders.items()}, SECONDS, rounds, console
    )
    times: dict[str, dict[str, float]] = {name: {} for name in networks}
    for name, task in contenders:
        times[name][task] = MICROSECONDS / rates[f"{name}/{task}"]
    sizes = {name: sum(weight.numel() for weight in net.parameters()) for name, net in networks.items()}
    report = NetworksReport(machine(), game, sizes, times)
    if as_json:
        console.print_json(json.dumps(asdict(report)))
    else:
        widen(console)
        console.print(_table(report))


def _table(report: NetworksReport) -> Table:
    tasks = list(next(iter(report.microseconds_per_row.values())))
    table = Table(
        "network",
        "parameters",
        *tasks,
        title=f"{report.machine}; {report.game}, µs a position",
        title_justify="left",
    )
    for name, times in report.microseconds_per_row.items():
        table.add_row(name, f"{report.parameters[name]:,}", *(f"{times[task]:.1f}" for task in tasks))
    return table


def _tasks(network: ActorCritic, game: Game, batch: Minibatch) -> dict[str, Contender]:
    observations, legal = game.unpack(batch.packed)
    inputs, actions = torch.from_numpy(observations), torch.from_numpy(legal_actions(legal))
    tasks: dict[str, Callable[[], int]] = {
        "play 64": partial(_play, network, inputs[:64]),
        "play 256": partial(_play, network, inputs[:256]),
        "play 256, legal only": partial(_play, network, inputs[:256], actions[:256]),
        "learn, 1 thread": partial(_learn, PPO(network, game, PPOConfig()), batch),
    }
    cores = usable_cores()
    if cores > 1:
        learner = PPO(network, game, PPOConfig(), parts=cores, threads=cores)
        tasks[f"learn, {cores} threads"] = partial(_learn, learner, batch)
    return {task: partial(_rate, work) for task, work in tasks.items()}


def _rate(work: Callable[[], int], seconds: float) -> float:
    with single_threaded():
        work()  # a first round, to warm up caches and threads
        return rate_of(work, seconds)


@torch.inference_mode()
def _play(network: ActorCritic, observations: Tensor, actions: Tensor | None = None) -> int:
    network(observations, actions)
    return len(observations)


def _learn(learner: PPO, batch: Minibatch) -> int:
    learner.step(batch, progress=0)
    return len(batch)


def _minibatch(game: Game) -> Minibatch:
    """Gives positions of random games at all stages, with legal actions."""
    packed: list[ByteArray] = []
    actions: list[IntArray] = []
    counts: list[IntArray] = []
    while sum(len(rows) for rows in packed) < ROWS:
        for _ in range(EVERY):
            game.step(game.random_actions())
        packed.append(game.pack())
        actions.append(game.random_actions())
        counts.append(legal_counts(game.legal()))
    noise = np.random.default_rng(1).standard_normal((3, ROWS)).astype(np.float32)
    log_probs = -np.log(np.concatenate(counts)[:ROWS]).astype(np.float32)
    return Minibatch(np.concatenate(packed)[:ROWS], np.concatenate(actions)[:ROWS], log_probs, *noise)
