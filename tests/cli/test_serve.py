"""``keisei serve`` refuses what is not safe, and says where it listens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

from typer.testing import CliRunner

from keisei.cli.main import app

RUNNER = CliRunner(env={"COLUMNS": "300", "KEISEI_TOKEN": ""})


def test_another_address_needs_a_token() -> None:
    result = RUNNER.invoke(app, ["serve", "--host", "0.0.0.0"])
    assert result.exit_code == 2
    assert "needs a token there" in result.stderr


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["serve", "--token-file", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "the token cannot be read" in result.stderr


def test_it_listens_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-c",
        "from keisei.cli.main import app; app()",
        "serve",
        str(tmp_path),
        "--port",
        "0",
    ]
    environment = {**os.environ, "COLUMNS": "300", "PYTHONUNBUFFERED": "1", "KEISEI_TOKEN": ""}
    server = subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    assert server.stdout is not None
    try:
        first, second = server.stdout.readline(), server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", first)
        assert found is not None
        assert re.search(rf"http://127\.0\.0\.1:{found[1]}/#token=\S{{20,}}", second)
        connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/api/runs")
        assert connection.getresponse().read() == b'{"runs":[]}'
        connection.close()
        server.send_signal(signal.SIGINT)
        rest, _ = server.communicate(timeout=60)
        assert "Traceback" not in rest
    finally:
        server.kill()
        server.communicate()
