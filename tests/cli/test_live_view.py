"""What a person sees while a run trains: the figures, the panel on a real terminal, and the plain lines."""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console

from keisei.cli.views.live_view import LiveView, TrainingPicture, make_view, sparkline
from keisei.cli.views.plain_view import PlainView
from keisei.cli.views.run_history import KEPT, RunHistory
from keisei.cli.views.wording import clock, one_line
from keisei.learners.contract import Report
from keisei.runs import metric_names as tags
from keisei.runs.rows import EvaluationRow
from keisei.training.events import (
    CollectionSummary,
    Counters,
    Ended,
    Evaluation,
    GameSummary,
    Saved,
    Started,
    Update,
)

STARTED = Started(
    run=Path("runs/first"), game="shogi", network="resnet 6x64", parameters=1_234_567, workers=4,
    backend="process", threads=2, steps=100_000, minutes=None, mode="sync",
)  # fmt: skip
NO_GAMES = GameSummary(0, math.nan, math.nan, math.nan, math.nan, math.nan, {})
GAMES = GameSummary(20, 80.0, 0.1, 0.55, 0.1, 0.05, {"checkmate": 18, "repetition": 2})
NUMBERS = {
    tags.LOSS: 0.2,
    tags.POLICY_LOSS: -0.0123,
    tags.VALUE_LOSS: 0.4321,
    tags.ENTROPY_LOSS: -2.31,
    tags.APPROX_KL: 0.0091,
    tags.CLIP_FRACTION: 0.121,
    tags.EXPLAINED_VARIANCE: 0.52,
    tags.LEARNING_RATE: 3e-4,
    tags.GRADIENT_STEPS: 12,
}
REPORT = Report({0: NUMBERS})


class HandClock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def an_update(number: int, games: GameSummary = GAMES, seconds: float | None = None) -> Update:
    """1,000 transitions in 4 seconds, 3 of them collecting."""
    counters = Counters(number, 1000 * number, 20 * number, 4.0 * number if seconds is None else seconds)
    collection = CollectionSummary(1000, 3.0, 0.5, 2, 0.93, 4, 1, 7)
    return Update(counters, 0.01 * number, games, collection, REPORT, 1.0)


def an_evaluation(update: int, *opponents: str, score: float = 0.975, is_best: bool = False) -> Evaluation:
    rows = [EvaluationRow(update, 0, 0.0, "me", name, 39, 0, 1, score, 0.9, 1.0) for name in opponents]
    return Evaluation(update, tuple(rows), is_best, 2.0)


def drawn(history: RunHistory, width: int, height: int) -> list[str]:
    """The panel's lines, without colours."""
    file = io.StringIO()
    Console(file=file, width=width, height=height).print(TrainingPicture(history))
    return file.getvalue().splitlines()


def a_long_run(history: RunHistory) -> None:
    """Everything a panel has room for, and more."""
    history.start(replace(STARTED, run=Path("runs") / ("long" * 30), network="resnet " * 20))
    for number in range(1, 100):
        history.add_update(an_update(number, NO_GAMES if number % 3 else GAMES))
    for number in range(1, 60):
        history.add_evaluation(
            an_evaluation(number, "random", "runs/" + "deep/" * 20 + "it", "greedy", "best")
        )
    history.add_evaluation(an_evaluation(60, "random", is_best=True))
    history.add_checkpoint(Saved(98, Path("98.ckpt"), 0.1))
    history.add_checkpoint(Saved(99, None, 0.1, "no space left on device"))
    for number in range(100):
        history.add_note(f"note {number} " + "and so on " * 20, "info")


# ----------------------------------------------------------------------------------------------- figures


def test_time_left_follows_the_pace_and_runs_on_between_updates() -> None:
    hand = HandClock()
    history = RunHistory(hand)
    history.start(STARTED)
    assert history.seconds_left is None
    history.add_update(an_update(1))
    assert history.seconds_left == pytest.approx(99_000 / 250)
    hand.now += 10
    assert history.seconds_left == pytest.approx(99_000 / 250 - 10)
    hand.now += 10_000
    assert history.seconds_left == 0


def test_time_left_counts_the_time_of_evaluations_and_speed_does_not() -> None:
    history = RunHistory(HandClock())
    history.start(STARTED)
    history.add_update(an_update(1, seconds=4.0))
    history.add_update(an_update(2, seconds=20.0))  # 12 of them in matches
    assert history.seconds_left == pytest.approx(98_000 / (2_000 / 20))
    assert history.speed == pytest.approx(250)
    assert history.collecting_share == pytest.approx(0.75)


