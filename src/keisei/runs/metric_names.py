"""The names and meanings of all metrics. No other file spells them.

The names in ``rollout/``, ``train/`` and ``time/`` follow Stable-Baselines3. The other sections are Keisei's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_meanings: dict[str, str] = {}


def _named(name: str, meaning: str) -> str:
    _meanings[name] = meaning
    return name


GAME_LENGTH = _named("rollout/ep_len_mean", "plies of a game")
GAME_REWARD = _named("rollout/ep_rew_mean", "reward of a game, for the seat that moves first")
CARRIED = _named("rollout/carried", "decisions that wait for their outcome until a later update")
DROPPED_CARRIES = _named(
    "rollout/dropped_carries",
    "such decisions that were dropped so far, since their outcome will never be known",
)

AGENT_RETURN = _named("rollout/return", "rewards of an agent in a game, for games that were finished")

REPLAYED = _named("rollout/replayed", "decisions in the replay that may be drawn")
LATE_PRIORITIES = _named(
    "rollout/late_priorities", "priorities that came after their decision was overwritten, so far"
)
EPSILON = _named("rollout/exploration_rate", "share of random decisions")

LOSS = _named("train/loss", "the sum that is minimised")
POLICY_LOSS = _named("train/policy_gradient_loss", "its part for the policy")
VALUE_LOSS = _named("train/value_loss", "its part for the values")
ENTROPY_LOSS = _named("train/entropy_loss", "minus the entropy of the policy")
APPROX_KL = _named("train/approx_kl", "how far the policy moved in the update")
CLIP_FRACTION = _named("train/clip_fraction", "share of decisions whose probability ratio was clipped")
EXPLAINED_VARIANCE = _named(
    "train/explained_variance", "share of the returns' variance that the values predict"
)
Q_MEAN = _named("train/q_mean", "mean value of the actions in a minibatch")
TD_ERROR = _named("train/td_error", "mean distance of these values from their targets")
LEARNING_RATE = _named("train/learning_rate", "step size of the optimiser")
GRADIENT_STEPS = _named("train/gradient_steps", "steps of the optimiser in the update")
UPDATES = _named("train/n_updates", "updates so far")

MEAN_SPEED = _named("time/fps", "transitions a second over the whole run")
TRANSITIONS = _named("time/total_timesteps", "transitions so far")
ELAPSED = _named(
    "time/time_elapsed", "seconds of training so far, without those between a stop and a resumption"
)

GAMES = _named("selfplay/games", "games finished in the update")
FIRST_WINS = _named("selfplay/first_win_rate", "share of them that the first player won")
DRAWS = _named("selfplay/draw_rate", "share of them that were drawn")
TRUNCATIONS = _named("selfplay/truncation_rate", "share of them that reached the ply limit")

LEAGUE_MEMBERS = _named("league/members", "members of the league that may be drawn")
LEAGUE_GAMES = _named("league/games", "games against members that were finished in the update")
LEAGUE_SCORE = _named("league/score", "score of the learner in these games")
LEAGUE_WORST_SCORE = _named("league/worst_score", "lowest score against a member, in its last games")
LEAGUE_FORGOTTEN = _named("league/forgotten", "members that the learner once beat and now loses to")

SPEED = _named("perf/transitions_per_second", "in this update")
COLLECT_SECONDS = _named("perf/collect_seconds", "time spent on collecting")
LEARN_SECONDS = _named("perf/learn_seconds", "time spent on learning")
QUEUE_DEPTH = _named("perf/queue_depth", "slabs that wait for the learner")
POLICY_LAG = _named("perf/policy_lag", "updates between the weights that acted and those that learn")
WORKER_UTILISATION = _named("perf/worker_utilisation", "share of the time in which workers played")

TAGS: Mapping[str, str] = MappingProxyType(_meanings)
"""The meaning of each name. Callbacks may add others of the form section/name."""

EVALUATION = "evaluation/"
"""The prefix of match scores; the opponent's name follows."""
RETURN = "return/"
"""The prefix of mean returns, in matches that are judged by returns; the opponent's name follows."""
_OWNER = "agent-"


def of_owner(name: str, owner: int) -> str:
    """Makes the name of a metric for one of several owners: ``train/loss`` of owner 2 is ``agent-2/loss``."""
    return f"{_OWNER}{owner}/{name.removeprefix('train/').removeprefix('rollout/')}"


def is_return_of_agent(name: str) -> bool:
    """Checks if a metric is what one of several agents earns in a game."""
    return name.startswith(_OWNER) and name.endswith(f"/{AGENT_RETURN.removeprefix('rollout/')}")


def is_reserved(name: str) -> bool:
    """Checks if a name belongs to Keisei, so callbacks may not use it."""
    return name in TAGS or name.startswith((EVALUATION, RETURN, _OWNER))
