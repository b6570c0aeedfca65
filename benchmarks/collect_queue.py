"""A common first design for collecting, which Keisei started from. Each worker process plays one game with its own
network. It keeps a dict for each step, with float planes and mask as tensors, and puts them, pickled, into one
``multiprocessing.Queue`` that the learner reads.
"""

from __future__ import annotations

import math
import pickle
import queue
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from benchmarks.collect_limits import context
from keisei.errors import KeiseiError
from keisei.games import make_game
from keisei.policies.networks import ModelConfig, build_network

Message = Literal["steps", "episode"]
"""The content of a message: a list of 64 dicts, one for each step; or a whole episode, stacked field by field."""
STEPS_A_MESSAGE = 64
QUEUE_SIZE = 100

Choose = Callable[[Tensor, Tensor], tuple[int, float, float]]
"""Planes and mask of one position in; action, log-probability and value out."""


class QueueOfDicts:
    def __init__(self, game: str, model: ModelConfig | None, message: Message, workers: int) -> None:
        start = context()
        self._queue = start.Queue(QUEUE_SIZE)
        self._running, self._ending = start.Event(), start.Event()
        self._processes = [
            start.Process(
                target=_play_games,
                args=(game, model, message, worker, self._queue, self._running, self._ending),
                daemon=True,
            )
            for worker in range(workers)
        ]
        for process in self._processes:
            process.start()

    def __call__(self, seconds: float) -> float:
        self._running.set()
        self._demand()  # The start is not measured.
        received, started = 0, time.perf_counter()
        while (last := time.perf_counter()) - started < seconds or not received:
            received += self._demand()
        self._running.clear()
        while self._take(timeout=0.05):
            pass
        return received / (last - started)

    def _demand(self) -> int:
        if count := self._take(timeout=30.0):
            return count
        raise KeiseiError("no worker of this benchmark sent anything for 30 s; an error may be printed above")

    def _take(self, timeout: float) -> int:
        """Gives the number of transitions in the next message; 0 if none comes."""
        try:
            message = self._queue.get(timeout=timeout)
        except queue.Empty:
            return 0
        # Our own processes have just written it, and pickle is what is measured here.
        experiences = pickle.loads(message)  # noqa: S301
        return len(experiences if isinstance(experiences, list) else experiences["action"])

    def close(self) -> None:
        self._ending.set()
        self._running.set()
        while any(process.is_alive() for process in self._processes):
            self._take(timeout=0.05)
        self._queue.close()
        self._queue.join_thread()


def _play_games(
    game: str,
    model: ModelConfig | None,
    message: Message,
    worker: int,
    experience: Any,
    running: Any,
    ending: Any,
) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(worker)
    random.seed(worker)
    for batch in _messages(game, model, message, worker):
        running.wait()
        if ending.is_set():
            return
        experience.put(pickle.dumps(batch))


def _messages(name: str, model: ModelConfig | None, message: Message, worker: int) -> Iterator[Any]:
    steps: list[dict[str, Any]] = []
    for step in _steps(name, model, worker):
        steps.append(step)
        if message == "episode" and step["done"]:
            yield {field: _stacked([kept[field] for kept in steps]) for field in step}
            steps = []
        elif message == "steps" and len(steps) == STEPS_A_MESSAGE:
            yield steps
            steps = []


def _stacked(values: list[Any]) -> Tensor:
    return torch.stack(values) if isinstance(values[0], Tensor) else torch.tensor(values)


def _steps(name: str, model: ModelConfig | None, worker: int) -> Iterator[dict[str, Any]]:
    """Plays one game after the other, with a dict for each step."""
    game = make_game(name, batch=1, seed=1, first_game=worker)
    choose = _random if model is None else _network_player(model, game)
    while True:
        planes, mask = torch.from_numpy(game.observe()), torch.from_numpy(game.legal())
        with torch.inference_mode():
            action, log_prob, value = choose(planes, mask)
        step = game.step(np.array([action]))
        yield {
            "obs": planes[0].float(),
            "action": action,
            "reward": float(step.rewards[0, 0]),
            "log_prob": log_prob,
            "value": value,
            "done": bool(step.done[0]),
            "legal_mask": mask[0],
        }


def _random(planes: Tensor, mask: Tensor) -> tuple[int, float, float]:
    legal = np.flatnonzero(mask[0].numpy())
    return int(random.choice(legal)), -math.log(len(legal)), 0.0


def _network_player(model: ModelConfig, game: Any) -> Choose:
    network = build_network(model, game.spec, seed=1).eval()

    def choose(planes: Tensor, mask: Tensor) -> tuple[int, float, float]:
        logits, value = network(planes)
        chances = torch.distributions.Categorical(
            logits=logits.masked_fill(~mask, -torch.inf), validate_args=False
        )
        action = chances.sample()
        return int(action), float(chances.log_prob(action)), float(value)

    return choose
