"""Central inference: workers only step games, and the learner's process makes the decisions.

On a CPU, each question gets its own forward pass. On a GPU, several tables share one pass: the batch has a fixed
number of places, and each table always uses the same place. In both cases the shape of the batch never changes. So
the result of a row depends on that row alone, even if other workers ask or fail.
"""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import PolicyError
from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, ByteArray, FloatArray, Game
from keisei.games.randomness import Stream, keyed_uniform, keyed_word
from keisei.machine.torch_threads import single_threaded
from keisei.parallel.arena import Arena
from keisei.parallel.messages import Question
from keisei.parallel.plan import WorkerPlan
from keisei.policies.behaviour import Play, epsilon_of_games
from keisei.policies.finite import blame_observations
from keisei.policies.gather_network import every_action
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import sample

GATHER_SECONDS = 0.005
"""How long a question waits for questions of other workers, so that one batch answers several."""


@dataclass(frozen=True, slots=True)
class _Asked:
    question: Question
    epoch: int
    since: float


class CentralInference:
    """Answers questions: reads positions from slabs, and writes the decisions into the same slabs."""

    def __init__(
        self, network: ActorCritic, version: int, game: Game, plan: WorkerPlan, arena: Arena, places: int
    ) -> None:
        # This is a copy: the learner's network changes during an update, and is published after it.
        self._network = deepcopy(network).eval()
        self._version = version
        self._settings: Play = ()
        self._game, self._plan, self._arena = game, plan, arena
        self._slots, self._places = arena.size.shape.slots, places
        spec, rows = game.spec, places * arena.size.shape.slots
        self._observations = np.zeros((rows, *spec.observation.shape), spec.observation.dtype)
        self._legal = np.ones((rows, spec.num_actions), np.bool_)
        self._uniforms = np.zeros(rows, np.float64)
        self._asked: dict[int, _Asked] = {}

    def take(self, model: nn.Module, version: int, settings: Play) -> None:
        """Uses these weights from now on."""
        self._network.load_state_dict(model.state_dict())
        self._version, self._settings = version, settings

    def note(self, worker: int, question: Question, epoch: int) -> None:
        self._asked[worker] = _Asked(question, epoch, time.monotonic())

    def forget(self, worker: int) -> None:
        self._asked.pop(worker, None)

    @property
    def is_asked(self) -> bool:
        return bool(self._asked)

    def answer(self, could_ask: int) -> list[int]:
        """Answers the open questions once no fuller batch is expected. Returns the workers that have an answer now.
        ``could_ask`` is the number of workers that are playing."""
        answered: list[int] = []
        while self._asked and not self._would_wait(could_ask - len(answered)):
            batch = self._next_batch()
            self.decide(list(batch.values()))
            answered += batch
            for worker in batch:
                del self._asked[worker]
        return answered

    def _would_wait(self, others: int) -> bool:
        """Checks if a fuller batch may still come."""
        oldest = min(asked.since for asked in self._asked.values())
        is_full = len(self._next_batch()) >= min(self._places, others)
        return not is_full and time.monotonic() - oldest < GATHER_SECONDS

    def _next_batch(self) -> dict[int, _Asked]:
        """Picks questions whose tables have different places, oldest first."""
        batch: dict[int, _Asked] = {}
        taken: set[int] = set()
        for worker, asked in sorted(self._asked.items(), key=lambda item: item[1].since):
            place = asked.question.table % self._places
            if place not in taken:
                taken.add(place)
                batch[worker] = asked
        return batch

    def decide_now(self, question: Question, epoch: int) -> None:
        """Answers an inline worker in the middle of its step."""
        self.decide([_Asked(question, epoch, 0.0)])

    @torch.inference_mode()
    def decide(self, batch: list[_Asked]) -> None:
        """Runs one forward pass. Places without a question keep their last input."""
        for asked in batch:
            self._read(asked)
        logits, values = self._forward(self._observations, self._legal)
        for asked in batch:
            question = asked.question
            place = self._place(question.table)
            try:
                actions, log_probs = sample(
                    logits[place], self._legal[place], self._uniforms[place],
                    *self._freely(question.table),
                )  # fmt: skip
            except PolicyError:
                blame_observations(self._game.spec, self._observations[place])
                raise
            slab, step = self._arena.slab(question.slab), question.step
            acting = slab.acting[step]
            slab.action[step, acting], slab.log_prob[step, acting] = actions[acting], log_probs[acting]
            slab.value[step, acting] = values[place][acting]
            slab.version[step, acting] = self._version

    @torch.inference_mode()
    def value_ends(self, slab: Slab) -> None:
        """Writes the values that are used to bootstrap: at the end of a slab, and where games were cut off."""
        end = slab.shape.steps
        slab.value[end, slab.acting[end]] = self._values(slab.packed[end, slab.acting[end]])
        cut = slab.finished("final_value") & (slab.final_seat >= 0)
        if cut.any():
            slab.final_value[cut] = self._values(slab.final_packed[cut])

    def _values(self, packed: ByteArray) -> FloatArray:
        """Evaluates positions in batches of one shape, so that the results do not depend on their number."""
        observations = np.zeros((self._slots, *self._game.spec.observation.shape), self._observations.dtype)
        legal = np.ones((self._slots, self._game.spec.num_actions), np.bool_)
        values = np.zeros(len(packed), np.float32)
        for start in range(0, len(packed), self._slots):
            part = packed[start : start + self._slots]
            observations[: len(part)], legal[: len(part)] = self._game.unpack(part)
            values[start : start + len(part)] = self._forward(observations, legal)[1][: len(part)]
            if not np.isfinite(values).all():
                blame_observations(self._game.spec, observations)
        return values

    def _forward(self, observations: Array, legal: BoolArray) -> tuple[Tensor, FloatArray]:
        """Computes the logits of all actions, and values. The values of a Q network depend on the legal actions."""
        seen = torch.from_numpy(observations).to(self._device)
        is_q = self._network.meaning == "q"
        listed = torch.from_numpy(every_action(legal)).to(self._device) if is_q else None
        # One thread, as in a worker: the sums are then the same on any number of cores.
        with single_threaded():
            logits, values = self._network(seen, listed)
        return logits.float().cpu(), values.float().cpu().numpy()

    @property
    def _device(self) -> torch.device:
        return next(self._network.parameters()).device

    def _freely(self, table: int) -> tuple[float, float | FloatArray]:
        """Gets the temperature of a table, and its epsilon: one number, or one for each slot."""
        (own,) = self._plan.play_at(table, self._settings)
        games = self._plan.games_of(table)
        epsilon = epsilon_of_games(own.epsilon, own.spread, games.numbers, games.total)
        seats = self._slots // games.count
        return own.temperature, np.repeat(epsilon, seats) if isinstance(epsilon, np.ndarray) else epsilon

    def _place(self, table: int) -> slice:
        place = table % self._places
        return slice(place * self._slots, (place + 1) * self._slots)

    def _read(self, asked: _Asked) -> None:
        question = asked.question
        slab, step, place = self._arena.slab(question.slab), question.step, self._place(question.table)
        acting = slab.acting[step]
        if acting.all():
            self._game.unpack(slab.packed[step], self._observations[place], self._legal[place])
        else:
            seen, legal = self._game.unpack(slab.packed[step][acting])
            self._observations[place][acting], self._legal[place][acting] = seen, legal
        games = np.arange(self._slots) // (self._slots // self._plan.games) + self._plan.first_game(
            question.table
        )
        seed = keyed_word(self._plan.seed, asked.epoch) >> 1
        self._uniforms[place] = keyed_uniform(
            seed, games, slab.episode[step], slab.ply[step], Stream.POLICY, slab.seat[step]
        )
