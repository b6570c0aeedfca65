"""The numbers of an update under the names that ``metrics.TAGS`` explains."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from keisei.training.events import Evaluation, Update


def update_values(update: Update) -> Mapping[str, float]:
    """What is not known, such as the length of games where none was finished, is left out."""
    games, collection, counters = update.games, update.collection, update.counters
    values = {
        "rollout/ep_len_mean": games.mean_plies,
        "rollout/ep_rew_mean": games.mean_reward,
        **update.report.numbers,
        "train/n_updates": counters.update,
        "time/fps": counters.transitions / counters.seconds if counters.seconds > 0 else math.nan,
        "time/total_timesteps": counters.transitions,
        "time/time_elapsed": counters.seconds,
        "selfplay/games": games.games,
        "selfplay/first_win_rate": games.first_wins,
        "selfplay/draw_rate": games.draws,
        "selfplay/truncation_rate": games.truncations,
        "perf/transitions_per_second": update.transitions_per_second,
        "perf/collect_seconds": collection.seconds,
        "perf/learn_seconds": update.learn_seconds,
        "perf/queue_depth": collection.queue_depth,
        "perf/policy_lag": collection.policy_lag,
        "perf/worker_utilisation": collection.worker_utilisation,
    }
    return {name: value for name, value in values.items() if not math.isnan(value)}


def evaluation_values(evaluation: Evaluation) -> Mapping[str, float]:
    return {f"evaluation/{_tag(row.opponent)}": row.score for row in evaluation.rows}


def _tag(opponent: str) -> str:
    """A player's name as part of a tag: paths have signs that tags may not have."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", opponent)
