"""Thinking ends: by its deadline, when the client leaves, and with the server, whatever the code of a game does."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from faulty_game_for_tests import Fault, install
from web_for_tests import WON, Answer, Served, add_game, go_live, make_history, serving

from keisei.web import thinkers

ENDLESS = (
    Fault.SPINS,
    Fault.HOLDS_THE_INTERPRETER,
    Fault.SLEEPS_AND_IGNORES_SIGNALS,
    Fault.STOPS_ITS_PROCESS,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs, in a program where the faulty game is installed."""
    (tmp_path / "packages").mkdir()
    monkeypatch.syspath_prepend(str(install(tmp_path / "packages")))
    run = make_history(tmp_path / "runs")
    add_game(run, WON)
    go_live(run)
    return tmp_path / "runs"


def asked(dashboard: Served, *faults: Fault) -> Answer:
    return dashboard.post("/api/play", {"game": "faulty", "actions": [*faults]})


def begin(dashboard: Served, *faults: Fault) -> socket.socket:
    """Asks, and does not wait for the answer."""
    body = json.dumps({"game": "faulty", "actions": [*faults]})
    line = socket.create_connection(("127.0.0.1", dashboard.port), timeout=60)
    line.sendall(
        f"POST /api/play HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return line


def need_all_to_work(dashboard: Served) -> None:
    for path in ("board", "replay?record=games/game.replay.json&ply=3"):
        assert dashboard.get(f"/api/runs/run/{path}").status == 200
    frame = dashboard.post("/api/play", {"run": "run", "seats": ["person", "run@best"], "actions": [4]})
    assert len(frame.json["actions"]) == 2


# The budget.


@pytest.mark.parametrize("depth", [4, 8, 32])
@pytest.mark.parametrize("game", ["shogi", "connect-four"])
def test_a_page_may_not_ask_for_a_deep_search(root: Path, depth: int, game: str) -> None:
    with serving(root) as dashboard:
        for wanted in ({"seats": [f"search:{depth}", "person"]}, {"judge": f"search:{depth}"}):
            answer = dashboard.post("/api/play", {"game": game, **wanted})
            assert answer.status == 400
            assert "search:1 … search:3" in answer.json["error"]
            assert f"keisei play search:{depth}" in answer.json["error"]


# The deadline.


@pytest.mark.parametrize("fault", ENDLESS, ids=lambda fault: fault.name)
def test_what_never_ends_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    with serving(root) as dashboard:
        need_all_to_work(dashboard)
        monkeypatch.setattr(thinkers, "THINKING_SECONDS", 0.5)
        found: list[Answer] = []  # of twice as many as can be thought about at once
        threads = [
            threading.Thread(target=lambda: found.append(asked(dashboard, Fault.NONE, fault)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answer.status for answer in found] == [503] * 4
        assert all("longer than 0.5 s" in answer.json["error"] for answer in found)
        monkeypatch.undo()
        need_all_to_work(dashboard)


def test_a_game_that_is_slow_to_replay_has_the_same_deadline(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(root) as dashboard:
        assert asked(dashboard, Fault.TAKES_HALF_A_SECOND).status == 200
        monkeypatch.setattr(thinkers, "THINKING_SECONDS", 3)
        assert asked(dashboard, *[Fault.TAKES_HALF_A_SECOND] * 20).status == 503


def test_who_finds_no_thinker_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinkers, "THINKING_SECONDS", 600)
    monkeypatch.setattr(thinkers, "WAITING_SECONDS", 0.5)
    with serving(root) as dashboard, ExitStack() as lines:
        for _ in range(thinkers.MOST_THINKERS):
            lines.enter_context(begin(dashboard, Fault.SPINS))
        answer = _until(dashboard, 503)
        assert "2 other requests are being thought about" in answer.json["error"]
        assert dashboard.get("/api/runs").status == 200, "reading goes on"


# Who leaves.


@pytest.mark.parametrize("fault", ENDLESS[1:3], ids=lambda fault: fault.name)
def test_a_client_that_leaves_ends_its_thought(
    root: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    monkeypatch.setattr(thinkers, "THINKING_SECONDS", 600)
    monkeypatch.setattr(thinkers, "WAITING_SECONDS", 60)
    with serving(root) as dashboard:
        for _ in range(3):
            lines = [begin(dashboard, fault) for _ in range(thinkers.MOST_THINKERS + 1)]
            time.sleep(0.3)  # some are thought about now, and some wait
            for line in lines:
                line.close()
        need_all_to_work(dashboard)


# Faults that end by themselves.


@pytest.mark.parametrize("fault", [Fault.LEAVES, Fault.CRASHES], ids=lambda fault: fault.name)
def test_a_process_that_dies_is_replaced(root: Path, fault: Fault) -> None:
    with serving(root) as dashboard:
        for _ in range(3):
            answer = asked(dashboard, fault)
            assert answer.status == 503
            assert "has ended; try again" in answer.json["error"]
        need_all_to_work(dashboard)


def test_an_error_of_a_game_is_told_with_its_place(root: Path) -> None:
    with serving(root) as dashboard:
        answer = asked(dashboard, Fault.RAISES)
        assert answer.status == 400
        assert "ZeroDivisionError: as games do" in answer.json["error"]
        assert "faulty_game_for_tests.py:" in answer.json["error"]
        assert asked(dashboard, Fault.NONE).status == 200


def test_a_thinker_that_was_killed_meanwhile_costs_nobody_an_answer(root: Path) -> None:
    with serving(root) as dashboard:
        before = _thinkers()
        need_all_to_work(dashboard)
        started = _thinkers() - before
        assert started
        for process in started:
            os.kill(process, signal.SIGKILL)
        while _thinkers() & started:
            time.sleep(0.01)
        time.sleep(0.2)
        need_all_to_work(dashboard)


def test_no_thinker_is_left_when_the_server_has_ended(root: Path) -> None:
    before = _thinkers()
    with ExitStack() as lines:
        with serving(root) as dashboard:
            need_all_to_work(dashboard)
            for fault in (Fault.HOLDS_THE_INTERPRETER, Fault.SLEEPS_AND_IGNORES_SIGNALS):
                lines.enter_context(begin(dashboard, fault))
            while len(_thinkers() - before) < thinkers.MOST_THINKERS:
                time.sleep(0.01)
        for _ in range(500):
            if not _thinkers() - before:
                return
            time.sleep(0.02)
    raise AssertionError("a thinker has outlived its server")


def _until(dashboard: Served, status: int) -> Answer:
    for _ in range(100):
        answer = asked(dashboard, Fault.NONE)
        if answer.status == status:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"never answered with {status}")


def _thinkers() -> set[int]:
    """The processes that fork servers of this program have started."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(path.parent.name)] = int(parent)
    return {process for process, parent in found.items() if found.get(parent) == os.getpid()}
