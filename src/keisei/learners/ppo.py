"""Proximal policy optimisation (Schulman et al., 2017) with legal masks.

The ratio of the new policy to the one that acted is clipped, so an update stays near the data. Illegal actions do
not count in probabilities, loss or entropy.

Asynchronous experience was played by weights some updates old. V-trace then corrects values and advantages; the
buffer calls ``PPO.judge`` for this once before the update. The ratio in the loss is still that of the policy being
learned to the one that acted (as in APPO). So the same clip keeps the update near the data, even if the data is
old.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from keisei.errors import DivergenceError
from keisei.experience.rollout import Minibatch
from keisei.games.contract import BoolArray, ByteArray, FloatArray, Game, IntArray
from keisei.learners.acceleration import Forward, compiled, half_precision
from keisei.learners.contract import NOTHING_LEARNED, Report
from keisei.learners.ppo_config import PPOConfig
from keisei.learners.saved_state import checked_document
from keisei.learners.shards import Shards, added, descend, split
from keisei.machine.torch_threads import single_threaded
from keisei.policies.behaviour import Behaviour
from keisei.policies.finite import blame_observations, blame_rewards
from keisei.policies.gather_network import legal_actions
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import as_tensor, masked_log_softmax
from keisei.runs import metric_names as tags
from keisei.runs.state import State
from keisei.runs.state_tensors import FlatState, flatten_optimizer, load_model, load_optimizer, model_tensors

__all__ = ["PPO", "Losses", "PPOConfig", "Rollout"]

JUDGED_AT_ONCE = 512
"""Rows in one batch of ``PPO.judge``, so that a large slab takes no more memory than a small one."""
KL_TOLERANCE = 1.5
"""An update ends when the divergence is more than this many times ``target_kl`` (as in Spinning Up)."""


class Rollout(Protocol):
    """The experience of one update, as PPO learns from it."""

    def __len__(self) -> int: ...

    def merged(self) -> Minibatch:
        """All transitions."""
        ...

    def minibatches(self, size: int, seed: int, epoch: int, share: float) -> Iterator[Minibatch]:
        """A share of all transitions, with their weights, in minibatches of one size, in an order keyed by (seed,
        epoch)."""
        ...


@dataclass(frozen=True, slots=True)
class _Rows:
    """Decisions as a network sees them."""

    observations: Tensor
    listed: Tensor
    """The legal actions of each row, filled up with -1."""
    taken: Tensor
    """The place of the action that was taken, [n, 1]."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of a minibatch: a mean over its rows each, or those of each row."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    """The divergence from the policy that acted to the one that learns: the mean of r - 1 - log r for ratios r,
    which is never negative (Schulman, "Approximating KL divergence", 2020)."""
    clip_fraction: Tensor

    def total(self, config: PPOConfig, entropy_weight: float) -> Tensor:
        """The sum that is minimised."""
        return self.policy + config.value_weight * self.value - entropy_weight * self.entropy

    def reduced(self, reduction: Callable[[Tensor], Tensor]) -> Losses:
        return Losses(*(reduction(getattr(self, name)) for name in Losses.__slots__))

    def of(self, place: int) -> Losses:
        """Gets the losses at one place, as those of one agent."""
        return self.reduced(lambda values: values[place])

    def times(self, factor: float) -> Losses:
        return Losses(*(getattr(self, name) * factor for name in Losses.__slots__))

    def detached(self) -> Losses:
        return Losses(*(getattr(self, name).detach() for name in Losses.__slots__))


def sum_of(losses: Sequence[Losses]) -> Losses:
    return Losses(*(sum(getattr(part, name) for part in losses) for name in Losses.__slots__))


def mean_of(losses: Sequence[Losses]) -> Losses:
    """Computes the means over minibatches of one size."""
    return sum_of(losses).times(1 / len(losses))


