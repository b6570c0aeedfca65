"""Central inference: workers only step games, and one batch in the learner's process decides for all of them.

The batch has a fixed place for every worker, so its shape never changes: a row's numbers then depend on that
row alone, and the same run gives the same bits again, also when a worker is replaced in the middle of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from keisei.experience.slab import Slab
from keisei.games.contract import Array, ByteArray, FloatArray, Game
from keisei.games.randomness import Stream, keyed_uniform, keyed_word
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.crew import Member
from keisei.parallel.messages import Question
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import sample

GATHER_SECONDS = 0.005
"""How long a question waits for those of other workers, so that one batch answers all."""


class CentralInference:
    """Answers questions: reads positions from slabs, and writes decisions beside them."""

    def __init__(self, network: ActorCritic, version: int, game: Game, slots: int, workers: int) -> None:
        # A network of its own: the learner's changes while it learns, and is published when it is whole.
        self._network = deepcopy(network).eval()
        self._version = version
        self._threads = torch.get_num_threads()
        self._game = game
        self._slots = slots
        """Rows of one worker."""
        spec = game.spec
        self._observations = np.zeros((0, *spec.observation.shape), spec.observation.dtype)
        self._legal = np.ones((0, spec.num_actions), np.bool_)
        self._uniforms = np.zeros(0, np.float64)
        self._asked: dict[int, tuple[Question, float]] = {}
        self._grow(workers)

    def note(self, member: Member, question: Question) -> None:
        self._grow(member.worker + 1)
        self._asked[member.worker] = (question, time.monotonic())

    def forget(self, member: Member) -> None:
        self._asked.pop(member.worker, None)

    @property
    def is_asked(self) -> bool:
        return bool(self._asked)

    def answer(self, members: Iterable[Member]) -> list[Member]:
        """Decide for all that asked, once nobody else is about to; gives who has an answer now."""
        askers = [member for member in members if member.worker in self._asked]
        others = [
            member for member in members
            if member.orders and member.handle is not None and member.ready
            and member.worker not in self._asked
        ]  # fmt: skip
        if not askers:
            return []
        oldest = min(since for _, since in self._asked.values())
        if others and time.monotonic() - oldest < GATHER_SECONDS:
            return []
        self.decide({member.worker: (member, self._asked[member.worker][0]) for member in askers})
        for member in askers:
            del self._asked[member.worker]
        return askers

    @torch.inference_mode()
    def decide(self, questions: dict[int, tuple[Member, Question]]) -> None:
        """One batch for all questions. Places of workers that did not ask hold what they last asked about."""
        for worker, (member, question) in questions.items():
            self._grow(worker + 1)
            self._read(worker, member, question)
        logits, values = self._forward(self._observations)
        for worker, (member, question) in questions.items():
            place = self._place(worker)
            actions, log_probs = sample(
                logits[place], self._legal[place], self._uniforms[place],
                temperature=member.plan.temperature, epsilon=member.plan.epsilon,
            )  # fmt: skip
            slab, step = member.memory.slab(question.slab), question.step
            acting = slab.acting[step]
            slab.action[step, acting], slab.log_prob[step, acting] = actions[acting], log_probs[acting]
            slab.value[step, acting] = values[place][acting]
            slab.version[step, acting] = self._version

    @torch.inference_mode()
    def value_ends(self, slab: Slab) -> None:
        """The values that bootstrap: of the positions where a slab ends, and where games were cut off."""
        end = slab.shape.steps
        slab.value[end, slab.acting[end]] = self._values(slab.packed[end, slab.acting[end]])
        cut = slab.finished("final_value") & (slab.final_seat >= 0)
        if cut.any():
            slab.final_value[cut] = self._values(slab.final_packed[cut])

    def _values(self, packed: ByteArray) -> FloatArray:
        """In batches of one shape, so that the numbers do not depend on how many there are."""
        observations = np.zeros((self._slots, *self._game.spec.observation.shape), self._observations.dtype)
        values = np.zeros(len(packed), np.float32)
        for start in range(0, len(packed), self._slots):
            part = packed[start : start + self._slots]
            observations[: len(part)] = self._game.unpack(part)[0]
            values[start : start + len(part)] = self._forward(observations)[1][: len(part)]
        return values

    def _forward(self, observations: Array) -> tuple[Tensor, FloatArray]:
        # On as many threads as ever, also for a worker that runs inline: sums come out the same.
        with torch_threads(self._threads):
            logits, values = self._network(torch.from_numpy(observations).to(self._device))
        return logits.float().cpu(), values.float().cpu().numpy()

    @property
    def _device(self) -> torch.device:
        return next(self._network.parameters()).device

    def _place(self, worker: int) -> slice:
        return slice(worker * self._slots, (worker + 1) * self._slots)

    def _read(self, worker: int, member: Member, question: Question) -> None:
        slab, step, place = member.memory.slab(question.slab), question.step, self._place(worker)
        acting = slab.acting[step]
        if acting.all():
            self._game.unpack(slab.packed[step], self._observations[place], self._legal[place])
        else:
            seen, legal = self._game.unpack(slab.packed[step][acting])
            self._observations[place][acting], self._legal[place][acting] = seen, legal
        games = np.arange(self._slots) // (self._slots // member.plan.games) + member.plan.first_game
        seed = keyed_word(member.plan.seed, member.committed_epoch) >> 1
        self._uniforms[place] = keyed_uniform(
            seed, games, slab.episode[step], slab.ply[step], Stream.POLICY, slab.seat[step]
        )

    def _grow(self, workers: int) -> None:
        """Room for so many workers; it grows only when workers are added."""
        rows, before = workers * self._slots, len(self._uniforms)
        if rows <= before:
            return
        spec = self._game.spec
        observations = np.zeros((rows, *spec.observation.shape), spec.observation.dtype)
        legal = np.ones((rows, spec.num_actions), np.bool_)
        observations[:before], legal[:before] = self._observations, self._legal
        self._observations, self._legal = observations, legal
        self._uniforms = np.zeros(rows, np.float64)

    def take(self, model: nn.Module, version: int) -> None:
        """Decide with these weights from now on."""
        self._network.load_state_dict(model.state_dict())
        self._version = version
