"""Dashboards for tests: real servers on a free port, and runs that nobody has to train."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from runs_for_tests import make_run

from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.live import Glimpse, LiveStatus, LiveWorker, write_live
from keisei.runs.replays import GameReplay, write_replay
from keisei.runs.rows import EvaluationRow, GameRow, RatingRow, WorkerEventRow
from keisei.training.presets import resolved_presets
from keisei.web.server import Server

TOKEN = "a-token-for-tests-only"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class Served:
    """A dashboard that listens."""

    root: Path
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, {"content-type": "application/json", **headers}, sent)

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
        """Sends the path as it is: no client in between tidies up dots."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(
                method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
            )
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()


BEARER = {"authorization": f"Bearer {TOKEN}"}


@contextmanager
def serving(root: Path, host: str = "127.0.0.1", token: str | None = TOKEN, **more: Any) -> Iterator[Served]:
    server = Server(root, host, 0, token, presets=resolved_presets, **more)
    listening = server.listen()
    uvicorn = server.uvicorn(server.access())
    thread = threading.Thread(target=uvicorn.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not uvicorn.started:
        time.sleep(0.01)
    try:
        yield Served(root, listening.getsockname()[1])
    finally:
        uvicorn.should_exit = True
        thread.join(20)
        listening.close()


def make_history(root: Path, name: str = "run", updates: int = 30, game: str = "tictactoe") -> RunDirectory:
    """A run with checkpoints, curves, matches, ratings and games."""
    run = make_run(root, name, updates=(10, 20), best=10, game=game)
    with RunDatabase(run.database) as database, database.batch():
        for update in range(1, updates + 1):
            numbers = {"train/loss": 1 / update, "perf/transitions_per_second": 1000.0 + update}
            database.add_metrics(update, 100 * update, {**numbers, "time/time_elapsed": update / 2})
        for update in (10, 20):
            score = 0.5 + update / 50
            row = EvaluationRow(
                update, 100 * update, 1.5, f"update-{update:09d}", "random", 8, 1, 1, score, 0.4, 1.0
            )
            database.add_evaluation(row)
        database.add_ratings([RatingRow("random", 20, 1.0, 0.0, -20.0, 20.0, 40)])
        database.add_worker_event(WorkerEventRow(3, 1.0, 0, "restarted", "it fell"))
    return run


def add_game(run: RunDirectory, replay: GameReplay, name: str = "game") -> str:
    """Keeps a finished game, and gives its record."""
    record = f"games/{name}.replay.json"
    write_replay(replay, run.path / record)
    with RunDatabase(run.database) as database:
        row = GameRow(
            10, 1.0, "update-000000010", "random", 1.0, len(replay.actions), "three_in_a_row", record
        )
        database.add_games([row])
    return record


WON = GameReplay("tictactoe", (0, 3, 1, 4, 2), names=("update-000000010", "random"), scores=(1.0, -1.0))
"""X takes the first row."""


def go_live(run: RunDirectory, **changes: Any) -> None:
    """Writes what a trainer would write between two updates."""
    worker = LiveWorker(0, "running", 4321, (0, 1), 512, 900.0, 0.4, 0.5, 0.1, 1, 64 << 20, "it fell")
    empty = "00" * 18 + "ff80"
    usual: dict[str, Any] = {
        "time": time.time(),
        "update": 30,
        "transitions": 3000,
        "progress": 0.25,
        "speed": 1234.0,
        "queue": {"filled": 2},
        "workers": (worker,),
        "board": Glimpse(0, (empty,), (0,), (0,), (4,), (0.25,)),
    }
    write_live(run, LiveStatus(**{**usual, **changes}))
