"""Measures where the time of training goes. It runs the loop without a run directory.

The loop reports how long it collects, prepares, learns and publishes. The workers report what they did meanwhile.
Hooks on the network and the optimiser measure the steps of the learner, so its own code needs no clock.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from keisei.errors import ConfigError
from keisei.machine.torch_threads import single_threaded
from keisei.parallel.status import ManagerStatus
from keisei.parallel.timeline import Timeline
from keisei.runs.metric_names import GRADIENT_STEPS
from keisei.runs.state_tensors import weights_digest
from keisei.training.events import Counters, Update
from keisei.training.regimes.loop import AnyParts, Pace
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig
from keisei.training.wiring import connect

__all__ = ["LearnerTime", "Mode", "Profile", "WorkerTime", "placed", "profile"]

Mode = Literal["serial", "parallel"]


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """What a worker did, in seconds, as the mean of all workers. Synchronous workers are measured while the learner
    collects, asynchronous ones all the time."""

    games: float
    policy: float
    transport: float
    """All other work for a slab: reading weights, writing slabs, checksums, saved states."""
    waiting: float
    """Waiting for orders, for other workers, and for the learner. For asynchronous workers it includes the
    unfinished slabs at the end."""


@dataclass(frozen=True, slots=True)
class LearnerTime:
    """What the learner did while it learned, in seconds."""

    unpacking: float
    """Choosing a minibatch and unpacking its positions."""
    forward: float
    losses: float
    """From the network's outputs to their gradients."""
    backward: float
    """The backward pass through the network, clipping included."""
    stepping: float
    """The optimiser."""
    reporting: float
    """Computing the means of all minibatches."""


@dataclass(frozen=True)
class Profile:
    """The times of training, in seconds, from the first order to the last published weights."""

    config: TrainConfig
    parameters: int
    """Parameters of the network."""
    starting: float
    """Time to build the parts and start the workers; not part of ``wall``."""
    wall: float
    collecting: float
    preparing: float
    """Time to compute advantages and to merge slabs."""
    learning: float
    publishing: float
    workers: WorkerTime
    learner: LearnerTime
    learner_cores: float
    """Cores that this process kept busy on average, from the first forward pass of an update to its last step."""
    updates: int
    transitions: int
    gradient_steps: int
    digest: str
    """The digest of the final weights."""
    timeline: Timeline
    """The timeline, with the parts of each gradient step."""

    @property
    def rest(self) -> float:
        """Time for counting games and for the loop itself."""
        return self.wall - self.collecting - self.preparing - self.learning - self.publishing

    @property
    def transitions_per_second(self) -> float:
        return self.transitions / self.wall


def placed(config: TrainConfig, mode: Mode) -> TrainConfig:
    """Profiles the same work in this process alone, or with workers in processes. ``config`` need not be resolved."""
    config = config.resolved()
    if mode == "serial" and config.asynchronous:
        raise ConfigError(
            "a serial profile does exactly the work of a synchronous run, but parallel.mode = async: take --mode "
            "parallel, or --set parallel.mode=sync"
        )
    placement = {"backend": "process" if mode == "parallel" else "inline", "scaling": "fixed"}
    return config.model_copy(update={"parallel": config.parallel.model_copy(update=placement)}).placed()


def profile(config: TrainConfig, watch: Callable[[Update], None] = lambda update: None) -> Profile:
    """Trains with a resolved ``config`` for ``run.steps``, from new weights. Nothing is written, and nothing is
    left running."""
    if config.run.steps is None:
        raise ConfigError("run.steps is null: a profile ends after a number of transitions; set it")
    with single_threaded():
        began = time.monotonic()
        parts = connect(config)
        started = time.monotonic()
        try:
            with _LearnerClock(parts, compiled=config.run.compile).ticking() as clock:
                updates = []
                for update in regime_of(config).loop(parts, Pace(config.run.steps), Counters()):
                    clock.end_of_update()
                    updates.append(update)
                    watch(update)
            ended = time.monotonic()
            return _profile(config, parts, clock, updates, started - began, ended - started)
        finally:
            parts.manager.stop_workers()


def _profile(
    config: TrainConfig,
    parts: AnyParts,
    clock: _LearnerClock,
    updates: Sequence[Update],
    starting: float,
    wall: float,
) -> Profile:
    collecting = math.fsum(update.collection.seconds for update in updates)
    preparing = math.fsum(update.prepare_seconds for update in updates)
    publishing = math.fsum(update.publish_seconds for update in updates)
    status = parts.manager.get_status()
    at_once = 1 if config.parallel.backend == "inline" else len(status.workers)
    network = parts.learner.behaviour(1.0).network
    return Profile(
        config=config,
        parameters=sum(weight.numel() for weight in network.parameters()),
        starting=starting,
        wall=wall,
        collecting=collecting,
        preparing=preparing,
        learning=math.fsum(update.learn_seconds for update in updates) - preparing - publishing,
        publishing=publishing,
        workers=_worker_time(status, at_once, wall if config.asynchronous else collecting),
        learner=LearnerTime(**{name: clock.seconds[name] for name in LearnerTime.__slots__}),
        learner_cores=clock.cores,
        updates=len(updates),
        transitions=sum(update.collection.transitions for update in updates),
        gradient_steps=sum(map(_gradient_steps, updates)),
        digest=weights_digest(parts.learner.state().tensors["model"]),
        timeline=parts.manager.timeline,
    )


