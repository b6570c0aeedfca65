"""``keisei bench replay`` measures everything it promises. Short turns and small slabs: figures mean nothing."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.games.contract import GameSpec


def small() -> Any:
    from benchmarks import replay

    return replay.Settings(rounds=1, seconds=0.005, batch_size=8, table_games=4, horizon=8, slabs=2)


def measured() -> dict[str, Any]:
    from benchmarks import replay

    output = io.StringIO()
    replay.run(small(), as_json=True, console=Console(file=output))
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


class Plain:
    """A buffer of lists, as a peer."""

    def __init__(self, spec: GameSpec, capacity: int, games: int, prioritised: bool) -> None:
        self.rows: list[Any] = []
        self.nbytes = 100 * capacity

    def insert(self, decisions: Any) -> None:
        assert decisions.next_planes.shape == decisions.planes.shape
        legal = np.take_along_axis(decisions.mask, decisions.action[..., None], axis=2)
        assert legal.all()
        self.rows = list(decisions.flat()["action"])

    def sample(self, size: int) -> None:
        assert len(self.rows) == 32


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers.replay_buffers import BufferPeer

    from benchmarks import replay

    def broken(*_: object) -> Any:
        raise RuntimeError("it is broken")

    peers = (
        BufferPeer("Plain", "json", Plain),
        BufferPeer("Nobody", "no_such_package", Plain),
        BufferPeer("Broken", "json", broken, prioritised=True),
    )
    monkeypatch.setattr(replay, "BUFFERS", peers)


@pytest.mark.usefixtures("peers")
def test_all_is_measured_and_peers_that_do_not_run_are_named() -> None:
    report = measured()
    found = {(r["game"], r["name"], r["kind"]) for r in report["results"]}
    assert found == {
        (game, name, kind)
        for game in ("shogi", "connect-four")
        for name, kind in (("keisei", "uniform"), ("keisei", "prioritised"), ("Plain", "uniform"))
    }
    assert all(r["inserts_per_second"] > 0 and r["samples_per_second"] > 0 for r in report["results"])
    assert "no_such_package is not installed" in report["peers_missing"]["Nobody, uniform"]
    assert report["peers_missing"]["Broken, prioritised"] == "RuntimeError: it is broken"
    ours, theirs = ([r for r in report["results"] if r["name"] == name] for name in ("keisei", "Plain"))
    assert 100 < ours[0]["bytes_per_decision"] < 150, "Shogi, packed"
    targets = {target["name"]: target for target in report["targets"]}
    insert = targets["shogi, uniform: insert"]
    assert insert["reached"] == pytest.approx(ours[0]["inserts_per_second"] / theirs[0]["inserts_per_second"])
    assert insert["met"] == (insert["reached"] >= 3)
    assert targets["shogi, uniform: bytes"]["reached"] == pytest.approx(100 / ours[0]["bytes_per_decision"])
    packed = targets["connect-four, uniform: sample, packed"]["reached"]
    assert packed == pytest.approx(ours[2]["packed_samples_per_second"] / theirs[1]["samples_per_second"])
    assert not any("prioritised" in name for name in targets)


@pytest.mark.usefixtures("peers")
def test_the_command_shows_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import replay

    settings = small()
    monkeypatch.setattr(replay, "Settings", lambda **_: settings)
    result = CliRunner().invoke(app, ["bench", "replay", "--rounds", "1"])
    assert result.exit_code == 0, result.output
    for word in ("connect-four", "prioritised", "bytes a decision", "Nobody, uniform was not measured"):
        assert word in result.output
