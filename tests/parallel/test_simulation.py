"""The simulation of a cluster: its limits are those that one can compute by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.parallel.backends.cluster.simulation import (
    GPU_LEARN_SECONDS,
    Assumptions,
    bend,
    forecast,
    growth,
)

FREE = Assumptions(
    nodes=1, cores=2, slab_transitions=100, slab_seconds=1.0, spread=0.0, slab_bytes=0, state_bytes=0,
    driver_seconds=1e-9, beat_seconds=0.0, call_seconds=0.0, weights_bytes=0, learn_seconds=0.0,
)  # fmt: skip
"""Everything but playing costs nothing."""


def test_workers_alone_scale_without_end() -> None:
    rates = [each.slabs_per_second for each in growth(FREE, 8)]
    assert rates == pytest.approx([2, 4, 8, 16])
    assert bend(list(growth(FREE, 8))) is None
    assert forecast(FREE).busy["workers"] == pytest.approx(1)
    assert forecast(FREE).limit == "workers"


def test_the_driver_takes_in_one_slab_after_the_other() -> None:
    given = replace(FREE, nodes=32, driver_seconds=0.1)
    found = forecast(given)
    assert found.slabs_per_second == pytest.approx(10, rel=0.15)
    assert found.limit == "driver"
    bent = bend(list(growth(given, 32)))
    assert bent is not None
    assert bent.nodes in (4, 8), "at 10 slabs a second, of which a node plays 2"


def test_heartbeats_take_their_share_of_the_driver() -> None:
    given = replace(FREE, nodes=32, driver_seconds=0.1, beat_seconds=0.5 / 64)
    assert forecast(given).slabs_per_second == pytest.approx(5, rel=0.15)


def test_the_link_carries_one_slab_after_the_other() -> None:
    found = forecast(replace(FREE, nodes=32, slab_bytes=1000, link=4000.0))
    assert found.slabs_per_second == pytest.approx(4, rel=0.15)
    assert found.bytes_per_second == pytest.approx(4000, rel=0.15)
    assert found.limit == "network"


def test_workers_without_tables_are_idle() -> None:
    found = forecast(replace(FREE, nodes=4, tables=2))
    assert found.slabs_per_second == pytest.approx(2)
    assert found.limit == "tables"


def test_a_round_waits_for_the_learner_and_a_stream_does_not() -> None:
    given = replace(FREE, learn_seconds=0.01)  # 4 tables: 2 s of play, 4 s of learning
    assert forecast(given).slabs_per_second == pytest.approx(4 / 6)
    streaming = forecast(replace(given, mode="async"))
    assert streaming.slabs_per_second == pytest.approx(1, rel=0.1)
    assert streaming.limit == "learner"


def test_weights_are_fetched_once_a_node() -> None:
    given = replace(FREE, nodes=4, weights_bytes=1000, link=1000.0)
    assert forecast(given).slabs_per_second == pytest.approx(16 / (2 + 4))


def test_the_same_again() -> None:
    given = Assumptions(nodes=3)
    assert forecast(given) == forecast(given)


def test_the_command() -> None:
    result = CliRunner().invoke(app, ["simulate", "--nodes", "4", "--cores", "4", "--gpu-learner"])
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    at = next(number for number, words in enumerate(lines) if words[:1] == ["Nodes"])
    row = dict(zip(lines[at], lines[at + 1], strict=True))
    alone = forecast(Assumptions(nodes=1, cores=4, learn_seconds=GPU_LEARN_SECONDS))
    assert (row["Nodes"], row["Workers"]) == ("1", str(alone.workers))
    assert row["Transitions/s"] == f"{alone.transitions_per_second:,.0f}"
    assert row["Limit"] == alone.limit
    assert "a driver twice as fast" in result.stdout
    result = CliRunner().invoke(
        app, ["simulate", "--nodes", "3", "--cores", "2", "--mode", "async", "--json"]
    )
    told = json.loads(result.stdout)
    assert [each["nodes"] for each in told["forecasts"]] == [1, 2, 3]
    assert told["assumptions"]["mode"] == "async"
