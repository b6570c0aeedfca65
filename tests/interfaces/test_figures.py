"""Charts as files: what matplotlib is told to draw, and what the files hold."""

from __future__ import annotations

import io
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from keisei.interfaces.charts import COLOURS, Heading, Panel, Picture, Point, Series
from keisei.interfaces.figures import figure_of, image


def curve(*values: float) -> list[Point]:
    return [Point(step, value) for step, value in enumerate(values)]


def picture_of(*series: Series, percent: bool = False) -> Picture:
    return Picture("a picture", [], [Panel("panel", series, percent=percent)], x_name="steps")


def curves(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == "None" and line.get_alpha() is None]


def dots(axes: Axes) -> int:
    return sum(len(line.get_xydata()) for line in axes.lines if line.get_marker() == "o")


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def place(figure: Figure, text: str) -> tuple[float, float]:
    """Where a text stands, in pixels from the bottom left corner."""
    (found,) = [item for item in figure.texts if item.get_text() == text]
    x, y = found.get_transform().transform(found.get_position())
    return float(x), float(y)


def test_a_curve_goes_through_its_points() -> None:
    (line,) = curves(figure_of(picture_of(Series(curve(0, 4, 2)))).axes[0])
    assert line.get_xydata().tolist() == [[0, 0], [1, 4], [2, 2]]
    assert line.get_color() == COLOURS[0]


def test_a_band_lies_around_its_curve() -> None:
    series = Series([Point(0, 0.5, 0.25, 0.75), Point(1, 0.75, 0.5, 1.0)], "curve")
    (band,) = figure_of(picture_of(series, percent=True)).axes[0].findobj(PolyCollection)
    corners = {tuple(map(float, corner)) for corner in band.get_paths()[0].vertices}
    assert corners == {(0, 0.25), (0, 0.75), (1, 0.5), (1, 1.0)}


def test_a_band_of_one_point_is_a_bar() -> None:
    axes = figure_of(picture_of(Series([Point(1, 0.5, 0.25, 0.75)]))).axes[0]
    (bar,) = [line for line in axes.lines if line.get_alpha() is not None]
    assert bar.get_xydata().tolist() == [[1, 0.25], [1, 0.75]]


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf])
def test_gaps_are_gaps(gap: float) -> None:
    axes = figure_of(picture_of(Series(curve(1, 2, gap, 3, gap, 4, 5)))).axes[0]
    assert [len(line.get_xydata()) for line in curves(axes)] == [2, 2]
    assert dots(axes) == 6  # each known point, a lonely one among them, and the end


def test_long_curves_are_thinned_and_say_so() -> None:
    points = curve(*(number % 2 for number in range(10_000)))
    figure = figure_of(picture_of(Series(points)))
    assert len(curves(figure.axes[0])[0].get_xydata()) < 500
    assert "range shaded" in texts(figure)
    assert "range shaded" not in texts(figure_of(picture_of(Series(points[:100]))))


def test_labels_stand_at_the_ends_and_apart() -> None:
    series = [Series(curve(0, 1), "low", 0), Series(curve(9, 1.01), "high", 1), Series(curve(0, 9), "top", 2)]
    figure = figure_of(picture_of(*series))
    places = [place(figure, name) for name in ("low 1", "high 1.01", "top 9")]
    heights = [y for _, y in places]
    assert heights == sorted(heights)
    assert heights[1] - heights[0] >= 12.9
    assert len({x for x, _ in places}) == 1


def test_more_labels_than_have_room_leave_the_curves() -> None:
    series = [Series(curve(0, number), f"curve-{number}", number) for number in range(30)]
    figure = figure_of(picture_of(*series))
    assert len(curves(figure.axes[0])) == 30
    assert 5 < sum(text.startswith("curve-") for text in texts(figure)) < 15


