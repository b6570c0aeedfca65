"""Deep Q-learning (Mnih and others, 2015): double, dueling, with n-step targets and legal masks.

The target of a decision is R + d · Q(s', a'), where the replay gives the rewards R, the next position s' and the
factor d. The factor holds the discount of all plies in between, is negative if the other side of a zero-sum game
acts in s', and is 0 if the game ended. a' is the best *legal* action in s'.

The network may give quantiles of each value. The loss is then that of Dabney and others (2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import DivergenceError
from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.games.contract import BoolArray, ByteArray, FloatArray, Game, IntArray
from keisei.learners.acceleration import Forward, compiled, half_precision
from keisei.learners.contract import Report
from keisei.learners.dqn_config import DQNConfig
from keisei.learners.saved_state import checked_document
from keisei.learners.shards import Shards, added, descend, split
from keisei.machine.torch_threads import single_threaded
from keisei.policies.behaviour import Behaviour
from keisei.policies.finite import blame_observations, blame_rewards
from keisei.policies.gather_network import legal_actions
from keisei.policies.q_network import QNetwork, best_actions
from keisei.policies.sampling import as_tensor
from keisei.runs import metric_names as tags
from keisei.runs.state import State
from keisei.runs.state_tensors import FlatState, flatten_optimizer, load_model, load_optimizer, model_tensors

__all__ = ["DQN", "DQNConfig"]


@dataclass(frozen=True, slots=True)
class GradientStep:
    """What one gradient step found."""

    loss: float
    q_mean: float
    errors: FloatArray
    """[n]: the size of each decision's error before the step."""