def test_pace_forgets_what_is_long_ago() -> None:
    history = RunHistory(HandClock())
    history.start(STARTED)
    history.add_update(an_update(1, seconds=5000.0))
    for number in range(2, 20):
        history.add_update(an_update(number, seconds=5000.0 + 4 * number))
    assert history.seconds_left == pytest.approx((100_000 - 19_000) / 250)


def test_the_clock_ends_a_run_where_that_comes_first() -> None:
    hand = HandClock()
    history = RunHistory(hand)
    history.start(replace(STARTED, minutes=2.0, counters=Counters(update=5, seconds=30.0)))
    assert history.seconds_left == 90
    history.add_update(an_update(6, seconds=34.0))
    assert history.seconds_left == 86
    history.start(replace(STARTED, minutes=600.0))
    assert history.seconds_left == pytest.approx(94_000 / 250)


def test_elapsed_includes_what_was_before_a_resumption_and_stops_at_the_end() -> None:
    hand = HandClock()
    history = RunHistory(hand)
    history.start(replace(STARTED, counters=Counters(update=5, seconds=30.0)))
    hand.now += 12
    assert history.elapsed == 42
    history.end(Ended("finished", Counters()))
    hand.now += 100
    assert history.elapsed == 42


def test_the_clock_of_a_resumed_run_starts_where_the_last_one_ended_and_never_steps_back() -> None:
    hand = HandClock()
    seen: list[float] = []
    seconds = 30.0
    for _ in range(3):
        history = RunHistory(hand)
        hand.now += 7  # until all workers have started
        assert history.elapsed == 0
        history.start(replace(STARTED, counters=Counters(update=5, seconds=seconds)))
        for _ in range(3):
            seen.append(history.elapsed)
            hand.now += 5
        seconds += 15.25  # the trainer's own clock began a little earlier
        history.end(Ended("interrupted", Counters(update=6, seconds=seconds)))
        seen.append(history.elapsed)
    assert seen == sorted(seen)
    assert seen[-1] == seconds


def test_game_figures_are_weighed_by_games_and_need_one() -> None:
    history = RunHistory()
    history.add_update(an_update(1, NO_GAMES))
    assert math.isnan(history.game_mean(lambda games: games.mean_plies))
    history.add_update(an_update(2, replace(GAMES, games=30, mean_plies=100.0)))
    history.add_update(an_update(3, replace(GAMES, games=10, mean_plies=60.0, endings={"checkmate": 4})))
    assert history.game_mean(lambda games: games.mean_plies) == pytest.approx(90)
    assert history.endings == [("checkmate", 22), ("repetition", 2)]


def test_a_run_remembers_no_more_than_it_shows() -> None:
    history = RunHistory()
    a_long_run(history)
    assert len(history.updates) == len(history.notes) == len(history.evaluations["random"]) == KEPT
    assert history.best_update == 60
    assert history.saved_update == 98


def test_sparklines() -> None:
    assert sparkline([0, 1, 2, 7], 10) == "▁▂▃█"
    assert sparkline([5, 0, 7], 2) == "▁█"
    assert sparkline([3, 3], 10) == "▅▅"
    assert sparkline([0, math.nan, 1, math.inf], 10) == "▁ █ "
    assert sparkline([math.nan], 10) == " "
    assert sparkline([], 10) == ""
    assert sparkline([0.5, 2.0], 10, (0.0, 1.0)) == "▅█"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "00:00"), (61.9, "01:01"), (3599, "59:59"), (36_061, "10:01:01"), (None, "-"), (math.inf, "-")],
)
def test_clocks(seconds: float | None, shown: str) -> None:
    assert clock(seconds) == shown


def test_text_from_elsewhere_becomes_one_printable_line() -> None:
    assert one_line("a\r\nb\x1b[31mc\td") == r"a b\x1b[31mc d"