def _gradient_steps(update: Update) -> int:
    """Counts the gradient steps of all owners together; 0 if the learner does not report them."""
    return sum(int(numbers.get(GRADIENT_STEPS, 0)) for numbers in update.report.owners.values())


def _worker_time(status: ManagerStatus, at_once: int, window: float) -> WorkerTime:
    """Computes the times of workers. ``at_once`` workers play at a time: all of them, or one after the other in
    this process."""
    played = games = policy = 0.0
    for worker in status.workers:
        played += worker.seconds / at_once
        games += worker.seconds * worker.game_share / at_once
        policy += worker.seconds * worker.policy_share / at_once
    return WorkerTime(games, policy, played - games - policy, max(0.0, window - played))


@runtime_checkable
class Watchable(Protocol):
    """A learner with one network and one optimiser, which can have hooks."""

    network: nn.Module
    optimizer: Optimizer


class _End(NamedTuple):
    """The end of one part of a gradient step."""

    part: str
    at: float
    busy: float
    """The CPU time of this process so far, over all threads."""


class _LearnerClock:
    """Notes when each part of a gradient step ends. The next part begins there, so no time is lost. If several
    threads share a minibatch, it follows the first, which waits for the others before the optimiser's step. If that
    thread takes several parts of a minibatch, a part's backward pass ends with its last gradient."""

    def __init__(self, parts: AnyParts, *, compiled: bool) -> None:
        """If the network is ``compiled``, its hooks are kept out of the compiled code."""
        if not isinstance(parts.learner, Watchable):
            raise ConfigError(
                f"{type(parts.learner).__name__} has no network and optimiser to put a clock on"
            )
        self._learner: Watchable = parts.learner
        self._compiled = compiled
        self._timeline = parts.manager.timeline
        self._on_cuda = next(self._learner.network.parameters()).is_cuda
        self._thread = threading.get_ident()
        self._ends: list[_End] = []
        self._last_gradient: _End | None = None
        self._elapsed = self._busy = 0.0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Seconds, by the fields of ``LearnerTime``."""

    @contextmanager
    def ticking(self) -> Iterator[_LearnerClock]:
        network, optimizer = self._learner.network, self._learner.optimizer
        uncompiled: Callable[[Any], Any] = torch.compiler.disable if self._compiled else lambda hook: hook
        hooks = [
            network.register_forward_pre_hook(uncompiled(lambda *_: self._end_in_training("unpacking"))),
            network.register_forward_hook(uncompiled(self._after_forward)),
            *self._weight_hooks(),
            optimizer.register_step_pre_hook(lambda *_: self._end("backward")),
            optimizer.register_step_post_hook(lambda *_: self._end("stepping")),
        ]
        try:
            yield self
        finally:
            for hook in hooks:
                hook.remove()

    def _weight_hooks(self) -> Iterator[RemovableHandle]:
        for weight in self._learner.network.parameters():
            if weight.requires_grad:
                yield weight.register_hook(self._on_weight)  # type: ignore[no-untyped-call]

    def end_of_update(self) -> None:
        """Divides the last learning span of the loop by the noted times."""
        span = next(event for event in reversed(self._timeline.events) if event.name == "learn")
        assert span.seconds is not None
        began = span.started
        for part, ended in [*(end[:2] for end in self._ends), ("reporting", began + span.seconds)]:
            self.seconds[part] += ended - began
            self._timeline.span("learner", part, began, ended - began)
            began = ended
        if not self._ends:  # nothing was learned, since a replay still fills
            return
        first, last = self._ends[0], self._ends[-1]
        self._elapsed += last.at - first.at
        self._busy += last.busy - first.busy
        self._ends.clear()

    @property
    def cores(self) -> float:
        return self._busy / self._elapsed if self._elapsed else 0.0

    def _end(self, part: str) -> None:
        if threading.get_ident() != self._thread:
            return
        if self._on_cuda:
            torch.cuda.synchronize()  # the device works on after the call, so wait to count its time here
        self._ends.append(_End(part, time.monotonic(), time.process_time()))

    def _end_in_training(self, part: str) -> None:
        """Ignores calls while experience is prepared, since V-trace uses the network too."""
        if not self._learner.network.training:
            return
        if part == "unpacking" and self._ends and self._ends[-1].part == "losses" and self._last_gradient:
            self._ends.append(self._last_gradient)  # of the part before, in the same minibatch
        self._end(part)

    def _after_forward(self, network: Any, inputs: Any, outputs: tuple[Tensor, ...]) -> None:
        self._end_in_training("forward")
        for output in outputs:
            if output.requires_grad:
                output.register_hook(self._on_gradient)  # type: ignore[no-untyped-call]

    def _on_gradient(self, gradient: Tensor) -> None:
        """Notes the first gradient, which ends the losses and begins the backward pass of the network."""
        if threading.get_ident() == self._thread and self._ends[-1].part == "forward":
            self._end("losses")

    def _on_weight(self, gradient: Tensor) -> None:
        if threading.get_ident() == self._thread:
            self._last_gradient = _End("backward", time.monotonic(), time.process_time())
