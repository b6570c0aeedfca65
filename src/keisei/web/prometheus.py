"""``/metrics``: the newest numbers of all runs, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from keisei.runs import metric_names as tags
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunState
from keisei.web.catalogue import Catalogue, ListedRun

__all__ = ["metrics_page"]


@dataclass(frozen=True)
class _Gauge:
    name: str
    metric: str


_GAUGES = tuple(
    _Gauge(f"keisei_{name}", metric)
    for name, metric in {
        "transitions_per_second": tags.SPEED,
        "loss": tags.LOSS,
        "policy_loss": tags.POLICY_LOSS,
        "value_loss": tags.VALUE_LOSS,
        "entropy_loss": tags.ENTROPY_LOSS,
        "approx_kl": tags.APPROX_KL,
        "explained_variance": tags.EXPLAINED_VARIANCE,
        "game_length": tags.GAME_LENGTH,
        "game_reward": tags.GAME_REWARD,
        "queue_depth": tags.QUEUE_DEPTH,
        "policy_lag": tags.POLICY_LAG,
        "worker_utilisation": tags.WORKER_UTILISATION,
        "league_score": tags.LEAGUE_SCORE,
    }.items()
)


def metrics_page(catalogue: Catalogue) -> bytes:
    """Writes the numbers of all runs. Those that are being trained have numbers of their workers too."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(catalogue))
    return generate_latest(registry)


class _Collector:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def collect(self) -> Iterator[Metric]:
        runs = self._catalogue.runs()
        yield from _states(runs)
        yield from _progress(runs)
        yield from _scores(runs)
        numbers = {name: _numbers(self._catalogue, name) for name in runs}
        for gauge in _GAUGES:
            family = GaugeMetricFamily(gauge.name, tags.TAGS[gauge.metric], labels=["run"])
            for name, values in numbers.items():
                if gauge.metric in values:
                    family.add_metric([name], values[gauge.metric])
            yield family
        yield from _workers(runs)


def _numbers(catalogue: Catalogue, name: str) -> Mapping[str, float]:
    try:
        with RunDatabase(catalogue.run(name).database, read_only=True) as database:
            return database.latest_metrics()
    except Exception:  # the list shows what is damaged, and one run must not hide the numbers of all others
        return {}


def _states(runs: Mapping[str, ListedRun]) -> Iterator[Metric]:
    about = InfoMetricFamily("keisei_run", "game, regime and state of a run", labels=["run"])
    running = GaugeMetricFamily("keisei_running", "1 while a run is being trained", labels=["run"])
    paused = GaugeMetricFamily("keisei_paused", "1 while a run is paused", labels=["run"])
    for name, listed in runs.items():
        is_running = listed.summary.state is RunState.RUNNING
        regime = listed.settings.get("learner.regime", "")
        state = listed.summary.state.value
        about.add_metric([name], {"game": listed.summary.game or "", "regime": regime, "state": state})
        running.add_metric([name], float(is_running))
        paused.add_metric([name], float(is_running and listed.live is not None and listed.live.paused))
    yield from (about, running, paused)


def _progress(runs: Mapping[str, ListedRun]) -> Iterator[Metric]:
    updates = CounterMetricFamily("keisei_updates", "updates of a run", labels=["run"])
    transitions = CounterMetricFamily(
        "keisei_transitions", "transitions that were learned from", labels=["run"]
    )
    seconds = CounterMetricFamily("keisei_training_seconds", "seconds of training", labels=["run"])
    for name, listed in runs.items():
        summary = listed.summary
        for family, value in (
            (updates, summary.updates),
            (transitions, summary.transitions),
            (seconds, summary.training_seconds),
        ):
            if value is not None:
                family.add_metric([name], value)
    yield from (updates, transitions, seconds)


def _scores(runs: Mapping[str, ListedRun]) -> Iterator[Metric]:
    scores = GaugeMetricFamily(
        "keisei_score", "last score against an opponent, 0 … 1", labels=["run", "opponent"]
    )
    for name, listed in runs.items():
        for opponent, score in listed.summary.scores.items():
            scores.add_metric([name, opponent], score)
    yield scores


def _workers(runs: Mapping[str, ListedRun]) -> Iterator[Metric]:
    """Yields the numbers of each worker of the runs that are being trained."""
    labels = ["run", "worker"]
    memory = GaugeMetricFamily("keisei_worker_memory_bytes", "resident memory of a worker", labels=labels)
    speed = GaugeMetricFamily(
        "keisei_worker_steps_per_second", "speed of a worker while it plays", labels=labels
    )
    waiting = GaugeMetricFamily(
        "keisei_worker_waiting_share", "share of its time that it waited", labels=labels
    )
    restarts = CounterMetricFamily("keisei_worker_restarts", "restarts of a worker", labels=labels)
    trainer = GaugeMetricFamily(
        "keisei_trainer_memory_bytes", "resident memory of the trainer", labels=["run"]
    )
    for name, listed in runs.items():
        if listed.live is None or listed.summary.state is not RunState.RUNNING:
            continue
        trainer.add_metric([name], listed.live.memory_bytes)
        for worker in listed.live.workers:
            who = [name, str(worker.worker)]
            memory.add_metric(who, worker.memory_bytes)
            speed.add_metric(who, worker.steps_per_second)
            waiting.add_metric(who, worker.waiting_share)
            restarts.add_metric(who, worker.restarts)
    yield from (trainer, memory, speed, waiting, restarts)