# ----------------------------------------------------------------------------------------------- the panel


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_of_a_long_run_fits_the_terminal(width: int) -> None:
    history = RunHistory()
    a_long_run(history)
    lines = drawn(history, width, 24)
    assert len(lines) == 23
    assert {len(line) for line in lines} == {width}
    text = "\n".join(lines)
    assert "update 99 · 99,000 of 100,000 steps" in text
    assert "250 steps/s · collect 75 %" in text
    assert "25 % learn · workers 93 % busy" in text
    assert "1,980 finished · 80.0 plies · first wins 55 % · draws 10 % · cut off 5 %" in text
    assert "4 of 4 at work · restarts 1 · policy lag 0.5 · slabs waiting 2 · dropped 7" in text
    assert "97.5 %  90 % to 100 %  +39 =0 -1  update 60" in text
    assert "Evaluations · best: update 60 · 1 more not shown" in text
    assert "Checkpoint · update 98, 00:00 ago" in text
    assert "note 99" in text
    for name, value in [("entropy", "2.310"), ("value loss", "0.4321"), ("explained", "0.520")]:
        assert re.search(rf"{name} +{value} +▅+ ", text)
    for name, value in [("policy loss", "-0.0123"), ("KL", "0.0091"), ("clip fraction", "12.1 %")]:
        assert re.search(rf"{name} +{value} ", text)


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_has_room_for_returns_and_ranks(width: int) -> None:
    history = RunHistory()
    a_long_run(history)
    row = EvaluationRow(61, 0, 0.0, "me", "runs/" + "deep/" * 20 + "it", 50, 0, 10, 0.8, 0.7, 0.9, seats=3)
    by_returns = replace(row, mean_return=12.34, return_low=11.0, return_high=13.5)
    history.add_evaluation(Evaluation(61, (by_returns,), False, 2.0))
    lines = drawn(history, width, 24)
    assert {len(line) for line in lines} == {width}
    assert any("80.0 %  70 % to 90 %   12.34 · rank 1.4  update 61" in line for line in lines)


@pytest.mark.parametrize("size", [(20, 5), (60, 20), (80, 24), (300, 80)])
def test_a_panel_can_be_drawn_at_any_time_and_size(size: tuple[int, int]) -> None:
    history = RunHistory()
    assert drawn(history, *size) == ["starting ..."]
    history.start(STARTED)
    assert any("no update yet" in line for line in drawn(history, 80, 24))
    history.add_update(an_update(1, NO_GAMES))
    a_long_run(history)
    assert all(len(line) == min(size[0], 120) for line in drawn(history, *size))
    history.end(Ended("somebody had enough of it " * 20, Counters()))
    assert all(len(line) == min(size[0], 120) for line in drawn(history, *size))


def test_more_evaluations_and_notes_are_shown_where_there_is_room() -> None:
    history = RunHistory()
    a_long_run(history)
    text = "\n".join(drawn(history, 80, 40))
    assert all(name in text for name in ("random", "deep/it", "greedy", "best  ", "note 85"))
    assert len(text.splitlines()) == 39


def test_no_figure_that_is_not_a_number_is_drawn() -> None:
    history = RunHistory()
    history.start(STARTED)
    nowhere = Report({0: {**NUMBERS, tags.ENTROPY_LOSS: math.nan, tags.VALUE_LOSS: math.inf}})
    history.add_update(replace(an_update(1, NO_GAMES), report=nowhere))
    text = "\n".join(drawn(history, 80, 24))
    assert "no game was finished lately" in text
    assert not re.search(r"\b(nan|inf)\b", text)


def test_a_learner_of_another_kind_shows_what_it_tells() -> None:
    told = Report({0: {"train/td_spread": 0.25, "replay/size": 1e6, tags.LEARNING_RATE: 1e-3}})
    history = RunHistory()
    history.start(STARTED)
    history.add_update(replace(an_update(1), report=told))
    lines = drawn(history, 80, 24)
    assert {len(line) for line in lines} == {80}
    text = "\n".join(lines)
    for name, value in [("learning rate", "1.0e-03"), ("td spread", "0.25"), ("size", "1e\\+06")]:
        assert re.search(rf"{name} +{value} +▅ ", text)
    assert "entropy" not in text
    file = io.StringIO()
    PlainView(Console(file=file)).on_update(replace(an_update(1), report=told))
    assert "  learning rate 1.0e-03  td spread 0.25  size 1e+06  games 20  " in file.getvalue()


def test_a_note_is_shown_as_it_is() -> None:
    view = LiveView(Console(file=io.StringIO()), RunHistory(HandClock()))
    view.on_start(STARTED)
    view.on_update(an_update(1))
    view.note("worker <2> & [bold]friends[/] \x1b[31m\x00", "warning")
    text = "\n".join(drawn(view.history, 80, 24))
    assert "worker <2> & [bold]friends[/]" in text
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "1,000 of 100,000 steps" in text


