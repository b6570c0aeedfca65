"""Proximal policy optimisation (Schulman et al., 2017) with legal masks.

The ratio of the new policy to the one that acted is clipped, so that an update stays near the data. Illegal
actions have no part in probabilities, loss or entropy.

Asynchronous experience was played by weights some updates old. V-trace then corrects what values and advantages say of
the policy that learns, for which the buffer asks ``PPO.judge`` once before the update. The ratio of the loss stays
that of the policy being learned to the one that acted (as in APPO): the same clip keeps the update near the data,
however old those are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from keisei.config import Settings
from keisei.errors import LearningError
from keisei.experience.rollout import Minibatch, RolloutView
from keisei.games.contract import ByteArray, FloatArray, Game, IntArray
from keisei.learners.acceleration import compiled, half_precision
from keisei.learners.shards import Shards, added, split
from keisei.policies.gather_network import legal_actions
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import as_tensor, masked_log_softmax

JUDGED_AT_ONCE = 512
"""Rows that ``PPO.judge`` looks at in one batch, so that a large slab takes no more memory than a small one."""


class PPOConfig(Settings):
    """Settings of the learner."""

    learning_rate: Annotated[float, Field(gt=0)] = 3e-4
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls from its first value to ``final_rate`` of it over the run."""
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    epochs: Annotated[int, Field(ge=1)] = 3
    """Passes over the data of each update."""
    minibatch_size: Annotated[int, Field(ge=1)] = 512
    clip: Annotated[float, Field(gt=0)] = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: Annotated[float, Field(gt=0)] | None = None
    """Clip the change of values likewise; None does not."""
    value_weight: Annotated[float, Field(ge=0)] = 0.5
    entropy_weight: Annotated[float, Field(ge=0)] = 0.01
    final_entropy_weight: Annotated[float, Field(ge=0)] | None = None
    """Where the entropy weight goes to, in a straight line; None keeps it."""
    trace: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Lambda of GAE and of V-trace."""
    correction: Literal["none", "vtrace"] = "vtrace"
    """How asynchronous experience is corrected for the age of the weights that acted; synchronous experience needs
    none."""
    rho_clip: Annotated[float, Field(gt=0)] = 1.0
    """V-trace's bound on the probability ratio by which a surprise counts (rho); a low one keeps values near those
    of the policy that acted."""
    trace_clip: Annotated[float, Field(gt=0)] = 1.0
    """V-trace's bound on the ratio by which later surprises reach back (c); a low one lowers the variance."""
    normalise_advantages: bool = True
    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Stop the epochs of an update where the policy has moved further than 1.5 times this."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 0.5


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one update did: means over its minibatches."""

    loss: float
    """The sum that is minimised."""
    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    explained_variance: float
    learning_rate: float
    gradient_steps: int


@dataclass(frozen=True, slots=True)
class Losses:
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor

    def total(self, config: PPOConfig, entropy_weight: float) -> Tensor:
        return self.policy + config.value_weight * self.value - entropy_weight * self.entropy

    def times(self, factor: float) -> Losses:
        return Losses(*(getattr(self, name) * factor for name in Losses.__slots__))

    def detached(self) -> Losses:
        return Losses(*(getattr(self, name).detach() for name in Losses.__slots__))


def sum_of(losses: Sequence[Losses]) -> Losses:
    return Losses(*(sum(getattr(part, name) for part in losses) for name in Losses.__slots__))


class PPO:
    """Improves a network from a buffer. ``game`` unpacks positions; its own games are never touched."""

    def __init__(
        self,
        network: ActorCritic,
        game: Game,
        config: PPOConfig,
        seed: int = 0,
        *,
        threads: int = 1,
        mixed_precision: bool = False,
        compile_network: bool = False,
    ) -> None:
        self.network = network
        self.config = config
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True)
        self.updates = 0
        self._game = game
        self._seed = seed
        self._shards = Shards(threads)
        self._parameters = [weight for weight in network.parameters() if weight.requires_grad]
        self._device = self._parameters[0].device
        self._run_network = compiled(network, compile_network, game.spec.observation.shape)
        self._precision = half_precision(mixed_precision, self._device)

    def update(self, view: RolloutView, progress: float) -> UpdateReport:
        """Several epochs of minibatches; ``progress`` in 0 … 1 tells the schedules how far the run is."""
        config = self.config
        rate = config.learning_rate * scheduled(config.schedule, progress, config.final_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.network.train()
        reports: list[Losses] = []
        for epoch in range(config.epochs):
            for batch in view.minibatches(
                config.minibatch_size, self._seed, self.updates * config.epochs + epoch
            ):
                reports.append(self.step(self._normalised(batch), progress))
            if config.target_kl is not None and float(reports[-1].approx_kl) > 1.5 * config.target_kl:
                break
        self.network.eval()
        self.updates += 1
        return _report(reports, view.merged(), rate, config, self.entropy_weight(progress))

    @torch.inference_mode()
    def judge(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """What the network, as it is now, makes of decisions that were taken before: the log-probability of each
        action and the value of each position. This is the buffer's ``Judge``."""
        self.network.eval()
        log_probs, values = np.zeros((2, len(actions)), np.float32)
        for start in range(0, len(actions), JUDGED_AT_ONCE):
            # The last part is filled up: oneDNN would keep memory for every new size that it meets.
            rows = np.arange(start, start + JUDGED_AT_ONCE) % len(actions)
            _, chosen, valued = self._forward(packed[rows], actions[rows])
            part = slice(start, start + JUDGED_AT_ONCE)
            count = len(actions[part])
            log_probs[part], values[part] = chosen[:count].cpu().numpy(), valued[:count].cpu().numpy()
        return log_probs, values

    def step(self, batch: Minibatch, progress: float) -> Losses:
        """One step of the optimiser. Every thread works on its part of the rows; a mean over all rows is the mean
        over the parts, weighted by their sizes."""
        weight = self.entropy_weight(progress)

        def gradients(part: Minibatch) -> tuple[Losses, Sequence[Tensor | None]]:
            losses = self.losses(part).times(len(part) / len(batch))
            loss = losses.total(self.config, weight)
            return losses.detached(), torch.autograd.grad(loss, self._parameters, allow_unused=True)

        results = self._shards.map(gradients, split(batch, self._shards.threads))
        losses = sum_of([losses for losses, _ in results])
        self._demand_finite(float(losses.total(self.config, weight)))
        for parameter, gradient in zip(self._parameters, added([found for _, found in results]), strict=True):
            # Convolutions may give gradients in another order of memory, which a fused Adam would misread.
            parameter.grad = None if gradient is None else gradient.contiguous()
        nn.utils.clip_grad_norm_(self._parameters, self.config.max_grad_norm)
        self.optimizer.step()
        return losses

    def _demand_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise LearningError(
                f"the loss is {loss} in update {self.updates}: training has diverged. Go back to a checkpoint and "
                f"lower ppo.learning_rate"
            )

    def entropy_weight(self, progress: float) -> float:
        first, last = self.config.entropy_weight, self.config.final_entropy_weight
        return first if last is None else first + (last - first) * progress

    def losses(self, batch: Minibatch) -> Losses:
        """The three losses of a minibatch, with gradients; advantages as they are."""
        log_probs, chosen, values = self._forward(batch.packed, batch.actions)
        advantages = as_tensor(batch.advantages).to(self._device)
        ratio_log = chosen - as_tensor(batch.log_probs).to(self._device)
        ratio = ratio_log.exp()
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        return Losses(
            policy=-torch.minimum(ratio * advantages, clipped * advantages).mean(),
            value=self._value_loss(values, batch),
            entropy=-(log_probs.exp() * log_probs).sum(1).mean(),
            approx_kl=(ratio - 1 - ratio_log).mean().detach(),
            clip_fraction=((ratio - 1).abs() > self.config.clip).float().mean().detach(),
        )

    def _forward(self, packed: ByteArray, actions: IntArray) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities of all legal actions [n, k] and of the ones taken [n], and values [n]. Of Shogi's 2187
        actions some 60 are legal, so nothing is computed for the others."""
        observations, legal = self._game.unpack(packed)
        listed = as_tensor(legal_actions(legal)).to(self._device)
        with self._precision:
            logits, values = self._run_network(as_tensor(observations).to(self._device), listed)
        log_probs, values = masked_log_softmax(logits.float(), listed >= 0), values.float()
        taken = (listed == as_tensor(actions).to(self._device)[:, None]).int().argmax(1, keepdim=True)
        return log_probs, log_probs.gather(1, taken).squeeze(1), values

    def _normalised(self, batch: Minibatch) -> Minibatch:
        if not self.config.normalise_advantages or len(batch) < 2:
            return batch
        advantages = batch.advantages
        return replace(batch, advantages=(advantages - advantages.mean()) / (advantages.std() + 1e-8))

    def _value_loss(self, values: Tensor, batch: Minibatch) -> Tensor:
        returns = as_tensor(batch.returns).to(self._device)
        plain = (values - returns).square()
        if self.config.value_clip is None:
            return plain.mean()
        before = as_tensor(batch.values).to(self._device)
        near = before + (values - before).clamp(-self.config.value_clip, self.config.value_clip)
        return torch.maximum(plain, (near - returns).square()).mean()


def scheduled(kind: Literal["constant", "linear", "cosine"], progress: float, final: float) -> float:
    """The share of a first value that is left after ``progress`` of the run."""
    progress = min(1.0, max(0.0, progress))
    if kind == "constant":
        return 1.0
    left = 1 - progress if kind == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return final + (1 - final) * left


def _report(
    losses: list[Losses], whole: Minibatch, rate: float, config: PPOConfig, entropy_weight: float
) -> UpdateReport:
    def mean(name: str) -> float:
        return float(torch.stack([getattr(loss, name).detach() for loss in losses]).mean())

    variance = float(np.var(whole.returns))
    explained = 1 - float(np.var(whole.returns - whole.values)) / variance if variance > 0 else 0.0
    loss = mean("policy") + config.value_weight * mean("value") - entropy_weight * mean("entropy")
    return UpdateReport(
        loss=loss,
        policy_loss=mean("policy"),
        value_loss=mean("value"),
        entropy=mean("entropy"),
        approx_kl=mean("approx_kl"),
        clip_fraction=mean("clip_fraction"),
        explained_variance=explained,
        learning_rate=rate,
        gradient_steps=len(losses),
    )
