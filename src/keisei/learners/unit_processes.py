"""Trains agents in processes. A process gets the state of an agent and its samples, and gives the new state back.

Processes keep nothing, so one that dies or hangs costs only its last training: it is ended, and its agent tries again.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.experience.rollout import RolloutView
from keisei.games.contract import Array, FloatArray
from keisei.learners.agent_plan import AgentPlan
from keisei.learners.agent_units import AgentLearner, Alone, Outcome, failure_of
from keisei.learners.dqn import DQN
from keisei.machine.new_processes import (
    deaf_to_terminal,
    end_with_parent,
    main_left_out,
    own_fork_server,
)
from keisei.machine.start_method import chosen_start_method
from keisei.machine.torch_threads import stay_on_one_thread
from keisei.runs.json_values import Json
from keisei.runs.state import State

__all__ = ["UnitProcesses"]


PRELOAD = ["keisei.learners.unit_processes"]
"""Modules that the fork server imports once, so that new processes start at once."""


class UnitProcesses:
    """Runs agents in up to ``processes`` processes. They start with the first training and end with ``close``."""

    def __init__(self, plans: Sequence[AgentPlan], processes: int, timeout: float) -> None:
        self._plans = tuple(plans)
        self._processes, self.timeout = processes, timeout
        self._pool: ProcessPoolExecutor | None = None

    def train(self, units: Sequence[Alone], views: Mapping[int, Any], progress: float) -> dict[int, Outcome]:
        """Trains all agents and waits for them."""
        outcomes: dict[int, Outcome] = {unit.agent: {} for unit in units if unit.rests(views)}
        handed: dict[int, Future[_Result]] = {}
        for unit in units:
            if unit.agent in outcomes:
                continue
            try:
                task = _Task.of(unit, views[unit.agent], progress)
                handed[unit.agent] = self._submit(task)
            except Exception as error:
                outcomes[unit.agent] = failure_of(unit.agent, error)
        for unit in units:
            if unit.agent in handed:
                outcomes[unit.agent] = self._outcome(unit, handed[unit.agent])
        return outcomes

    def close(self) -> None:
        """Ends the processes."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, task: _Task) -> Future[_Result]:
        """Hands a task over. The pool starts a process for it if none is free."""
        forks = chosen_start_method() == "forkserver"
        with (
            deaf_to_terminal(),
            main_left_out(),
            own_fork_server(PRELOAD) if forks else nullcontext(),
        ):
            return self._open().submit(_train, task)

    def _open(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context(chosen_start_method())
            self._pool = ProcessPoolExecutor(self._processes, context, _prepare, (self._plans,))
        return self._pool

    def _outcome(self, unit: Alone, future: Future[_Result]) -> Outcome:
        try:
            result = future.result(self.timeout)
        except TimeoutError:
            self._kill()
            return f"its training has not ended after {self.timeout:g} s, so its process was ended; it tries again"
        except BrokenExecutor:
            self.close()
            return "the process that trained it has died; it tries again"
        except Exception as error:
            return failure_of(unit.agent, error)
        unit.learner.restore(State(_tensors(result.tensors), result.document))
        return result.numbers

    def _kill(self) -> None:
        """Ends processes that do not answer. Trainings of others in them are lost too, and tried again."""
        if self._pool is None:
            return
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self.close()


@dataclass(frozen=True)
class _Task:
    """All that a training depends on."""

    agent: int
    progress: float
    tensors: Mapping[str, Mapping[str, Array]]
    document: Json
    samples: Sequence[ReplaySample] | RolloutView

    @classmethod
    def of(cls, unit: Alone, view: Any, progress: float) -> _Task:
        state = unit.learner.state()
        samples = _drawn(unit.learner, view, progress) if isinstance(unit.learner, DQN) else view
        return cls(unit.agent, progress, _arrays(state), state.document, samples)


@dataclass(frozen=True)
class _Result:
    numbers: Mapping[str, float]
    tensors: Mapping[str, Mapping[str, Array]]
    document: Json


def _drawn(learner: DQN, view: ReplayView, progress: float) -> list[ReplaySample]:
    """Draws the samples that the learner would draw itself, step by step."""
    return [
        view.sample(learner.config.minibatch_size, learner.seed, learner.steps + step, progress)
        for step in range(view.steps())
    ]


class _Handed:
    """Samples that came with a task, in order."""

    def __init__(self, samples: Sequence[ReplaySample]) -> None:
        self._samples = list(samples)

    def steps(self) -> int:
        return len(self._samples)

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        return self._samples.pop(0)

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        """Does nothing, since settings refuse priorities together with processes."""


# In the processes.

_learners: dict[int, AgentLearner] = {}
_plans: tuple[AgentPlan, ...] = ()


def _prepare(plans: tuple[AgentPlan, ...]) -> None:
    global _plans
    _plans = plans
    end_with_parent()
    stay_on_one_thread()


def _train(task: _Task) -> _Result:
    """Trains one agent exactly as the process that sent it would."""
    if task.agent not in _learners:
        plan = _plans[task.agent]
        _learners[task.agent] = plan.build(plan.make_game())
    learner = _learners[task.agent]
    learner.restore(State(_tensors(task.tensors), task.document))
    view: Any = task.samples if isinstance(task.samples, RolloutView) else _Handed(task.samples)
    numbers = learner.learn(view, task.progress).owners[0]
    state = learner.state()
    return _Result(numbers, _arrays(state), state.document)


def _arrays(state: State) -> dict[str, dict[str, Array]]:
    """Converts tensors to plain arrays, since torch would send tensors through files."""
    return {
        group: {name: tensor.numpy() for name, tensor in of.items()} for group, of in state.tensors.items()
    }


def _tensors(arrays: Mapping[str, Mapping[str, Array]]) -> dict[str, dict[str, Tensor]]:
    return {
        group: {name: torch.from_numpy(np.array(array)) for name, array in of.items()}
        for group, of in arrays.items()
    }
