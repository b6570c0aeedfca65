"""``keisei serve`` refuses what is not safe, and says where it listens."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from faulty_game_for_tests import Fault, install
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.cli.serve import _token
from keisei.errors import ConfigError
from keisei.web.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()
RUNNER = CliRunner(env={"COLUMNS": "300", "KEISEI_TOKEN": ""})


def test_another_address_needs_a_token() -> None:
    result = RUNNER.invoke(app, ["serve", "--host", "0.0.0.0"])
    assert result.exit_code == 2
    assert "needs a token there" in result.stderr


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for arguments in (["typo"], ["--root", "typo"]):
        result = RUNNER.invoke(app, ["serve", *arguments])
        assert result.exit_code == 2
        assert "the folder of runs typo does not exist" in result.stderr
        assert "keisei serve --root FOLDER" in result.stderr
    assert "the folder of runs runs does not exist" in RUNNER.invoke(app, ["serve"]).stderr
    assert "file is not a folder" in RUNNER.invoke(app, ["serve", "file"]).stderr
    assert "one to show" in RUNNER.invoke(app, ["serve", "a", "--root", "b"]).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("way", [["folder"], ["--root", "folder"], ["folder", "--root", "folder"], []])
def test_an_empty_folder_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: list[str]) -> None:
    folder = tmp_path / (way[-1] if way else "runs")
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    monkeypatch.setattr(
        Server, "uvicorn", lambda server, access: shown.append(str(server.root)) or _Nothing()
    )
    result = RUNNER.invoke(app, ["serve", *way, "--port", "0"])
    assert result.exit_code == 0, result.output
    assert shown == [folder.name]
    assert f"Runs in {folder.name}: http://127.0.0.1:" in result.stdout


class _Nothing:
    """A server that has ended."""

    def run(self, sockets: list[socket.socket]) -> None:
        for listening in sockets:
            listening.close()


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["serve", "--token-file", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "the token cannot be read" in result.stderr


def make_token(path: Path) -> None:
    """Makes one as the documentation says."""
    command = next(line for line in PAGE.splitlines() if "/dev/urandom" in line)
    subprocess.run(["bash", "-ec", f"umask 022; {command}"], cwd=path.parent, check=True)
    (path.parent / "token").rename(path)


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Server(path.parent, token=_token(path)).access()
    return str(caught.value)


def test_a_refused_token_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "token").touch(0o600)
    result = RUNNER.invoke(app, ["serve", "--token-file", str(tmp_path / "token")])
    assert result.exit_code == 2
    assert "a token has at least 16 letters" in result.stderr


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o620, 0o602, 0o610, 0o666, 0o777])
def test_a_token_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a token"
    make_token(path)
    path.chmod(mode)
    told = refusal(path)
    assert f"its mode is {mode:03o}" in told
    assert f"(umask 077; head -c 24 /dev/urandom | base64 > '{path}')" in told


def test_a_token_made_as_documented_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "token-of-mine"
    make_token(path)
    assert path.stat().st_mode & 0o077 == 0
    assert _token(path) == path.read_text().strip()
    path.chmod(0o400)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert _token(link) == _token(path)


@pytest.mark.parametrize("content", ["", "\n", "short\n", "one-line-of-a-token\nand-another-line\n"])
def test_a_file_without_a_good_token_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(content)
    assert "a token" in refusal(path)


def test_a_token_is_read_from_a_plain_file_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        assert "is no plain file" in refusal(path)
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    make_token(path)
    os.chown(path, 12345, 12345)
    assert "belongs to another user" in refusal(path)


@contextmanager
def started(
    folder: Path, *options: str, program: str = ""
) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Starts the command, and gives it with its port and its second line."""
    command = [
        sys.executable,
        "-c",
        f"{program}\nfrom keisei.cli.main import app; app()",
        "serve",
        str(folder),
    ]
    environment = {**os.environ, "COLUMNS": "300", "PYTHONUNBUFFERED": "1", "KEISEI_TOKEN": ""}
    environment["PYTHONPATH"] = str(folder / "packages")
    with subprocess.Popen(
        [*command, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as server:
        assert server.stdout is not None
        try:
            first, second = server.stdout.readline(), server.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", first)
            assert found is not None
            yield server, int(found[1]), second
        finally:
            server.kill()


def get(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    content = connection.getresponse().read()
    connection.close()
    return content


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_it_listens_and_ends_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path) as (server, port, second):
        assert re.search(rf"With buttons:  http://127\.0\.0\.1:{port}/#token=\S{{20,}}", second)
        assert get(port, "/api/runs") == b'{"runs":[]}'
        server.send_signal(number)
        rest, _ = server.communicate(timeout=60)
    assert (rest, server.returncode) == ("", 0)


def test_a_private_server_shows_nothing_without_its_token(tmp_path: Path) -> None:
    with started(tmp_path, "--private") as (_, port, second):
        assert re.search(rf"With the token:  http://127\.0\.0\.1:{port}/#token=\S{{20,}}", second)
        assert b"needs its token" in get(port, "/api/runs")


@pytest.mark.parametrize(
    "fault", [Fault.HOLDS_THE_INTERPRETER, Fault.SLEEPS_AND_IGNORES_SIGNALS, Fault.SPINS]
)
def test_it_ends_whatever_it_does(tmp_path: Path, fault: Fault) -> None:
    """It thinks without end, streams, waits for requests, and sends to clients that take nothing."""
    (tmp_path / "packages").mkdir()
    install(tmp_path / "packages")
    body = f'{{"game": "faulty", "actions": [{fault}]}}'
    head = "POST /api/play HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    page = "GET /static/uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    stream = "GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent = [
        *[f"{head}{len(body)}\r\n\r\n{body}"] * 3,
        f"{head}1000\r\n\r\n ",
        "",
        "GET /",
        page * 500,
        stream,
    ]
    with started(tmp_path) as (server, port, _), ExitStack() as lines:
        for text in sent:
            line = lines.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            line.sendall(text.encode())
        time.sleep(1.5)
        below = processes_below(server.pid)
        assert below, "thinkers have started"
        server.send_signal(signal.SIGINT)
        rest, _ = server.communicate(timeout=60)
        assert (rest, server.returncode) == ("", 0)
        for _ in range(500):
            if not any(Path(f"/proc/{process}").exists() for process in below):
                return
            time.sleep(0.02)
        raise AssertionError("a thinker has outlived the command")


def test_it_ends_though_a_disk_does_not_answer(tmp_path: Path) -> None:
    stuck = "import time, keisei.web.app as app; app.metrics_page = lambda catalogue: time.sleep(100_000)"
    with (
        started(tmp_path, program=stuck) as (server, port, _),
        socket.create_connection(("127.0.0.1", port), timeout=60) as line,
    ):
        line.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.5)
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
        assert server.returncode == 0


def processes_below(ancestor: int) -> set[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}