class DQN:
    """Improves a Q network from samples of a replay. ``game`` only unpacks positions.

    Each minibatch is split into ``parts``, which up to ``threads`` threads share. The number of parts changes the
    bits of the weights; the number of threads does not.
    """

    def __init__(
        self,
        network: QNetwork,
        game: Game,
        config: DQNConfig,
        seed: int = 0,
        *,
        parts: int | None = None,
        threads: int = 1,
        mixed_precision: bool = False,
        compile_network: bool = False,
    ) -> None:
        """Without ``parts``, the number of the settings is used, or 1 if they say ``auto``."""
        self.network = network
        self.target = deepcopy(network).eval().requires_grad_(False)
        self.config = config
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True)
        self.steps = 0
        """Gradient steps so far. They key the samples and say when the target network follows."""
        self._game = game
        self.seed = seed
        self._parameters = [weight for weight in network.parameters() if weight.requires_grad]
        self._device = self._parameters[0].device
        wanted = config.parts if parts is None else parts
        self._parts = 1 if wanted == "auto" else wanted
        self._shards = Shards(threads if self._device.type == "cpu" else 1)
        observation = game.spec.observation.shape
        self._run_network = compiled(network, compile_network, observation)
        self._run_target = compiled(self.target, compile_network, observation)
        self._precision = half_precision(mixed_precision, self._device)

    def learn(self, view: ReplayView, progress: float, made: Sequence[GradientStep] = ()) -> Report:
        """Makes the gradient steps that are due, each with its own sample. The steps in ``made`` count as done and are
        not repeated."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate_at(progress)
        self.network.train()
        steps = [*made]
        for _ in range(view.steps() - len(made)):
            sample = self.draw(view, progress)
            steps.append(self.step(sample))
            view.update_priorities(sample, steps[-1].errors)
        self.network.eval()
        return self.report(steps, progress)

    def draw(self, view: ReplayView, progress: float) -> ReplaySample:
        """Draws the sample of the next gradient step."""
        return view.sample(self.config.minibatch_size, self.seed, self.steps, progress)

    def behaviour(self, progress: float) -> Behaviour:
        """Gets the current network, whose best action is played but for a share of random decisions."""
        return Behaviour(self.network, 0.0, self.config.epsilon_at(progress), self.config.epsilon_spread)

    def step(self, sample: ReplaySample) -> GradientStep:
        """Makes one step of the optimiser, on the mean loss of all rows."""

        def gradients(part: ReplaySample) -> tuple[float, float, FloatArray, Sequence[Tensor | None]]:
            share = len(part) / len(sample)
            predicted, targets = self.predicted(part), self.targets(part)
            weights = as_tensor(part.weights).to(self._device)
            loss = share * (weights * self._losses(predicted, targets)).mean()
            found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
            q = predicted.detach().mean(1)
            errors = (targets.mean(1) - q).abs().cpu().numpy()
            return float(loss.detach()), share * float(q.mean()), errors, found

        with single_threaded():  # the bits of the gradients' norm also depend on threads
            results = self._shards.map(gradients, split(sample, self._parts))
            losses, q_means, errors, found = zip(*results, strict=True)
            self.demand_finite(sum(losses), sample)
            descend(self.optimizer, self._parameters, added(found), self.config.max_grad_norm)
            self.steps += 1
            if self.steps % self.config.target_interval == 0:
                self._follow()
        return GradientStep(sum(losses), sum(q_means), np.concatenate(errors))

    def predicted(self, sample: ReplaySample) -> Tensor:
        """[n, quantiles]: the network's values of the decisions, with gradients."""
        observations, listed = self._unpacked(sample.packed)
        values = self._values(self._run_network, observations, listed)
        taken = (listed == as_tensor(sample.actions).to(self._device)[:, None]).int().argmax(1, keepdim=True)
        return _chosen(values, taken)

    @torch.no_grad()
    def targets(self, sample: ReplaySample) -> Tensor:
        """[n, quantiles]: the targets of these values."""
        # A game that ended has no next position. Its own position stands in, with the factor 0, so that the shape of
        # the batch never changes: oneDNN keeps memory for every new one.
        has_next = sample.discounts != 0
        observations, listed = self._unpacked(np.where(has_next[:, None], sample.next_packed, sample.packed))
        values = self._values(self._run_target, observations, listed)
        judged = self._values(self._run_network, observations, listed) if self.config.double else values
        best = _chosen(values, best_actions(judged.mean(1), listed))
        rewards, discounts = (
            as_tensor(column).to(self._device)[:, None] for column in (sample.rewards, sample.discounts)
        )
        return rewards + discounts * best

    def state(self) -> State:
        """Copies the state, so learning may continue while the copies are written."""
        optimizer = flatten_optimizer(self.optimizer)
        return State(
            tensors={
                "model": model_tensors(self.network),
                "target": model_tensors(self.target),
                "optimizer": optimizer.tensors,
            },
            document={"optimizer": optimizer.document, "steps": self.steps},
        )

    def restore(self, state: State) -> None:
        """Restores a state, or raises ``CheckpointError`` if it does not belong to this learner."""
        document = checked_document(state, "DQN", ("model", "target", "optimizer"), "steps")
        load_model(self.network, state.tensors["model"])
        load_model(self.target, state.tensors["target"])
        load_optimizer(self.optimizer, FlatState(state.tensors["optimizer"], document["optimizer"]))
        self.steps = document["steps"]

    def _unpacked(self, packed: ByteArray) -> tuple[Tensor, Tensor]:
        """Unpacks the observations [n, …] and the legal actions [n, k] of positions."""
        observations, legal = self._game.unpack(packed)
        return as_tensor(observations).to(self._device), as_tensor(self._listed(legal)).to(self._device)

    def _listed(self, legal: BoolArray) -> IntArray:
        """Lists the actions whose values are computed."""
        return legal_actions(legal)

    def _values(self, network: Forward, observations: Tensor, listed: Tensor) -> Tensor:
        """[n, quantiles, k]: the values of the legal actions."""
        with self._precision:
            return network(observations, listed, True)[0].float()

    def _losses(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """[n]: the loss of each decision."""
        if predicted.shape[1] == 1:
            return nn.functional.huber_loss(
                predicted.squeeze(1), targets.squeeze(1), reduction="none", delta=self.config.huber
            )
        return quantile_losses(predicted, targets, self.config.huber)

    @torch.no_grad()
    def _follow(self) -> None:
        """Moves the target network towards the network."""
        for old, new in zip(self.target.parameters(), self.network.parameters(), strict=True):
            old.lerp_(new, self.config.tau)  # exactly a copy for a tau of 1
        for kept, current in zip(self.target.buffers(), self.network.buffers(), strict=True):
            kept.copy_(current)

    def demand_finite(self, loss: float, sample: ReplaySample) -> None:
        """Raises an error if the loss is not finite. Blames the game first: its observations, then its rewards."""
        if math.isfinite(loss):
            return
        for packed in (sample.packed, sample.next_packed[sample.discounts != 0]):
            blame_observations(self._game.spec, self._game.unpack(packed)[0])
        blame_rewards(self._game.spec, sample.rewards, loss, f"gradient step {self.steps}")
        raise DivergenceError(
            f"the loss is {loss} in gradient step {self.steps}: training has diverged. Go back to a checkpoint and "
            f"lower learner.learning_rate"
        )

    def report(self, steps: Sequence[GradientStep], progress: float) -> Report:
        """Reports the means over gradient steps."""
        numbers = {
            tags.EPSILON: self.config.epsilon_at(progress),
            tags.LEARNING_RATE: self.config.learning_rate_at(progress),
            tags.GRADIENT_STEPS: float(len(steps)),
        }
        if steps:
            numbers |= {
                tags.LOSS: sum(step.loss for step in steps) / len(steps),
                tags.Q_MEAN: sum(step.q_mean for step in steps) / len(steps),
                tags.TD_ERROR: sum(float(step.errors.mean()) for step in steps) / len(steps),
            }
        return Report({0: numbers})


def quantile_losses(predicted: Tensor, targets: Tensor, huber: float) -> Tensor:
    """[n]: the quantile Huber loss of [n, quantiles] each (Dabney and others, 2018, equation 10): the sum over
    predicted quantiles of the mean over target quantiles."""
    count = predicted.shape[1]
    middles = (torch.arange(count, device=predicted.device) + 0.5) / count
    errors = targets[:, None, :] - predicted[:, :, None]  # [n, predicted, target]
    sizes = nn.functional.huber_loss(errors, torch.zeros_like(errors), reduction="none", delta=huber)
    slopes = (middles[None, :, None] - (errors.detach() < 0).float()).abs()
    return (slopes * sizes).mean(2).sum(1)


def _chosen(values: Tensor, places: Tensor) -> Tensor:
    """[n, quantiles]: the values at the places [n, 1], out of [n, quantiles, k]."""
    return values.gather(2, places[:, None].expand(-1, values.shape[1], -1)).squeeze(2)
