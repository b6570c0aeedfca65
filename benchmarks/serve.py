"""How quick the dashboard is, and what it costs those who train.

`python -m benchmarks.serve` makes a folder of 500 runs, one of them with 50,000 updates, and asks a new server for the
first page and for the page of the long run: cold, and again. Then it trains for a while alone and with 50 clients on
the stream of that run, in turns.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.measure import machine

PROGRAM = (sys.executable, "-c", "from keisei.cli.main import app; app()")
METRICS = 14
"""Curves of the long run; its page shows all of them."""
FIRST_PAGE = (
    "/",
    "/static/style.css",
    "/static/runs.js",
    "/static/uPlot.iife.min.js",
    "/api/runs",
    "/api/session",
)
"""What a browser fetches for the list of runs."""


@dataclass(frozen=True)
class Settings:
    runs: int = 500
    updates: int = 50_000
    clients: int = 50
    rounds: int = 3
    preset: str = "connect-four-ppo"
    steps: int = 60_000


@dataclass(frozen=True)
class Turn:
    """One training."""

    speed: float
    """Transitions per second."""
    server_share: float = 0.0
    """Share of a core that the server used."""


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    port: int
    process_id: int

    def processor_seconds(self) -> float:
        """Gives the time of the processor that it has used."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ServeReport:
    machine: str
    runs: int
    updates: int
    seconds: dict[str, float]
    """For each thing that is asked for."""
    clients: int
    alone: float
    """Transitions per second of training, median."""
    watched: float
    """The same, with clients on the stream."""
    ratio: float
    """Median over pairs of turns."""
    server_share: float
    """Share of a core that the server used while clients were on the stream."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        with console.status("making runs"):
            _make_runs(root, settings)
        seconds = _pages(root, settings.rounds)
        with console.status("training, alone and watched"):
            pairs = [_pair(Path(folder), settings, number) for number in range(settings.rounds)]
    report = ServeReport(
        machine(),
        settings.runs,
        settings.updates,
        seconds,
        settings.clients,
        statistics.median(alone.speed for alone, _ in pairs),
        statistics.median(watched.speed for _, watched in pairs),
        statistics.median(watched.speed / alone.speed for alone, watched in pairs),
        statistics.median(watched.server_share for _, watched in pairs),
    )
    if as_json:
        console.print_json(json.dumps(asdict(report)))
    else:
        _print(report, console)


def _make_runs(root: Path, settings: Settings) -> None:
    from keisei.runs.database import RunDatabase
    from keisei.runs.directory import RunDirectory
    from keisei.runs.rows import EvaluationRow
    from keisei.training.presets import load_preset

    config = load_preset(settings.preset).config().resolved().model_dump(mode="json")
    for number in range(settings.runs):
        own = {"learner": {"learning_rate": 1e-5 * (number + 1)}, "run": {"seed": number}}
        document = {**config, **{section: {**config[section], **own[section]} for section in own}}
        run = RunDirectory.create(root, f"run-{number:03d}", document)
        updates = settings.updates if number == 0 else 20
        with RunDatabase(run.database) as database, database.batch():
            for update in range(1, updates + 1):
                numbers = {f"train/number_{index}": (update * index) % 97 / 97 for index in range(METRICS)}
                database.add_metrics(update, update * 512, {**numbers, "time/time_elapsed": update / 10})
            for update in range(max(1, updates // 100), updates + 1, max(1, updates // 100)):
                player = f"update-{update:09d}"
                row = EvaluationRow(update, update * 512, 1.0, player, "random", 5, 0, 5, 0.5, 0.3, 0.7)
                database.add_evaluation(row)


def _pages(root: Path, rounds: int) -> dict[str, float]:
    """Gives the medians over new servers. Files are in the system's cache, as they are after training."""
    curves = "&".join(f"metric=train/number_{index}" for index in range(METRICS))
    long_run = ("/run/run-000", "/api/runs/run-000", f"/api/runs/run-000/curves?points=300&{curves}")
    asked = {
        "first page, new server": FIRST_PAGE,
        "first page again": FIRST_PAGE,
        "page of the long run, first time": long_run,
        "page of the long run again": long_run,
        "/metrics": ("/metrics",),
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        with _server(root) as server:
            for name, paths in asked.items():
                began = time.perf_counter()
                for path in paths:
                    _get(server.port, path)
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


@contextmanager
def _server(root: Path) -> Iterator[Running]:
    with subprocess.Popen(
        [*PROGRAM, "serve", str(root), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=_plain_environment(),
    ) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rstrip().rstrip("/").rpartition(":")[2])
            while not _answers(port):
                time.sleep(0.01)
            yield Running(port, process.pid)
        finally:
            process.terminate()


def _plain_environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}


