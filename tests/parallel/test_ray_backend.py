"""Actors of a Ray cluster play the same bits as workers on one machine."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from games_for_tests import RELAY, TROUBLED, digests, manager_of, nudge, pids_of, sequences_of, until
from ray_for_tests import a_cluster, actor_processes, ray_manager
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.errors import ClusterError, ConfigError, WorkerStartError
from keisei.games.env_config import EnvConfig
from keisei.parallel.backends import make_backend
from keisei.parallel.backends.check import check_backend
from keisei.parallel.backends.cluster import backend as backend_module
from keisei.parallel.backends.cluster.connection import Connection, import_ray
from keisei.parallel.tables import TableSnapshot
from keisei.proving.audit import Findings
from keisei.proving.disturbance import Toll
from keisei.proving.same_experience import VerifySettings, verify
from keisei.proving.soak import SoakSettings, soak

MODEL = {"hidden_dim": 16}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with a_cluster() as running:
        yield running


@pytest.fixture(autouse=True)
def no_actor_left(cluster: Any) -> Iterator[None]:
    yield
    assert until(lambda: not actor_processes())


def test_actors_keep_the_contract() -> None:
    check_backend(lambda arena: make_backend("ray", arena))


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("tictactoe", {"num_workers": 1, "tables": 3}),
        ("tictactoe", {"num_workers": 3, "tables": 3, "compress_slabs": True}),
        (RELAY, {"compression_enabled": True}),
    ],
)
def test_actors_give_the_same_bits(game: str, settings: dict[str, Any]) -> None:
    expected = digests(manager_of(game, "inline", model=MODEL, **settings))
    assert digests(ray_manager(game, model=MODEL, **settings)) == expected


def test_one_digest_also_with_kills_and_a_league() -> None:
    settings = VerifySettings(
        game="tictactoe", backends=("inline", "ray"), workers=(2,), tables=3, games=4, rounds=3, kills=2,
        league=True, hidden_dim=16,
    )  # fmt: skip
    report = verify(settings)
    assert [run.name for run in report.runs] == ["inline", "ray", "crew changes", "ray, disturbed"]
    assert report.same, report.differences
    toll = report.runs[-1].toll
    assert toll is not None
    assert toll.kills == 2


def test_a_soak_finds_nothing_wrong() -> None:
    """It ends when a worker that was struck is back."""
    settings = SoakSettings(
        "tictactoe",
        tables=3,
        workers=2,
        games=4,
        duration=120.0,
        kill_every=0.5,
        backend="ray",
        modes=("sync",),
    )
    enough = threading.Event()

    def watch(share: float, toll: Toll, findings: Findings) -> None:
        if toll.recoveries:
            enough.set()

    report = soak(settings, watch, enough)
    found = report.findings
    assert (found.lost, found.duplicated, found.corrupted) == (0, 0, 0), found.complaints
    assert found.transitions > 0
    assert report.toll.strikes > 0
    assert report.restarts > 0


def test_streams_have_no_gap_and_take_new_weights() -> None:
    with ray_manager(model=MODEL, mode="async", queue_maxsize=3) as manager:
        found = sequences_of(manager, 6)
        assert all(numbers == list(range(len(numbers))) for numbers in found.values())
        nudge(manager)
        newest = manager.sync_model_to_workers()
        assert until(lambda: any(i.record.version == newest for i in manager.collect_experiences(timeout=1)))


def test_a_snapshot_goes_on_elsewhere() -> None:
    with manager_of(backend="inline", model=MODEL) as alone:
        expected = [alone.collect_experiences().digest() for _ in range(3)]
    found, snapshots = [], list[TableSnapshot]()
    for backend in ("ray", "inline", "ray"):
        manager = manager_of(backend=backend, model=MODEL)
        manager.start_workers(snapshots)
        with manager:
            found.append(manager.collect_experiences().digest())
            snapshots = manager.snapshot()
    assert found == expected


def test_an_actor_that_is_killed_is_replaced_and_nothing_changes() -> None:
    expected = digests(manager_of(backend="inline", model=MODEL))
    with ray_manager(model=MODEL) as manager:
        found = []
        for number in range(4):
            if number == 1:
                os.kill(pids_of(manager)[0], signal.SIGKILL)
            found.append(manager.collect_experiences().digest())
            nudge(manager)
            manager.sync_model_to_workers()
        assert until(lambda: (manager.supervisor.pump(0.05), manager.get_status().restarts == 1)[1])
        assert manager.get_status().drops.corrupted == 0
    assert found == expected


def test_a_stopped_actor_is_found_by_its_heartbeat() -> None:
    expected = digests(manager_of(backend="inline"), rounds=3)
    with ray_manager(hang_timeout=2.0) as manager:
        found = [manager.collect_experiences().digest()]
        os.kill(pids_of(manager)[1], signal.SIGSTOP)
        found += [manager.collect_experiences().digest() for _ in range(2)]
    assert found == expected


def test_central_inference_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="inference = central asks the learner's machine in every step"):
        ray_manager(model=MODEL, inference="central")


def test_resources_that_no_node_has() -> None:
    with pytest.raises(ClusterError, match=r"a worker takes 1 CPU and 1 GPU .* no node .* has that: .*3 CPU"):
        ray_manager(worker_gpus=1.0).start_workers()


def test_a_game_that_a_node_cannot_start() -> None:
    options = {"only_starts_in": os.getpid()}
    with pytest.raises(WorkerStartError, match=r"this game starts in one process alone .*on node") as caught:
        ray_manager(TROUBLED, options=options, num_workers=1).start_workers()
    assert "Traceback" in str(caught.value.__cause__)


def test_a_game_that_a_node_cannot_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "game_of_this_machine.py").write_text("from keisei.games.tictactoe import TicTacToe\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(backend_module, "Path", lambda _: Path("/nowhere"))
    with pytest.raises(WorkerStartError, match=r"game_of_this_machine.*on node"):
        ray_manager("game_of_this_machine:TicTacToe", num_workers=1).start_workers()


def test_a_connection_of_the_program_stays_open(cluster: Any) -> None:
    Connection(cluster.address, 1).close()
    assert import_ray().is_initialized()


def test_the_doctor_looks_at_every_node(cluster: Any) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["doctor", "--ray", cluster.address])
    assert result.exit_code == 0, result.output
    assert f"torch {torch.__version__.partition('+')[0]}" in result.output
    assert "3 CPU, 0 GPU" in result.output
    assert re.search(r"clock [+-]0\.\d\d s", result.output)
    assert "All is there." in result.output


def test_a_game_of_a_file_is_played_where_the_file_is(tmp_path: Path) -> None:
    """Other machines are stood for by a file that is gone or changed when the actors start."""
    file = tmp_path / "hex.py"
    file.write_bytes((Path(__file__).parents[2] / "examples" / "hex.py").read_bytes())
    env = EnvConfig(game=f"{file}:Hex").located().model_dump()
    assert digests(ray_manager(env=env)) == digests(manager_of(env=env, backend="inline"))
    file.write_text(file.read_text() + "# a change")
    with pytest.raises(WorkerStartError, match=r"hex\.py on .* is not the file that this run plays by"):
        ray_manager(env=env).start_workers()
    file.unlink()
    with pytest.raises(WorkerStartError, match=r"there is no file .*hex\.py on this machine"):
        ray_manager(env=env).start_workers()
