"""What cannot work on a cluster is refused with a clear error, in bounded time, and nothing is left running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray_for_tests import ray_manager
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.errors import ClusterError, ConfigError
from keisei.games.tictactoe import TicTacToe
from keisei.parallel.backends.cluster import connection
from keisei.parallel.backends.cluster.connection import Connection, check_token_file, import_ray


def test_ray_is_not_imported_unless_it_is_used() -> None:
    program = (
        "import sys\n"
        "from keisei.parallel import ParallelManager\n"
        "config = {'tables': 1, 'games': 2, 'horizon': 4, 'backend': 'inline'}\n"
        "with ParallelManager({'game': 'tictactoe'}, None, config) as manager:\n"
        "    manager.collect_experiences()\n"
        "ParallelManager({'game': 'tictactoe'}, None, config | {'backend': 'ray'})\n"
        "assert 'ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"needs Ray, which is not installed: pip install 'keisei\[ray\]'"):
        import_ray()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:10001", "not through Ray Client"),
        ("somewhere", "write local, auto or host:port"),
    ],
)
def test_a_wrong_address_is_an_error_at_once(address: str, told: str) -> None:
    with pytest.raises(ClusterError, match=told):
        Connection(address, 1)
    assert not connection._SHARED


def test_no_cluster_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at [\d.]+:1\."):
        Connection("auto", 1)


def test_a_training_that_finds_no_cluster_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ["--set", "parallel.backend=ray", "--set", "parallel.address=127.0.0.1:1"]
    result = CliRunner().invoke(app, ["train", "tictactoe-ppo", *settings])
    assert result.exit_code == 2, result.output
    assert "no Ray cluster answers at 127.0.0.1:1" in result.output
    assert not list(tmp_path.glob("runs/*"))


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.9.1"
        )

    monkeypatch.setattr(import_ray(), "init", refuse)
    with pytest.raises(ClusterError, match=r"install the same Python and Ray everywhere: .*Ray: 2\.9\.0"):
        Connection("local", 1)
    assert not connection._SHARED


@pytest.mark.parametrize(("mode", "fine"), [(0o600, True), (0o400, True), (0o640, False), (0o644, False)])
def test_a_token_that_others_can_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, fine: bool
) -> None:
    token = tmp_path / "auth_token"
    token.write_text("secret")
    token.chmod(mode)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    if fine:
        check_token_file()
        return
    with pytest.raises(ClusterError, match=rf"has mode {mode:03o}.*chmod 600 {token}"):
        check_token_file()


def test_a_game_of_the_main_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Game", TicTacToe, raising=False)
    with pytest.raises(ConfigError, match="defined in the program's main module"):
        ray_manager("__main__:Game").start_workers()
