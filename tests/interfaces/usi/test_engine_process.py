"""Engines that do their worst: they cost bounded memory and time, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines_for_tests import bad_engine

from keisei.errors import EngineError, EngineTimeoutError
from keisei.interfaces.usi import engine_process
from keisei.interfaces.usi.client import UsiClient
from keisei.machine.processes import session_members

SMALL = 4 << 20
"""Far more than any engine needs of our memory, and far less than one writes in a second."""
STUBBORN = """
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 1000 & wait"])
subprocess.Popen(["bash", "-c", "set -m; sleep 1000 & wait"])
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Callable[[str, str], UsiClient]]:
    """Makes engines of Python that do something before they say that they are ready, and something after. Their
    process id is in the file ``id``."""
    clients: list[UsiClient] = []

    def make(first: str, then: str = "") -> UsiClient:
        path = tmp_path / "engine.py"
        ready = (
            f"open({str(tmp_path / 'id')!r}, 'w').write(str(os.getpid())); os.write(1, b'usiok\\nreadyok\\n')"
        )
        path.write_text(
            f"import os, signal, subprocess, sys, time\n{first}\n{ready}\n{then}\ntime.sleep(1000)\n"
        )
        clients.append(UsiClient([sys.executable, str(path)]))
        return clients[-1]

    yield make
    for client in clients:
        client.end()


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refusal_of(client: UsiClient, error: type[EngineError], match: str) -> None:
    client.new_game()
    with pytest.raises(error, match=match):
        client.go("startpos", "byoyomi 1000", 1.0)


@pytest.mark.parametrize(
    ("flood", "error", "match"),
    [
        ("os.write(1, b'x' * 65536)", EngineError, "a line of more than 65536 bytes"),
        ("os.write(1, b'info string x\\n' * 5000)", EngineTimeoutError, "did not say bestmove in time"),
        ("os.write(1, b'\\n' * 65536)", EngineTimeoutError, "did not say bestmove in time"),
        ("os.write(2, b'x' * 65536)", EngineTimeoutError, "did not say bestmove in time"),
        ("os.write(1, b'info\\n'); os.write(2, b'x\\n' * 9999)", EngineTimeoutError, "did not say bestmove"),
    ],
)
def test_a_flood_costs_no_memory_and_ends(
    hostile: Callable[..., UsiClient], flood: str, error: type[EngineError], match: str
) -> None:
    client = hostile("", f"while True: {flood}")
    assert peak_of(lambda: refusal_of(client, error, match)) < SMALL
    client.end()


def test_a_flood_that_nobody_reads_waits_in_its_pipe(
    hostile: Callable[..., UsiClient], tmp_path: Path
) -> None:
    written = tmp_path / "written"
    count = (
        f"for n in range(10**6): os.write(1, b'info\\n' * 1000); open({str(written)!r}, 'w').write(str(n))"
    )
    client = hostile("", count)
    client.start()
    waits_until(lambda: written.exists() and written.read_text() not in ("", "0"))
    size = 0
    while (now := int(written.read_text() or 0)) != size:
        size = now
        time.sleep(0.5)
    assert size * 5000 < SMALL


def test_what_an_engine_says_last_is_cut_and_has_no_signs_for_terminals(
    hostile: Callable[..., UsiClient],
) -> None:
    client = hostile("", "os.write(2, b'x' * 10**6 + b'\\n\\x1b[2J the end'); os._exit(9)")
    client.start()
    with pytest.raises(EngineError, match=r"has ended with code 9: x+ / \?\[2J the end") as caught:
        client.go("startpos", "byoyomi 1000", 10.0)
    assert len(str(caught.value)) < 4096


def test_an_engine_that_never_reads_is_an_error(
    hostile: Callable[..., UsiClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "_SEND_SECONDS", 0.3)
    client = hostile("", "while True: os.write(1, b'bestmove 7g7f\\n')")
    client.start()
    position = "startpos moves" + " 7g7f" * 500
    with pytest.raises(EngineError, match="does not read what it is told"):
        any(client.go(position, "byoyomi 1000", 10.0) == "resign" for _ in range(1000))


def test_an_engine_that_closes_its_output_and_goes_on(
    hostile: Callable[..., UsiClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "_END_SECONDS", 0.3)
    client = hostile("", "os.close(1)")
    client.start()
    with pytest.raises(EngineError, match="has closed its output"):
        client.go("startpos", "byoyomi 1000", 10.0)


@pytest.mark.parametrize("command", [["sh", "-c", "sleep 1000"], ["sh", "-c", "sleep 1000 & sleep 1000"]])
def test_a_program_behind_a_shell_ends_with_it(command: list[str]) -> None:
    client = UsiClient(command)
    running: list[int] = []
    real = engine_process.end_session

    def watched(session: int) -> None:
        running.extend([session, len(session_members(session))])
        real(session)

    engine_process.end_session = watched
    try:
        with pytest.raises(EngineTimeoutError, match="did not say usiok in time"):
            client.start(0.3)
    finally:
        engine_process.end_session = real
    assert running[1] > 0
    assert session_members(running[0]) == []


def test_an_engine_that_ignores_everything_ends_with_its_children(
    hostile: Callable[..., UsiClient], tmp_path: Path
) -> None:
    client = hostile(STUBBORN)
    client.start()
    session = int((tmp_path / "id").read_text())
    waits_until(lambda: len(session_members(session)) == 5)
    client.end()
    assert session_members(session) == []


def test_children_of_an_engine_that_has_quit_end_too(tmp_path: Path) -> None:
    path = bad_engine(tmp_path, "leaves", "pass")
    text = path.read_text().replace("moves = 0", "import subprocess; subprocess.Popen(['sleep', '1000'])")
    path.write_text(text.replace("moves +=", "moves ="))
    client = UsiClient([str(path)])
    client.start()
    assert client._engine is not None
    session = client._engine._process.pid
    waits_until(lambda: len(session_members(session)) == 2)
    client.end()
    assert session_members(session) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_match_that_is_ended_leaves_no_engine(
    hostile: Callable[..., UsiClient], tmp_path: Path, number: signal.Signals
) -> None:
    engine = hostile(STUBBORN).command
    program = "from keisei.cli.entry import main; main()"
    match = [sys.executable, "-c", program, "match", f"usi:{' '.join(engine)}", "random", "--byoyomi=600"]
    running = subprocess.Popen(match, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)
    name = tmp_path / "id"
    try:
        waits_until(lambda: name.exists() and name.read_text() != "")
        session = int(name.read_text())
        assert session_members(session) != []
        running.send_signal(number)
        assert running.wait(60) != 0
    finally:
        running.kill()
        running.wait()
    assert session_members(session) == []
    assert session != os.getsid(0)


def waits_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """The time is only there to end a test that fails."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