def _answers(port: int) -> bool:
    try:
        _get(port, "/api/session")
    except OSError:
        return False
    return True


def _get(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} was answered with {response.status}: {content[:200]!r}")
        return content
    finally:
        connection.close()


def _pair(folder: Path, settings: Settings, number: int) -> tuple[Turn, Turn]:
    """Trains alone and with clients; every second time the other way round."""
    names = ("alone", "watched") if number % 2 == 0 else ("watched", "alone")
    turns = {name: _trained(folder / f"{name}-{number}", settings, name == "watched") for name in names}
    return turns["alone"], turns["watched"]


def _trained(root: Path, settings: Settings, watched: bool) -> Turn:
    """Trains a run. The server is up before, so that its start costs the training nothing."""
    root.mkdir()
    if not watched:
        _training(root, settings).wait()
        return Turn(_speed(root / settings.preset))
    with _server(root) as server:
        process = _training(root, settings)
        while not (root / settings.preset / "live.json").exists() and process.poll() is None:
            time.sleep(0.05)
        used, began = server.processor_seconds(), time.monotonic()
        with _listening(server.port, settings):
            process.wait()
        share = (server.processor_seconds() - used) / (time.monotonic() - began)
    return Turn(_speed(root / settings.preset), share)


def _training(root: Path, settings: Settings) -> subprocess.Popen[bytes]:
    options = ["--steps", str(settings.steps), "--root", str(root), "--set", "evaluation.opponents=[]"]
    return subprocess.Popen([*PROGRAM, "train", settings.preset, *options, "--quiet"])


@contextmanager
def _listening(port: int, settings: Settings) -> Iterator[None]:
    """Opens the streams, and reads what they send."""
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(settings.clients)]
    threads = [threading.Thread(target=_listen, args=(line, settings.preset), daemon=True) for line in lines]
    for thread in threads:
        thread.start()
    yield
    for line in lines:
        line.close()


def _listen(line: socket.socket, run: str) -> None:
    line.sendall(f"GET /api/stream?run={run} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    try:
        while line.recv(65536):
            pass
    except OSError:
        return


def _speed(run: Path) -> float:
    """Gives the median speed of the updates, without the first ones."""
    from keisei.runs.database import RunDatabase
    from keisei.runs.metric_names import SPEED

    with RunDatabase(run / "run.db", read_only=True) as database:
        return statistics.median(point.value for point in database.metric(SPEED)[2:])


def _print(report: ServeReport, console: Console) -> None:
    title = f"{report.machine}; {report.runs} runs, one of {report.updates:,} updates"
    table = Table("what is asked for", "s", title=title, title_justify="left")
    for name, seconds in report.seconds.items():
        table.add_row(name, f"{seconds:.3f}")
    console.print(table)
    console.print(
        f"training alone {report.alone:,.0f} transitions/s, with {report.clients} clients on the stream "
        f"{report.watched:,.0f}; ratio {report.ratio:.2f}; the server used {report.server_share:.1%} of a core"
    )


def main(
    rounds: Annotated[int, typer.Option(min=1, help="New servers, and pairs of trainings.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    run(Settings(rounds=rounds), as_json=as_json, console=Console(highlight=False))


if __name__ == "__main__":
    typer.run(main)