def test_panels_stand_beside_and_below_each_other() -> None:
    small = [Panel(f"small {number}", [Series(curve(1, 2))]) for number in range(5)]
    figure = figure_of(Picture("t", [], [Panel("large", [], columns=2, rows=2), *small], columns=3))
    places = {name: place(figure, name) for name in ("large", *(panel.title for panel in small))}
    columns = sorted({round(x) for x, _ in places.values()})
    rows = sorted({round(-y) for _, y in places.values()})
    cells = {name: (columns.index(round(x)), rows.index(round(-y))) for name, (x, y) in places.items()}
    assert cells == {
        "large": (0, 0),
        "small 0": (2, 0),
        "small 1": (2, 1),
        "small 2": (0, 2),
        "small 3": (1, 2),
        "small 4": (2, 2),
    }


def test_a_second_scale_below_the_first_panel() -> None:
    panels = [Panel(name, [Series(curve(*range(11)))]) for name in "ab"]
    figure = figure_of(Picture("t", [], panels, 1, "steps", [(0, "0"), (5, "7.5")], "minutes"))
    assert [texts(figure).count(name) for name in ("minutes", "steps", "7.5")] == [1, 1, 1]
    middle = figure.axes[0].transData.transform((5, 0))[0]
    assert place(figure, "7.5")[0] == pytest.approx(float(middle), abs=0.2)


def test_a_panel_without_numbers_says_so() -> None:
    for series in ([], [Series([], "curve")], [Series(curve(math.nan, math.nan), "curve")]):
        assert "no numbers yet" in texts(figure_of(picture_of(*series)))


def test_dashes_and_grey() -> None:
    series = [Series(curve(1, 2), "plain", 3), Series(curve(2, 1), "quiet", None, dash=1)]
    plain, quiet = curves(figure_of(picture_of(*series)).axes[0])
    assert (plain.get_linestyle(), plain.get_color()) == ("-", COLOURS[3])
    assert quiet.get_linestyle() == "--"
    assert quiet.get_color() not in COLOURS


def test_long_names_are_cut() -> None:
    picture = Picture("t" * 300, [Heading("h" * 300, "d" * 300)], [Panel("p", [Series(curve(1), "x" * 99)])])
    shown = texts(figure_of(picture))
    assert max(map(len, shown)) < 130
    assert f"…{'x' * 23} 1" in shown


@pytest.mark.parametrize("values", [[1e299, -1e299], [1e-299, 0], [5e-324, 0], [1e15, 1e15 + 1]])
def test_the_largest_and_smallest_numbers_can_be_drawn(values: list[float]) -> None:
    ElementTree.fromstring(image(picture_of(Series(curve(*values))), "svg"))


def test_an_svg_stands_by_itself_and_is_always_the_same() -> None:
    picture = picture_of(Series(curve(1, 2, 3), "curve"))
    content = image(picture, "svg")
    assert content == image(picture, "svg")
    assert b"curve 3</text>" in content
    assert b"<script" not in content
    assert b"@import" not in content


def test_texts_cannot_break_the_picture() -> None:
    nasty = "<b>&\"'$x_\x00\x1b[31m\ud800 漢 end"
    picture = Picture(nasty, [Heading(nasty, nasty, 0)], [Panel(nasty, [Series(curve(1, 2), nasty)])])
    content = image(picture, "svg")
    root = ElementTree.fromstring(content)
    shown = ["".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sum("<b>&\"'$x_" in text for text in shown) >= 4
    assert b"\x1b" not in content


def test_a_png_is_sharp_and_a_pdf_is_a_pdf() -> None:
    picture = picture_of(Series(curve(1, 2, 3), "curve"))
    pixels = np.asarray(Image.open(io.BytesIO(image(picture, "png"))).convert("RGB"))
    assert pixels.shape[1] == 2000
    assert pixels[20, 1000].tolist() == [255, 255, 255]
    blue = (np.abs(pixels.astype(int) - [0, 0x72, 0xB2]).sum(axis=2) < 20).sum()
    assert blue > 500  # the curve is above the background
    assert image(picture, "pdf").startswith(b"%PDF")
