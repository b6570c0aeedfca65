"""The words of USI: options, limits, and lines of information."""

from __future__ import annotations

import pytest

from keisei.interfaces.usi.protocol import EngineOptions, Insight, Limits, Line, info_lines, option_of

NO_DELAY = EngineOptions(delay=0)


def test_every_option_is_offered_with_its_default() -> None:
    lines = list(EngineOptions().offered())
    assert "option name Run type string default search:4" in lines
    assert "option name MultiPV type spin default 1 min 1 max 593" in lines
    assert "option name USI_Ponder type check default false" in lines
    assert "option name Temperature type string default 0.0" in lines
    assert len(lines) == len({line.split()[2] for line in lines}) == 11


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("name Run value runs/my run@42", "run", "runs/my run@42"),
        ("name run value <empty>", "run", ""),
        ("name Temperature value 0.5", "temperature", 0.5),
        ("name Threads value 4", "threads", 4),
        ("name USI_Ponder value true", "ponder", True),
        ("name MoveTime value 250", "move_time", 250),
    ],
)
def test_options_are_set(line: str, field: str, value: object) -> None:
    assert getattr(EngineOptions().changed(*option_of(line.split())), field) == value


@pytest.mark.parametrize(
    "line",
    [
        "name Threads value 0",
        "name Threads value --4",
        "name Threads value",
        "name MultiPV value 99999999999999999999999999",
        "name Temperature value nan",
        "name Temperature value -1",
        "name Temperature value warm",
    ],
)
def test_bad_values_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="got"):
        EngineOptions().changed(*option_of(line.split()))


@pytest.mark.parametrize("line", ["", "name", "value", "name Hash value 3", "name value value", "Run"])
def test_other_options_change_nothing(line: str) -> None:
    assert EngineOptions(run="").changed(*option_of(line.split())) == EngineOptions(run="")


@pytest.mark.parametrize(
    ("line", "turn", "seconds"),
    [
        ("btime 0 wtime 0 byoyomi 1000", 0, (1.0, 1.0)),
        ("btime 60000 wtime 30000", 0, (2.0, 8.0)),
        ("btime 60000 wtime 30000", 1, (1.0, 4.0)),
        ("btime 60000 wtime 0 byoyomi 3000", 0, (5.0, 20.0)),
        ("btime 0 wtime 0 binc 2000 winc 1000", 1, (1.0, 1.0)),
        ("btime 3000 wtime 3000 binc 2000 winc 2000", 0, (2.1, 3.0)),
        ("btime -50 wtime 10", 0, (0.0, 0.0)),
        ("btime 900 wtime 0", 0, (0.03, 0.2)),
        ("btime 90 wtime 0", 0, (0.003, 0.09)),
        ("movetime 700", 0, (0.7, 0.7)),
        ("mate 900", 0, (0.9, 0.9)),
    ],
)
def test_time_is_shared_out(line: str, turn: int, seconds: tuple[float, float]) -> None:
    assert Limits.parse(line.split()).seconds(turn, NO_DELAY) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "line", ["", "infinite", "depth 3", "nodes 100", "btime", "btime x wtime 1e3", "mate infinite"]
)
def test_no_clock_no_limit(line: str) -> None:
    assert Limits.parse(line.split()).seconds(0, NO_DELAY) is None


def test_time_for_the_way_is_kept() -> None:
    limits = Limits.parse(["byoyomi", "1000"])
    assert limits.seconds(0, EngineOptions(delay=200)) == pytest.approx((0.8, 0.8))
    assert limits.seconds(0, EngineOptions(delay=5000)) == pytest.approx((0.5, 0.5))
    assert limits.seconds(0, EngineOptions(delay=0, move_time=300)) == pytest.approx((0.3, 0.3))


def test_words_of_go() -> None:
    limits = Limits.parse(["ponder", "btime", "1", "depth", "7", "nodes", "9", "infinite", "junk"])
    assert (limits.ponder, limits.infinite, limits.depth, limits.nodes) == (True, True, 7, 9)
    assert Limits.parse(["mate", "infinite"]) == Limits(mate=0)


def test_information_is_written_line_by_line() -> None:
    insight = Insight(3, 500, (Line(("7g7f", "3c3d"), "cp 35"), Line(("2g2f",))))
    assert list(info_lines(insight, 0.5, several=True)) == [
        "info depth 3 time 500 nodes 500 nps 1000 multipv 1 score cp 35 pv 7g7f 3c3d",
        "info depth 3 time 500 nodes 500 nps 1000 multipv 2 pv 2g2f",
    ]
    assert "multipv" not in next(info_lines(insight, 0.5, several=False))