class Terminal:
    """A real one of 80 x 24, and all that was written to it so far."""

    def __init__(self, slave: TextIO) -> None:
        self.console = Console(file=slave, width=80, height=24)
        self.text = ""
        self.grown = threading.Condition()

    def wait_for(self, pattern: str) -> None:
        with self.grown:
            assert self.grown.wait_for(lambda: re.search(pattern, self.text, re.DOTALL), timeout=60), (
                self.text
            )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = os.openpty()
    tty.setraw(slave)
    with open(slave, "w", encoding="utf-8") as file:
        screen = Terminal(file)
        reader = threading.Thread(target=_read, args=(master, screen))
        reader.start()
        yield screen
    reader.join()
    os.close(master)


def _read(master: int, screen: Terminal) -> None:
    with suppress(OSError):  # so Linux says that the other side was closed
        while block := os.read(master, 65536):
            with screen.grown:
                screen.text += block.decode("utf-8", "replace")
                screen.grown.notify()


def test_on_a_terminal_the_panel_moves_by_itself_and_stays_at_the_end(terminal: Terminal) -> None:
    with make_view(terminal.console) as view:
        assert isinstance(view, LiveView)
        view.on_start(replace(STARTED, counters=Counters(update=7, seconds=60.0)))
        view.on_update(an_update(8))
        terminal.wait_for("update 8 · 8,000 of 100,000 steps · 01:.. elapsed")
        terminal.wait_for("(01:..) elapsed(?!.*\\1 elapsed).*elapsed")  # two frames with clocks that differ
        view.note("stopping after this update; press Ctrl-C again to leave at once")
        view.on_end(Ended("all 100,000 steps are made", an_update(8).counters))
    terminal.wait_for("\x1b\\[\\?25h")  # the cursor is there again
    last = terminal.text.rpartition("╭")[2]
    assert "resumed from update 7" in last
    assert "press Ctrl-C again" in last
    assert "stopped: all 100,000 steps are made" in last
    assert "left" not in last


# ----------------------------------------------------------------------------------------------- lines


def written(file: io.StringIO) -> list[str]:
    assert file.getvalue() == "" or file.getvalue().endswith("\n")
    return file.getvalue().split("\n")[:-1]


def test_a_pipe_gets_lines_that_can_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as some build servers have it
    file = io.StringIO()
    with make_view(Console(file=file)) as view:
        view.on_start(replace(STARTED, minutes=90.0, counters=Counters(update=11)))
        view.on_update(an_update(12))
        view.on_evaluation(an_evaluation(12, "random", "best", is_best=True))
        view.on_checkpoint(Saved(12, Path("12.ckpt"), 0.1))
        view.on_checkpoint(Saved(13, None, 0.1, "no space left on device"))
        view.note("worker 2 was \x1b[31mrestarted\r\nagain", "warning")
        view.on_end(Ended("enough of it", an_update(12).counters))
    assert [re.sub(r"^\d\d:\d\d  |  left 05:5\d$", "", line) for line in written(file)] == [
        "run runs/first  game shogi  100,000 steps or 90 minutes",
        "network resnet 6x64, 1,234,567 parameters, 4 workers (process), 2 threads, sync",
        "resumed from update 11",
        "update 12  12,000 steps (12.0 %)  250/s  entropy 2.310  value loss 0.4321  KL 0.0091  games 20  "
        "plies 80.0  lag 0.5",
        "evaluation of update 12  against random  score 97.5 % (90.0 % to 100.0 %)  39 won 0 drawn 1 lost",
        "evaluation of update 12  against best  score 97.5 % (90.0 % to 100.0 %)  39 won 0 drawn 1 lost",
        "update 12 is the best so far",
        "warning: worker 2 was \\x1b[31mrestarted again",
        "stopped: enough of it  12,000 transitions, 12 updates, 240 games in 48 s",
    ]


def test_lines_tell_returns_and_ranks_where_there_are_any() -> None:
    file = io.StringIO()
    row = EvaluationRow(3, 0, 0.0, "me", "random", 5, 0, 1, 0.75, 0.5, 0.9, seats=3, mean_return=2.5)
    rows = (replace(row, return_low=2.0, return_high=3.0), replace(row, seats=1, opponent="greedy"))
    PlainView(Console(file=file)).on_evaluation(Evaluation(3, rows, False, 2.0))
    assert [line.partition("against ")[2] for line in written(file)] == [
        "random  score 75.0 % (50.0 % to 90.0 %)  return 2.50 (2.00 to 3.00), rank 1.50 of 3",
        "greedy  score 75.0 % (50.0 % to 90.0 %)  return 2.50",
    ]


