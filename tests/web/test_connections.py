"""Connections that say nothing, or take nothing, cost the others nothing."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from web_for_tests import Served, make_history, serving

from keisei.web import connections, stream

REQUEST = b"GET /api/session HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /api/stream?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n"
OTHERS = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has many addresses of loopback")


@contextmanager
def open_lines(dashboard: Served, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        lines = []
        for _ in range(count):
            lines.append(stack.enter_context(line_to(dashboard)))
            lines[-1].sendall(sent)
        yield lines


def line_to(dashboard: Served, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", dashboard.port), timeout=60, source_address=(source, 0))


def status(line: socket.socket, request: bytes = REQUEST) -> int:
    """Asks, and gives the status of the answer; 0 if the server hangs up."""
    with suppress(ConnectionError):
        line.sendall(request)
        return heard(line)
    return 0


def heard(line: socket.socket) -> int:
    answer = b""
    with suppress(ConnectionError):
        while len(answer) < 12 and (part := line.recv(4096)):
            answer += part
    return int(answer[9:12] or 0)


def ends(line: socket.socket) -> bool:
    """Waits until the server hangs up."""
    with suppress(ConnectionError):
        while line.recv(65536):
            pass
    return True


def until(found: Callable[[], object]) -> None:
    for _ in range(400):
        if found():
            return
        time.sleep(0.05)
    raise AssertionError("this has not come true")


# Time.


@pytest.mark.parametrize("sent", [b"", b"GET", REQUEST[:-2], REQUEST[:-2] + b"X-Long: "])
def test_two_hundred_connections_that_never_ask_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.5)
    with serving(tmp_path) as dashboard, open_lines(dashboard, 200, sent) as lines:
        for _ in range(
            3
        ):  # silent connections give way one by one, each when it has been silent for a second
            until(lambda: dashboard.get("/api/session").status == 200)
        assert all(map(ends, lines))


def drip(line: socket.socket, data: bytes) -> int:
    """Sends one byte after the other, and gives how many the server took."""
    for sent, byte in enumerate(data):
        try:
            line.sendall(bytes([byte]))
        except ConnectionError:
            return sent
        time.sleep(0.05)
    return len(data)


@pytest.mark.parametrize("first", [b"", REQUEST], ids=["at once", "after a request"])
def test_a_head_that_drips_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with serving(tmp_path) as dashboard, line_to(dashboard) as line:
        assert not first or status(line, first) == 200
        assert drip(line, REQUEST[:-4] + b"\r\nX: " + b"x" * 1000) < 1000
        assert dashboard.get("/api/session").status == 200


def test_a_body_that_drips_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.5)
    with serving(tmp_path) as dashboard, line_to(dashboard) as line:
        line.sendall(
            b"POST /api/play HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100000\r\n\r\n"
        )
        assert drip(line, b" " * 1000) < 1000
        assert dashboard.get("/api/session").status == 200
    assert capfd.readouterr().err == "", "a stranger writes nothing into our terminal"


def test_a_client_that_takes_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TAKING_SECONDS", 0.5)
    asked = 2000
    with serving(tmp_path) as dashboard, line_to(dashboard) as line:
        size = len(dashboard.get("/static/uPlot.iife.min.js").content)
        line.sendall(b"GET /static/uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * asked)
        time.sleep(2)
        found = 0
        with suppress(ConnectionError):
            while part := line.recv(1 << 20):
                found += len(part)
        assert found < asked * size
        assert dashboard.get("/api/session").status == 200


def test_whoever_asks_in_time_keeps_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1)
    with serving(tmp_path) as dashboard:
        connection = HTTPConnection("127.0.0.1", dashboard.port, timeout=60)
        connection.connect()
        line = connection.sock
        for _ in range(20):
            connection.request("GET", "/api/session")
            assert connection.getresponse().read()
            assert connection.sock is line
            time.sleep(0.1)
        connection.close()


def test_a_stream_may_be_silent_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard, line_to(dashboard) as line:
        assert status(line, STREAM) == 200
        line.settimeout(1.5)
        with suppress(TimeoutError):
            while True:
                assert line.recv(65536), "the server has hung up"


# Numbers.


@OTHERS
def test_one_address_cannot_take_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_FROM_ONE", 4)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard, open_lines(dashboard, 4) as lines:
        assert [status(line, STREAM) for line in lines] == [200] * 4
        assert dashboard.get("/api/session").status == 503
        with line_to(dashboard, "127.0.0.2") as other:
            assert status(other) == 200
        lines[0].close()
        until(lambda: dashboard.get("/api/session").status == 200)


@OTHERS
def test_all_addresses_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard, ExitStack() as stack:
        lines = [stack.enter_context(line_to(dashboard, f"127.0.0.{number}")) for number in range(2, 6)]
        assert [status(line, STREAM) for line in lines] == [200] * 4
        assert dashboard.get("/api/session").status == 503
        lines[0].close()
        until(lambda: dashboard.get("/api/session").status == 200)


def test_a_silent_connection_makes_room_for_one_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_FROM_ONE", 4)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 600)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard, open_lines(dashboard, 4) as lines:
        assert status(lines[0], STREAM) == 200
        time.sleep(connections.SILENT_SECONDS)
        assert dashboard.get("/api/session").status == 200
        assert ends(lines[1]), "it has waited longest"
        assert status(lines[3]) == 200
        lines[0].settimeout(0.5)
        with suppress(TimeoutError):
            while True:
                assert lines[0].recv(65536), "it is no silent one"


def test_a_burst_opens_as_many_streams_as_there_may_be(tmp_path: Path) -> None:
    make_history(tmp_path)
    with serving(tmp_path) as dashboard:
        assert streams_of_a_burst(dashboard) == stream.MOST_STREAMS
        # Those that have just been closed may count for a moment; never are there more.
        until(lambda: streams_of_a_burst(dashboard) == stream.MOST_STREAMS)


def streams_of_a_burst(dashboard: Served) -> int:
    with open_lines(dashboard, 193, STREAM) as lines:
        found = [heard(line) for line in lines]
        with line_to(dashboard) as line:
            assert status(line) == 200, "there is still room for a page"
    opened = found.count(200)
    assert opened <= stream.MOST_STREAMS
    assert found.count(503) == 193 - opened
    return opened


def test_streams_that_nobody_waits_for_give_their_places_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients leave before, while and after their stream begins."""
    monkeypatch.setattr(stream, "MOST_STREAMS", 8)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard:
        for number in range(150):
            with line_to(dashboard) as line:
                line.sendall(STREAM)
                if number % 3 == 1:
                    time.sleep(0.002)
                elif number % 3 == 2:
                    heard(line)
        until(lambda: opens_streams(dashboard, 8))


def opens_streams(dashboard: Served, count: int) -> bool:
    with open_lines(dashboard, count, STREAM) as lines:
        return all(heard(line) == 200 for line in lines)
