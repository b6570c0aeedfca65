"""The loop: summaries of slabs written by hand, the length of a run, and when weights are published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Literal

import numpy as np
import pytest
import torch

from keisei.experience.collected import CollectedSlab, Experiences
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord, slab_layout
from keisei.games.contract import GameSpec, ObservationSpec
from keisei.learners.contract import Report
from keisei.machine.shared_memory import SharedBlock
from keisei.parallel import ParallelManager
from keisei.parallel.deliveries import Drops
from keisei.parallel.status import ManagerStatus, WorkerStatus
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import build_network
from keisei.runs.metric_names import APPROX_KL
from keisei.training.events import Counters
from keisei.training.regimes.loop import Pace, Parts, play_and_learn, summarise, utilisation
from keisei.training.regimes.publishing import LONGEST_WAIT, MOVED_ENOUGH, Publisher
from keisei.training.settings import TrainConfig
from keisei.training.wiring import connect

MODEL = {"network": "mlp", "hidden_dim": 8, "num_layers": 1}
ENDINGS = ("unfinished", "mate", "stalemate", "too long")
STEPS, GAMES = 4, 3


def spec_of(seats: int = 2, simultaneous: bool = False) -> GameSpec:
    observation = ObservationSpec((1,), np.dtype(np.float32))
    return GameSpec("by-hand", seats, 2, observation, 4, simultaneous, endings=ENDINGS)


def empty_slab(spec: GameSpec) -> Slab:
    """Games that go on."""
    shape = SlabShape.of(spec, STEPS, GAMES)
    return Slab(shape, SharedBlock(slab_layout(shape).nbytes))


def collected(*slabs: Slab) -> Experiences:
    zeros = SlabRecord(**{field.name: 0 for field in fields(SlabRecord)})
    records = [replace(zeros, sequence=n, transitions=slab.shape.transitions) for n, slab in enumerate(slabs)]
    items = [CollectedSlab(record, 0, slab) for record, slab in zip(records, slabs, strict=True)]
    return Experiences(tuple(items), version=1)


def end(slab: Slab, step: int, game: int, ending: str, scores: list[float], ply: int | list[int]) -> None:
    """End a game in a step; ``ply`` is that of its last decision, for each seat where all act at once."""
    by_rules = ending != "too long"
    slab.terminated[step, game], slab.truncated[step, game] = by_rules, not by_rules
    slab.ending[step, game] = ENDINGS.index(ending)
    slab.score[step, game] = scores
    slab.ply.reshape(STEPS, GAMES, -1)[step, game] = ply


def test_games_are_counted_by_their_result_and_ending() -> None:
    spec = spec_of()
    slab = empty_slab(spec)
    end(slab, 0, 0, "mate", [1, -1], ply=8)
    end(slab, 2, 0, "mate", [-1, 1], ply=1)
    end(slab, 1, 1, "stalemate", [0, 0], ply=20)
    end(slab, 3, 2, "too long", [0, 0], ply=99)
    slab.reward[0, 0], slab.reward[2, 0] = [1, -1], [-1, 1]
    slab.reward[1, 1] = [0.5, 0.5]
    summary = summarise(collected(slab), spec)
    assert summary.games == 4
    assert summary.mean_plies == (9 + 2 + 21 + 100) / 4
    assert (summary.first_wins, summary.draws, summary.truncations) == (0.25, 0.25, 0.25)
    assert summary.mean_reward == 0.5 / 4
    assert summary.endings == {"mate": 2, "stalemate": 1, "too long": 1}


def test_the_slabs_of_all_workers_add_up() -> None:
    spec = spec_of()
    slabs = [empty_slab(spec) for _ in range(3)]
    end(slabs[0], 1, 1, "mate", [1, -1], ply=3)
    end(slabs[2], 3, 2, "mate", [1, -1], ply=7)
    summary = summarise(collected(*slabs), spec)
    assert (summary.games, summary.mean_plies, summary.first_wins) == (2, 6.0, 1.0)
    assert summary.endings == {"mate": 2}


def test_where_no_game_was_finished_nothing_is_claimed() -> None:
    spec = spec_of()
    summary = summarise(collected(empty_slab(spec)), spec)
    assert (summary.games, summary.endings) == (0, {})
    rates = (summary.mean_plies, summary.mean_reward, summary.first_wins, summary.draws, summary.truncations)
    assert all(math.isnan(rate) for rate in rates)


def test_rewards_on_the_way_count() -> None:
    spec = spec_of()
    slab = empty_slab(spec)
    slab.reward[:, 0, 0] = [0.25, 0, 0.25, 1]
    end(slab, 3, 0, "mate", [1, -1], ply=3)
    assert summarise(collected(slab), spec).mean_reward == 1.5


def test_where_all_act_at_once_a_seat_that_rests_does_not_shorten_its_game() -> None:
    spec = spec_of(seats=3, simultaneous=True)
    slab = empty_slab(spec)
    end(slab, 1, 0, "mate", [5, 2, 5], ply=[0, 11, 11])  # shared by two, so nobody's win and no draw
    end(slab, 1, 2, "mate", [4, 4, 4], ply=[7, 0, 7])
    end(slab, 3, 1, "too long", [3, 2, 1], ply=[9, 9, 0])  # the scores of a game cut off are those so far
    summary = summarise(collected(slab), spec)
    assert summary.mean_plies == (12 + 8 + 10) / 3
    assert (summary.first_wins, summary.draws) == (0, pytest.approx(1 / 3))
    assert summary.truncations == pytest.approx(1 / 3)


def test_alone_nobody_wins_and_nobody_draws() -> None:
    spec = spec_of(seats=1)
    slab = empty_slab(spec)
    end(slab, 0, 0, "mate", [17], ply=5)
    summary = summarise(collected(slab), spec)
    assert (summary.games, summary.first_wins, summary.draws) == (1, 0, 0)


def test_the_pace_follows_whichever_is_further_along() -> None:
    pace = Pace(steps=1000, seconds=60)
    assert pace.progress(Counters()) == 0
    assert pace.progress(Counters(transitions=500, seconds=6)) == 0.5
    assert pace.progress(Counters(transitions=100, seconds=45)) == 0.75
    assert pace.progress(Counters(transitions=1500)) == 1.0
    assert not pace.is_over(Counters(transitions=999, seconds=59))
    assert pace.is_over(Counters(transitions=1000))
    assert pace.is_over(Counters(seconds=60))
    assert Pace(seconds=10).progress(Counters(transitions=10**9, seconds=5)) == 0.5


def worker(transitions: int, seconds: float) -> WorkerStatus:
    rate = transitions / seconds if seconds else 0.0
    return WorkerStatus(0, "running", None, (), transitions, 0, 1, seconds, rate, 0.5, 0.4, 0.0, 0, 0, "")


def status(active: int, *workers: WorkerStatus) -> ManagerStatus:
    return ManagerStatus(True, active, workers, 2, {}, 1, 0.0, 0, 0.0, 0, Drops(), "")


def test_utilisation_is_the_share_of_all_workers_time() -> None:
    before = status(2, worker(100, 1.0), worker(0, 0.0))
    after = status(2, worker(400, 4.0), worker(600, 3.0))
    assert utilisation(before, after, seconds=4.0) == pytest.approx((3 + 3) / (2 * 4))
    assert utilisation(before, after, seconds=2.0) == 1.0  # begun before the collection
    assert utilisation(before, before, seconds=4.0) == 0
    assert utilisation(before, before, seconds=0.0) == 0
    assert utilisation(before, status(0, worker(400, 4.0), worker(0, 0.0)), seconds=6.0) == 0.5


@contextmanager
def publishing(
    rule: Literal["every", "adaptive"],
) -> Iterator[tuple[ParallelManager, Callable[[float], bool]]]:
    """A manager, and an update that moves the policy so far; it says whether its weights were published."""
    with ParallelManager({"game": "tictactoe"}, MODEL, {"enabled": False, "num_workers": 1}) as manager:
        network = build_network(MODEL, manager.spec, seed=1)
        publisher = Publisher(manager, rule)

        def update(divergence: float) -> bool:
            with torch.no_grad():
                next(network.parameters()).add_(1)
            return publisher.publish(Behaviour(network), Report({0: {APPROX_KL: divergence}}))

        yield manager, update


def test_by_rule_every_update_is_published() -> None:
    with publishing("every") as (manager, update):
        assert [update(0.0) for _ in range(3)] == [True] * 3
        assert manager.version == 4


def test_adaptively_weights_wait_until_the_policy_has_moved() -> None:
    with publishing("adaptive") as (manager, update):
        step = MOVED_ENOUGH * 0.4
        assert [update(step) for _ in range(6)] == [False, False, True] * 2
        assert manager.version == 3
        assert update(MOVED_ENOUGH)


def test_adaptively_weights_wait_no_longer_than_a_while() -> None:
    with publishing("adaptive") as (_, update):
        # An estimate of the divergence may be negative; that takes nothing back.
        assert [update(-1.0) for _ in range(2 * LONGEST_WAIT)] == ([False] * (LONGEST_WAIT - 1) + [True]) * 2
        assert not update(-1.0)
        assert update(MOVED_ENOUGH)


@contextmanager
def parts_of(**parallel: object) -> Iterator[Parts]:
    config = TrainConfig.model_validate(
        {
            "env": {"game": "tictactoe"},
            "model": MODEL,
            "learner": {"minibatch_size": 32, "epochs": 2},
            "parallel": {
                "backend": "inline",
                "num_workers": 2,
                "tables": 2,
                "games": 8,
                "horizon": 4,
                **parallel,
            },
            "run": {"learner_threads": 1, "device": "cpu"},
        }
    )
    parts = connect(config.resolved().placed())
    try:
        yield parts
    finally:
        parts.manager.stop_workers()


def test_each_update_counts_on_from_where_the_run_was() -> None:
    start = Counters(update=5, transitions=1000, games=70, seconds=3.0)
    with parts_of() as parts:
        updates = list(play_and_learn(parts, Pace(steps=1150), start))
        assert parts.manager.version == 4, "the first weights, and those of three updates"
    assert [update.counters.update for update in updates] == [6, 7, 8]
    assert [update.counters.transitions for update in updates] == [1064, 1128, 1192]
    assert [update.progress for update in updates] == [1064 / 1150, 1128 / 1150, 1.0]
    games = [update.games.games for update in updates]
    assert [update.counters.games for update in updates] == [70 + sum(games[: n + 1]) for n in range(3)]
    assert all(update.numbers["train/gradient_steps"] == 4 for update in updates)
    assert all(update.collection.policy_lag == 0 for update in updates)


def test_the_clock_ends_a_run_too() -> None:
    times = iter(range(0, 1000, 10))
    pace = Pace(seconds=25, clock=lambda: float(next(times)))
    with parts_of() as parts:
        updates = list(play_and_learn(parts, pace, Counters()))
    assert [update.counters.seconds for update in updates] == [10, 20, 30]


def test_a_run_that_is_over_makes_no_update() -> None:
    with parts_of() as parts:
        assert list(play_and_learn(parts, Pace(steps=100), Counters(transitions=100))) == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_learner_leaves_a_gapless_trace_of_each_update(mode: str) -> None:
    with parts_of(mode=mode) as parts:
        updates = list(play_and_learn(parts, Pace(steps=192), Counters()))
        spans = [event for event in parts.manager.timeline.events if event.lane == "learner"]
    names = [span.name for span in spans if span.name != "collect"]
    assert names == ["prepare", "learn", "publish"] * len(updates)
    laps = [span for span in spans if span.name != "collect"]
    for update, (prepare, learn, publish) in zip(updates, zip(*[iter(laps)] * 3, strict=True), strict=True):
        assert (prepare.seconds, publish.seconds) == (update.prepare_seconds, update.publish_seconds)
        assert update.learn_seconds == prepare.seconds + learn.seconds + publish.seconds
        assert learn.started == pytest.approx(prepare.started + prepare.seconds)
        assert publish.started == pytest.approx(learn.started + learn.seconds)