def test_updates_are_told_every_five_seconds_the_first_and_the_last_always() -> None:
    hand, file = HandClock(), io.StringIO()
    view = PlainView(Console(file=file), history=RunHistory(hand))
    view.on_start(STARTED)
    for number in range(1, 13):
        view.on_update(an_update(number, NO_GAMES))
        hand.now += 2
    view.on_end(Ended("enough of it", an_update(12).counters))
    told = re.findall(r"^(\S+)  update (\d+) .* plies -  ", file.getvalue(), re.MULTILINE)
    assert told == [("00:00", "1"), ("00:06", "4"), ("00:12", "7"), ("00:18", "10"), ("00:24", "12")]


def test_the_line_of_a_huge_run_is_one_line() -> None:
    hand, file = HandClock(), io.StringIO()
    view = PlainView(Console(file=file), history=RunHistory(hand))
    view.on_start(replace(STARTED, steps=99_999_999_999, counters=Counters(seconds=350_000.0)))
    huge = replace(an_update(1).counters, update=999_999, transitions=9_999_999_999, seconds=360_000.0)
    games = replace(GAMES, games=12_345, mean_plies=1234.5)
    view.on_update(replace(an_update(1, games), counters=huge))
    assert len(written(file)) == 3
    assert "update 999999  9,999,999,999 steps" in written(file)[-1]


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("finished", "finished: 1,600,000 transitions, 200 updates, 1 game in 6 min 12 s"),
        ("interrupted", "interrupted: 1,600,000 transitions, 200 updates, 1 game in 6 min 12 s"),
        ("strong enough", "stopped: strong enough  1,600,000 transitions, 200 updates, 1 game in 6 min 12 s"),
    ],
)
def test_how_a_run_ended_is_told_in_one_line(outcome: str, told: str) -> None:
    file = io.StringIO()
    PlainView(Console(file=file)).on_end(Ended(outcome, Counters(200, 1_600_000, 1, 372.4)))
    assert written(file) == [f"06:12  {told}"]


def test_the_last_update_is_not_told_twice() -> None:
    file = io.StringIO()
    view = PlainView(Console(file=file))
    view.on_update(an_update(1))
    view.on_end(Ended("enough of it", an_update(1).counters))
    assert file.getvalue().count("  update 1  1,000 steps (") == 1


def test_long_notes_go_on_in_lines_with_a_time_of_their_own() -> None:
    hand, file = HandClock(), io.StringIO()
    view = PlainView(Console(file=file), quiet=True, history=RunHistory(hand))
    view.on_start(STARTED)
    hand.now += 3725
    words = [f"word{number}" for number in range(60)]
    view.note(" ".join(words), "error")
    lines = written(file)
    assert len(lines) > 2
    assert all(line.startswith("1:02:05  ") and len(line) <= 160 for line in lines)
    assert " ".join(line.removeprefix("1:02:05").strip() for line in lines) == "error: " + " ".join(words)


def test_quiet_tells_warnings_and_nothing_else() -> None:
    file = io.StringIO()
    with make_view(Console(file=file), quiet=True) as view:
        view.on_start(STARTED)
        view.on_update(an_update(1))
        view.on_evaluation(an_evaluation(1, "random", is_best=True))
        view.on_checkpoint(Saved(1, Path("1.ckpt"), 0.1))
        view.note("all is well")
        view.on_end(Ended("enough of it", an_update(1).counters))
        assert file.getvalue() == ""
        view.note("no space left on device", "warning")
        view.note("worker 2 was restarted", "warning")
    assert len(written(file)) == 2


def test_who_gets_which_view(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    console = terminal.console
    assert isinstance(make_view(console), LiveView)
    assert isinstance(make_view(console, plain=True), PlainView)
    assert isinstance(make_view(console, quiet=True), PlainView)
    assert isinstance(make_view(Console(file=io.StringIO()), plain=False), LiveView)
    with open(os.dup(console.file.fileno()), "w", encoding="ascii") as file:
        assert isinstance(make_view(Console(file=file)), PlainView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_view(Console(file=console.file)), PlainView)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_run_outlives_a_log_on_a_full_disk() -> None:
    file = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115 (closing it fails too)
    PlainView(Console(file=file)).note("no space left on device", "warning")
    with pytest.raises(OSError, match="No space left"):
        file.close()


@pytest.mark.parametrize(
    "module",
    [
        "training.callbacks",
        "training.events",
        "cli.views.live_view",
        "cli.views.plain_view",
        "runs.metric_names",
        "cli.main",
    ],
)
def test_who_watches_waits_for_no_torch(module: str) -> None:
    code = f"import sys, keisei.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
