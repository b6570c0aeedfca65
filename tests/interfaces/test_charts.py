"""Charts: how numbers become a picture, as SVG and on a terminal."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

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
from keisei.interfaces.svg_charts import COLOURS, svg
from keisei.interfaces.terminal_charts import TerminalPicture

NAMESPACE = "{http://www.w3.org/2000/svg}"


def curve(*values: float) -> list[Point]:
    return [Point(step, value) for step, value in enumerate(values)]


def picture_of(*series: Series, percent: bool = False) -> Picture:
    return Picture("a picture", [], [Panel("panel", series, percent=percent)], x_name="steps")


def drawn(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(svg(picture))


def elements(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return list(root.iter(NAMESPACE + name))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in elements(root, "text")]


def corners(element: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = [pair.split(",") for pair in element.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def on_terminal(picture: Picture, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=50)
    console.print(TerminalPicture(picture))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_an_svg_stands_by_itself() -> None:
    text = svg(picture_of(Series(curve(1, 2, 3), "curve")))
    root = ElementTree.fromstring(text)
    assert root.tag == f"{NAMESPACE}svg"
    assert {"width", "height", "viewBox"} <= root.attrib.keys()
    assert not re.search(r"<script|href|url\(|@import|@font-face", text)
    background = elements(root, "rect")[0].attrib
    assert background["fill"] == "#ffffff"
    assert float(background["width"]) == pytest.approx(float(root.attrib["width"]), abs=2)


def test_a_curve_goes_through_its_points() -> None:
    (line,) = elements(drawn(picture_of(Series(curve(0, 4, 2), "curve"))), "polyline")
    (x0, y0), (x1, y1), (x2, y2) = corners(line)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y2 == pytest.approx(y2 - y1, abs=0.2)
    assert y1 < y2 < y0  # larger values are higher up
    assert line.attrib["stroke"] == COLOURS[0]


def test_a_band_lies_around_its_curve() -> None:
    series = Series([Point(0, 0.5, 0.25, 0.75), Point(1, 0.75, 0.5, 1.0)], "curve")
    root = drawn(picture_of(series, percent=True))
    (line,), (band,) = elements(root, "polyline"), elements(root, "polygon")
    (left, right), (high0, high1, low1, low0) = corners(line), corners(band)
    assert high0[0] == low0[0] == left[0]
    assert high1[0] == low1[0] == right[0]
    assert high0[1] < left[1] < low0[1]
    assert low0[1] - left[1] == pytest.approx(left[1] - high0[1], abs=0.2)


def test_a_band_of_one_point_is_a_bar() -> None:
    root = drawn(picture_of(Series([Point(1, 0.5, 0.25, 0.75)])))
    bar = elements(root, "rect")[1].attrib
    centre = float(bar["y"]) + float(bar["height"]) / 2
    assert centre == pytest.approx(float(elements(root, "circle")[0].attrib["cy"]), abs=0.2)


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf])
def test_gaps_are_gaps(gap: float) -> None:
    series = Series(curve(1, 2, gap, 3, gap, 4, 5))
    root = drawn(picture_of(series))
    assert [len(corners(line)) for line in elements(root, "polyline")] == [2, 2]
    assert len(elements(root, "circle")) == 6  # each known point, a lonely one among them, and the end
    assert [[point.y for point in part] for part in segments(series.points)] == [[1, 2], [3], [4, 5]]
    assert "nan" not in svg(picture_of(series))
    assert "inf" not in svg(picture_of(series))


def test_long_curves_are_thinned_to_means_with_their_range() -> None:
    points = curve(*(number % 2 for number in range(10_000)))
    few = thinned(points, 100)
    assert len(few) == 100
    assert all((point.y, point.low, point.high) == (pytest.approx(0.5, abs=0.01), 0, 1) for point in few[:-1])
    assert few[-1] == points[-1]
    assert [point.x for point in few] == sorted(point.x for point in few)
    assert thinned(points[:100], 100) == points[:100]
    text = svg(picture_of(Series(points)))
    assert len(text) < 30_000
    assert "range shaded" in text
    assert "range shaded" not in svg(picture_of(Series(points[:100])))


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
        ElementTree.fromstring(svg(picture_of(Series(curve(*values)))))
        assert on_terminal(picture_of(Series(curve(*values))))


def test_labels_stand_at_the_ends_and_apart() -> None:
    series = [Series(curve(0, 1), "low", 0), Series(curve(9, 1.01), "high", 1), Series(curve(0, 9), "top", 2)]
    root = drawn(picture_of(*series))
    labels = {element.text: element.attrib for element in elements(root, "text")}
    names = ["top 9", "high 1.01", "low 1"]
    heights = [float(labels[name]["y"]) for name in names]
    assert heights == sorted(heights)
    assert heights[2] - heights[1] >= 13
    assert len({labels[name]["x"] for name in names}) == 1
    assert len({labels[name]["style"] for name in names}) == 3


def test_spreading_labels() -> None:
    assert spread([5, 50, 20], 10, 100) == [5, 50, 20]
    assert spread([50, 50, 49], 10, 100) == [59, 69, 49]
    assert spread([100, 100, 99], 10, 100) == [90, 100, 80]


def test_more_labels_than_have_room_leave_the_curves() -> None:
    series = [Series(curve(0, number), f"curve-{number}", number) for number in range(30)]
    root = drawn(picture_of(*series))
    assert len(elements(root, "polyline")) == 30
    labels = [text for text in texts(root) if text.startswith("curve-")]
    assert labels[0] == "curve-0 0"
    assert 5 < len(labels) < 15


def test_texts_cannot_break_the_picture() -> None:
    nasty = "<b>&\"'\x00\x1b[31m\ud800 end"
    picture = Picture(nasty, [Heading(nasty, nasty, 0)], [Panel(nasty, [Series(curve(1, 2), nasty)])])
    text = svg(picture)
    root = ElementTree.fromstring(text.encode())
    assert sum("<b>&\"'" in shown_text for shown_text in texts(root)) == 4
    assert "\x1b" not in text


def test_long_names_are_cut() -> None:
    picture = Picture("t" * 300, [Heading("h" * 300, "d" * 300)], [Panel("p", [Series(curve(1), "x" * 99)])])
    title, heading, *_, label = texts(drawn(picture))
    assert title.endswith("…")
    assert len(title) < 100
    assert len(heading) < 150
    assert label == f"…{'x' * 23} 1"


def test_panels_stand_beside_and_below_each_other() -> None:
    small = [Panel(f"small {number}", [Series(curve(1, 2))]) for number in range(5)]
    picture = Picture("t", [], [Panel("large", [], columns=2, rows=2), *small], columns=3)
    titles = [element for element in elements(drawn(picture), "text") if element.get("class") == "name"]
    places = {element.text: (float(element.attrib["x"]), float(element.attrib["y"])) for element in titles}
    columns = sorted({x for x, _ in places.values()})
    rows = sorted({y for _, y in places.values()})
    cells = {name: (columns.index(x), rows.index(y)) for name, (x, y) in places.items()}
    assert cells == {
        "large": (0, 0),
        "small 0": (2, 0),
        "small 1": (2, 1),
        "small 2": (0, 2),
        "small 3": (1, 2),
        "small 4": (2, 2),
    }


def test_a_second_scale_below_the_first_panel() -> None:
    panels = [Panel("a", [Series(curve(*range(11)))]), Panel("b", [Series(curve(*range(11)))])]
    picture = Picture("t", [], panels, 1, "steps", [(0, "0"), (5, "7.5")], "minutes")
    root = drawn(picture)
    assert texts(root).count("minutes") == texts(root).count("steps") == texts(root).count("7.5") == 1
    by_text = {element.text: element.attrib for element in elements(root, "text")}
    line = corners(elements(root, "polyline")[0])
    assert float(by_text["7.5"]["x"]) == pytest.approx(line[5][0], abs=0.2)
    assert any(line.endswith("minutes") and "7.5" in line for line in on_terminal(picture))


def test_a_panel_without_numbers_says_so() -> None:
    for series in ([], [Series([], "curve")], [Series(curve(math.nan, math.nan), "curve")]):
        assert "no numbers yet" in texts(drawn(picture_of(*series)))
        assert any("no numbers yet" in line for line in on_terminal(picture_of(*series)))


def test_dashes_and_grey() -> None:
    series = [Series(curve(1, 2), "plain", 3), Series(curve(2, 1), "quiet", None, dash=1)]
    plain, quiet = elements(drawn(picture_of(*series)), "polyline")
    assert "stroke-dasharray" not in plain.attrib
    assert plain.attrib["stroke"] == COLOURS[3]
    assert "stroke-dasharray" in quiet.attrib
    assert quiet.attrib["stroke"] not in COLOURS


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
