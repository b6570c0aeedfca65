"""Charts: how numbers become a picture, and how a terminal shows it."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from keisei.interfaces.charts import (
    Heading,
    Panel,
    Picture,
    Point,
    Series,
    segments,
    shown,
    spread,
    thinned,
    tick_labels,
    x_ticks,
    y_ticks,
)
from keisei.interfaces.terminal_charts import TerminalPicture


def curve(*values: float) -> list[Point]:
    return [Point(step, value) for step, value in enumerate(values)]


def picture_of(*series: Series, percent: bool = False) -> Picture:
    return Picture("a picture", [], [Panel("panel", series, percent=percent)], x_name="steps")


def on_terminal(picture: Picture, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=50)
    console.print(TerminalPicture(picture))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_long_curves_are_thinned_to_means_with_their_range() -> None:
    points = curve(*(number % 2 for number in range(10_000)))
    few = thinned(points, 100)
    assert len(few) == 100
    assert all((point.y, point.low, point.high) == (pytest.approx(0.5, abs=0.01), 0, 1) for point in few[:-1])
    assert few[-1] == points[-1]
    assert [point.x for point in few] == sorted(point.x for point in few)
    assert thinned(points[:100], 100) == points[:100]


def test_thinning_keeps_gaps_and_bands() -> None:
    points = [Point(x, math.nan if 400 <= x < 600 else 1.0, 0.9, 1.2) for x in range(1000)]
    few = thinned(points, 50)
    parts = list(segments(few))
    assert len(parts) == 2
    assert parts[0][-1].x < 400
    assert parts[1][0].x >= 600
    assert all((point.low, point.high) == pytest.approx((0.9, 1.2)) for part in parts for point in part)


def test_points_at_one_place_are_thinned_too() -> None:
    assert thinned([Point(7, y) for y in range(9)], 3) == [Point(7, 3.5, 0, 7), Point(7, 8)]


@pytest.mark.parametrize(
    ("values", "bounds", "most", "ticks"),
    [
        ([0.2, 0.7], (0, 1), 3, [0, 0.5, 1]),
        ([0.2, 0.7], (0, 1), 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([21, 36], (0, None), 3, [0, 20, 40]),
        ([-0.3, 1.2], (0, 1), 3, [-1, 0, 1, 2]),  # bounds give way to what is there
        ([0.82, 0.94], (None, None), 3, [0.8, 0.9, 1.0]),
        ([5, 5], (None, None), 3, [4.5, 5, 5.5]),
        ([0, 0], (0, None), 3, [0, 0.5, 1]),
        ([], (None, None), 3, [0, 0.5, 1]),
        ([math.nan], (0, None), 3, [0, 0.5, 1]),
    ],
)
def test_ticks_of_the_y_axis_hold_the_curves(
    values: Sequence[float], bounds: tuple[float | None, float | None], most: int, ticks: Sequence[float]
) -> None:
    panel = Panel("panel", [Series(curve(*values))], low=bounds[0], high=bounds[1])
    assert y_ticks(panel, most) == pytest.approx(ticks)


def test_ticks_of_the_x_axis_are_round() -> None:
    assert tick_labels(x_ticks((0, 2_457_600), 4)) == ["0", "1M", "2M"]
    assert tick_labels(x_ticks((0, 2_457_600), 6)) == ["0", "0.5M", "1M", "1.5M", "2M"]
    assert tick_labels(x_ticks((0, 600_000), 3)) == ["0", "200k", "400k", "600k"]
    assert tick_labels(x_ticks((0, 3000), 3)) == ["0", "1,000", "2,000", "3,000"]


@pytest.mark.parametrize(
    ("ticks", "percent", "labels"),
    [
        ([0, 0.5, 1], True, ["0%", "50%", "100%"]),
        ([0, 0.005, 0.01], True, ["0%", "0.5%", "1.0%"]),
        ([0.3, 0.35, 0.4], False, ["0.30", "0.35", "0.40"]),
        ([-1, 0, 1], False, ["-1", "0", "1"]),
        ([0, 1e-5, 2e-5], False, ["0", "1e-05", "2e-05"]),
        ([0, 1e20], False, ["0", "1e+20"]),
        ([0], False, ["0"]),
    ],
)
def test_labels_of_ticks(ticks: Sequence[float], percent: bool, labels: Sequence[str]) -> None:
    assert tick_labels(ticks, percent) == labels


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.026312, "0.0263"),
        (-1.8349, "-1.83"),
        (99.96, "100"),
        (3584.6, "3,585"),
        (12_345, "12.3k"),
        (999_999, "1,000k"),
        (2_457_600, "2.46M"),
        (1e25, "1e+25"),
        (1.5e-7, "1.5e-07"),
    ],
)
def test_values_in_a_few_digits(value: float, text: str) -> None:
    assert shown(value) == text


def test_the_largest_and_smallest_numbers_can_be_drawn() -> None:
    for values in ([1e299, -1e299], [1e-299, 0], [5e-324, 0], [1e15, 1e15 + 1]):
        assert on_terminal(picture_of(Series(curve(*values))))


def test_spreading_labels() -> None:
    assert spread([5, 50, 20], 10, 100) == [5, 50, 20]
    assert spread([50, 50, 49], 10, 100) == [59, 69, 49]
    assert spread([100, 100, 99], 10, 100) == [90, 100, 80]


def test_a_second_scale_below_the_first_panel() -> None:
    panels = [Panel("a", [Series(curve(*range(11)))]), Panel("b", [Series(curve(*range(11)))])]
    picture = Picture("t", [], panels, 1, "steps", [(0, "0"), (5, "7.5")], "minutes")
    assert any(line.endswith("minutes") and "7.5" in line for line in on_terminal(picture))


def test_a_panel_without_numbers_says_so() -> None:
    for series in ([], [Series([], "curve")], [Series(curve(math.nan, math.nan), "curve")]):
        assert any("no numbers yet" in line for line in on_terminal(picture_of(*series)))


def test_a_terminal_draws_with_dots() -> None:
    lines = on_terminal(picture_of(Series(curve(0, 1), "up"), percent=True), width=40)
    assert lines[0] == "a picture"
    assert lines[2].startswith("panel")
    plot = lines[3:9]
    assert plot[0].startswith("100% ┤")
    assert plot[-1].startswith("  0% ┤")
    assert plot[0].endswith("up 100%")
    dots = [[index for index, sign in enumerate(line) if "\u2800" < sign <= "\u28ff"] for line in plot]
    assert all(dots)
    assert [line[0] for line in dots] == sorted((line[0] for line in dots), reverse=True)
    assert lines[9].startswith("     └┬──")
    assert lines[10].endswith("steps")


def test_a_terminal_leaves_gaps_and_tells_intervals() -> None:
    points = [
        *curve(1, 1),
        Point(2, math.nan),
        Point(3, math.nan),
        Point(4, 1, 0.75, 1.25),
        Point(5, 1, 0.5, 1.5),
    ]
    lines = on_terminal(picture_of(Series(points, "flat")))
    (row,) = [line for line in lines if "flat" in line]
    assert row.endswith("flat 1 (0.5–1.5)")
    assert len(re.findall("[\u2801-\u28ff]+", row)) == 2


@pytest.mark.parametrize("width", [20, 60, 80, 300])
def test_a_terminal_of_any_width(width: int) -> None:
    panels = [Panel(f"panel {number}", [Series(curve(1, 5, 2), "a curve")]) for number in range(3)]
    picture = Picture("t", [Heading("name", "detail", 1)], [Panel("wide", [], columns=2), *panels], columns=2)
    lines = on_terminal(picture, width)
    assert max(map(len, lines)) <= width
    assert sum("panel" in line for line in lines) == 2  # two beside each other, one below
