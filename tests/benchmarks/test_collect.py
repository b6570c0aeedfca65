"""``keisei bench collect`` measures everything it promises. Short turns and a small network: figures mean nothing."""

from __future__ import annotations

import io
import json
import multiprocessing
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.policies.networks import ModelConfig


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return _measured()


def _measured(**changes: Any) -> dict[str, Any]:
    from benchmarks import collect

    settings = collect.Settings(
        rounds=1,
        seconds=0.01,
        games_per_worker=4,
        workers=(1, 2),
        network=ModelConfig(hidden_dim=8, num_layers=1),
        slab=16,
        **changes,
    )
    output = io.StringIO()
    collect.run(settings, as_json=True, console=Console(file=output))
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


def test_all_of_both_games_is_measured(report: dict[str, Any]) -> None:
    found = {(r["group"], r["name"], r["game"], r["policy"], r["workers"]) for r in report["results"]}
    expected = {
        *(("keisei", mode, game, policy, workers)
          for mode in ("sync", "async") for game in ("dummy", "shogi")
          for policy in ("network", "random") for workers in (1, 2)),
        *(("limit", name, game, "network", workers)
          for name in ("forward", "forward and sampling") for game in ("dummy", "shogi") for workers in (1, 2)),
        *(("limit", f"shared memory, a {size} a slot", game, "random", workers)
          for size in ("slab", "step") for game in ("dummy", "shogi") for workers in (1, 2)),
        *(("baseline", name, "dummy", policy, 2)
          for name in ("queue of dicts", "queue of episodes") for policy in ("network", "random")),
    }  # fmt: skip
    assert found == expected
    assert all(result["per_second"] > 0 for result in report["results"])
    assert multiprocessing.active_children() == []


def test_ours_come_with_their_cost_and_where_the_time_went(report: dict[str, Any]) -> None:
    ours = [result for result in report["results"] if result["group"] == "keisei"]
    assert len(ours) == 16
    for result in ours:
        low, high = (100, 200) if result["game"] == "shogi" else (17_000, 25_000)
        assert low < result["bytes_per_transition"] < high
        shares = result["shares"]
        assert set(shares) == {"game", "policy", "transport", "waiting"}
        assert all(0 <= share <= 1 for share in shares.values())
        assert sum(shares.values()) == pytest.approx(1)


def test_targets_are_ratios_of_what_was_measured(report: dict[str, Any]) -> None:
    dummy = [r for r in report["results"] if r["game"] == "dummy"]
    rates = {(r["name"], r["policy"], r["workers"]): r["per_second"] for r in dummy}
    best = max(rates["sync", "random", 2], rates["async", "random", 2])
    targets = {target["name"]: target for target in report["targets"]}
    share = targets["share of the limit (shared memory, a step a slot)"]
    assert share["reached"] == pytest.approx(best / rates["shared memory, a step a slot", "random", 2])
    assert share["wanted"] == 0.9
    assert share["met"] == (share["reached"] >= 0.9)
    assert report["scaling"]["dummy, random, sync"] == pytest.approx(
        rates["sync", "random", 2] / rates["sync", "random", 1]
    )
    assert targets["Shogi, bytes per transition, at most"]["met"]


def test_peers_that_do_not_run_are_named_and_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers import Peer

    from benchmarks import collect

    absent = Peer("Nobody", "shogi", "random", 1, 1, "nobody", "no_such_package", "inprocess")
    broken = Peer("Broken", "shogi", "random", 1, 1, "no_such_module", "gymnasium", "inprocess")
    monkeypatch.setattr(collect, "PEERS", (absent, broken))
    report = _measured(games=("shogi",), peers=True)
    assert "no_such_package is not installed" in report["peers_missing"]["Nobody"]
    assert "no_such_module" in report["peers_missing"]["Broken"]
    assert len(report["results"]) == 16


@pytest.mark.parametrize(("game", "policy"), [("dummy", "network"), ("dummy", "random"), ("shogi", "random")])
def test_a_peer_keeps_what_it_plays(game: str, policy: str) -> None:
    from benchmarks.peers import Peer
    from benchmarks.peers.gymnasium_ import Collector

    collector = Collector(Peer("", game, policy, 1, 3, "gymnasium_", "gymnasium", "inprocess"))
    assert collector._step() == 3
    rollout = collector._rollout
    first = rollout.masks[0].astype(bool)
    assert first[range(3), rollout.actions[0]].all()
    assert first.sum() == 3 * (30 if game == "shogi" else 1094)
    collector.close()


@pytest.mark.slow
def test_gymnasium_runs_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers import GYMNASIUM, PEERS

    from benchmarks import collect

    peers = [peer for peer in PEERS if peer.module == GYMNASIUM[0] and peer.threads == 1]
    monkeypatch.setattr(collect, "PEERS", peers)
    report = _measured(peers=True)
    assert report["peers_missing"] == {}
    found = {r["name"]: r["per_second"] for r in report["results"] if r["group"] == "peer"}
    assert set(found) == {peer.name for peer in peers}
    assert min(found.values()) > 0
    names = {target["name"] for target in report["targets"]}
    assert {"over the best peer, network", "over the best peer, random"} <= names
    assert "Shogi over the best peer with cshogi" in names


@pytest.mark.slow
def test_the_command_prints_tables() -> None:
    result = CliRunner().invoke(app, ["bench", "collect", "--rounds", "1", "--seconds", "0.01"])
    assert result.exit_code == 0, result.output
    assert "Targets" in result.stdout
    assert "share of the inference limit" in result.stdout


def test_the_command_takes_one_game_and_gives_json() -> None:
    arguments = [
        "--rounds",
        "1",
        "--seconds",
        "0.01",
        "--game",
        "shogi",
        "--games-per-worker",
        "8",
        "--json",
    ]
    result = CliRunner().invoke(app, ["bench", "collect", *arguments])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["games_per_worker"] == 8
    assert {r["game"] for r in report["results"]} == {"shogi"}