class PPO:
    """Improves a network from rollouts. ``game`` only unpacks positions.

    Each minibatch is split into ``parts``, which up to ``threads`` threads share. The number of parts changes the
    bits of the weights; the number of threads does not. Workers play with ``temperature`` and ``epsilon``.
    """

    def __init__(
        self,
        network: ActorCritic,
        game: Game,
        config: PPOConfig,
        seed: int = 0,
        *,
        parts: int | None = None,
        threads: int = 1,
        temperature: float = 1.0,
        epsilon: float = 0.0,
        mixed_precision: bool = False,
        compile_network: bool = False,
    ) -> None:
        """Without ``parts``, the number of the settings is used, or 1 if they say ``auto``."""
        self.network = network
        self.config = config
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True)
        self.updates = 0
        self._game = game
        self._seed = seed
        self._temperature, self._epsilon = temperature, epsilon
        self._parameters = [weight for weight in network.parameters() if weight.requires_grad]
        self._device = self._parameters[0].device
        wanted = config.parts if parts is None else parts
        self._parts = 1 if wanted == "auto" else wanted
        self._shards = Shards(threads if self._device.type == "cpu" else 1)
        self._run_network = compiled(network, compile_network, game.spec.observation.shape)
        self._precision = half_precision(mixed_precision, self._device)

    def learn(self, view: Rollout, progress: float, made: Sequence[Losses] = ()) -> Report:
        """Learns for some epochs of minibatches; fewer if the policy moves too far from the one that acted. The first
        steps, which are in ``made``, count as done and are not repeated. An empty rollout changes nothing."""
        if not len(view):
            return NOTHING_LEARNED
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate_at(progress)
        self.network.train()
        before, steps = iter(made), list[Losses]()
        for epoch in range(config.epochs):
            minibatches = self.minibatches(view, epoch)
            in_epoch = [next(before, None) or self.step(batch, progress) for batch in minibatches]
            steps += in_epoch
            if self.has_moved_too_far(in_epoch):
                break
        self.network.eval()
        self.updates += 1
        return self.report(steps, view.merged(), progress)

    def minibatches(self, view: Rollout, epoch: int) -> Iterator[Minibatch]:
        """Yields the minibatches of one epoch of the next update."""
        config = self.config
        key = self.updates * config.epochs + epoch
        minibatches = view.minibatches(config.minibatch_size, self._seed, key, config.advantage_share)
        return map(self._normalised, minibatches)

    def behaviour(self, progress: float) -> Behaviour:
        """Gets the current network, with constant temperature and epsilon."""
        return Behaviour(self.network, self._temperature, self._epsilon)

    def state(self) -> State:
        """Copies the state, so learning may continue while the copies are written."""
        optimizer = flatten_optimizer(self.optimizer)
        return State(
            tensors={"model": model_tensors(self.network), "optimizer": optimizer.tensors},
            document={"optimizer": optimizer.document, "updates": self.updates},
        )

    def restore(self, state: State) -> None:
        """Restores a state, or raises ``CheckpointError`` if it does not belong to this learner."""
        document = checked_document(state, "PPO", ("model", "optimizer"), "updates")
        load_model(self.network, state.tensors["model"])
        load_optimizer(self.optimizer, FlatState(state.tensors["optimizer"], document["optimizer"]))
        self.updates = document["updates"]

    @torch.inference_mode()
    def judge(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Evaluates earlier decisions with the current network: the log-probability of each action and the value of
        each position. This is the buffer's ``Judge``."""
        self.network.eval()
        log_probs, values = np.zeros((2, len(actions)), np.float32)
        for start in range(0, len(actions), JUDGED_AT_ONCE):
            # The last part is filled up, since oneDNN keeps memory for every new size.
            rows = np.arange(start, start + JUDGED_AT_ONCE) % len(actions)
            with single_threaded():
                decisions = self._rows(packed[rows], actions[rows])
                _, chosen, valued = self._evaluated(self._run_network, decisions)
            part = slice(start, start + JUDGED_AT_ONCE)
            count = len(actions[part])
            log_probs[part], values[part] = chosen[:count].cpu().numpy(), valued[:count].cpu().numpy()
        return log_probs, values

    def step(self, batch: Minibatch, progress: float) -> Losses:
        """Makes one step of the optimiser. The mean over all rows is the mean over the parts, weighted by their
        sizes."""
        weight = self.config.entropy_weight_at(progress)

        def gradients(part: Minibatch) -> tuple[Losses, Sequence[Tensor | None]]:
            losses = self.losses(part).times(len(part) / len(batch))
            loss = losses.total(self.config, weight)
            return losses.detached(), torch.autograd.grad(loss, self._parameters, allow_unused=True)

        with single_threaded():  # the bits of the gradients' norm also depend on threads
            results = self._shards.map(gradients, split(batch, self._parts))
            losses = sum_of([losses for losses, _ in results])
            self.demand_finite(float(losses.total(self.config, weight)), batch)
            found = added([of_part for _, of_part in results])
            descend(self.optimizer, self._parameters, found, self.config.max_grad_norm)
        return losses

    def demand_finite(self, loss: float, batch: Minibatch) -> None:
        """Raises an error if the loss is not finite. Blames the game first: its observations, then its rewards."""
        if math.isfinite(loss):
            return
        blame_observations(self._game.spec, self._game.unpack(batch.packed)[0])
        if np.isfinite(batch.values).all():
            blame_rewards(self._game.spec, batch.returns, loss, f"update {self.updates}")
        raise DivergenceError(
            f"the loss is {loss} in update {self.updates}: training has diverged. Go back to a checkpoint and "
            f"lower learner.learning_rate"
        )

    def losses(self, batch: Minibatch) -> Losses:
        """Computes the losses of a minibatch, with gradients. Advantages are used as they are. Values are fitted to
        weighted rows, so that a share of decisions teaches the values of all."""
        weights, rows = as_tensor(batch.weights).to(self._device), self.row_losses(batch)
        return replace(rows.reduced(lambda losses: losses.mean()), value=(rows.value * weights).mean())

    def row_losses(self, batch: Minibatch) -> Losses:
        """Computes the losses of each row, without its weight."""
        rows = self._rows(batch.packed, batch.actions)
        log_probs, chosen, values = self._evaluated(self._run_network, rows)
        advantages = as_tensor(batch.advantages).to(self._device)
        ratio_log = chosen - as_tensor(batch.log_probs).to(self._device)
        ratio = ratio_log.exp()
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        return Losses(
            policy=-torch.minimum(ratio * advantages, clipped * advantages),
            value=self._value_losses(values, batch),
            entropy=-(log_probs.exp() * log_probs).sum(1),
            approx_kl=(ratio - 1 - ratio_log).detach(),
            clip_fraction=((ratio - 1).abs() > self.config.clip).float().detach(),
        )

    def _rows(self, packed: ByteArray, actions: IntArray) -> _Rows:
        """Unpacks decisions. Of Shogi's 2187 actions some 60 are legal, so the others are skipped."""
        observations, legal = self._game.unpack(packed)
        listed = as_tensor(self._listed(legal)).to(self._device)
        taken = (listed == as_tensor(actions).to(self._device)[:, None]).int().argmax(1, keepdim=True)
        return _Rows(as_tensor(observations).to(self._device), listed, taken)

    def _evaluated(self, network: Forward, rows: _Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Computes log-probabilities of all legal actions [n, k] and of the actions taken [n], and values [n]."""
        with self._precision:
            logits, values = network(rows.observations, rows.listed)
        log_probs = masked_log_softmax(logits.float(), rows.listed >= 0)
        return log_probs, log_probs.gather(1, rows.taken).squeeze(1), values.float()

    def _listed(self, legal: BoolArray) -> IntArray:
        """Lists the actions whose logits are computed."""
        return legal_actions(legal)

    def _normalised(self, batch: Minibatch) -> Minibatch:
        if not self.config.normalise_advantages or len(batch) < 2:
            return batch
        advantages = batch.advantages
        return replace(batch, advantages=(advantages - advantages.mean()) / (advantages.std() + 1e-8))

    def _value_losses(self, values: Tensor, batch: Minibatch) -> Tensor:
        returns = as_tensor(batch.returns).to(self._device)
        plain = (values - returns).square()
        if self.config.value_clip is None:
            return plain
        before = as_tensor(batch.values).to(self._device)
        near = before + (values - before).clamp(-self.config.value_clip, self.config.value_clip)
        return torch.maximum(plain, (near - returns).square())

    def has_moved_too_far(self, epoch: Sequence[Losses]) -> bool:
        """Checks if an epoch has moved the policy too far. A single minibatch is too noisy to say."""
        target = self.config.target_kl
        return target is not None and float(mean_of(epoch).approx_kl) > KL_TOLERANCE * target

    def report(self, steps: Sequence[Losses], whole: Minibatch, progress: float) -> Report:
        """Reports the means over all minibatches."""
        mean = mean_of(steps)
        numbers = {
            tags.LOSS: float(mean.total(self.config, self.config.entropy_weight_at(progress))),
            tags.POLICY_LOSS: float(mean.policy),
            tags.VALUE_LOSS: float(mean.value),
            tags.ENTROPY_LOSS: -float(mean.entropy),
            tags.APPROX_KL: float(mean.approx_kl),
            tags.CLIP_FRACTION: float(mean.clip_fraction),
            tags.EXPLAINED_VARIANCE: explained_variance(whole.values, whole.returns),
            tags.LEARNING_RATE: self.config.learning_rate_at(progress),
            tags.GRADIENT_STEPS: float(len(steps)),
        }
        return Report({0: numbers})


def explained_variance(values: FloatArray, returns: FloatArray) -> float:
    """Computes the share of the returns' variance that the values predict; 0 if there is no variance."""
    variance = float(np.var(returns))
    return 1 - float(np.var(returns - values)) / variance if variance > 0 else 0.0
