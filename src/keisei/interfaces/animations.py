"""Animations of worlds as GIF, for which Pillow is needed, or as SVG, with turns, returns and a legend."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from keisei.errors import ConfigError
from keisei.games.worlds.colours import agent_colour, hexadecimal
from keisei.games.worlds.entities import Colour
from keisei.games.worlds.picture import Shot

__all__ = ["animated_gif", "animated_svg"]

_CELL, _LINE, _PANEL, _FONT = 16, 18, 150, 12
"""Pixels of a cell, of a line of the panel, of the panel's width and of its letters."""
_MOST_AGENTS = 12
"""Agents with a line of their own."""
_PAGE, _INK = (255, 255, 255), (40, 40, 45)
Legend: TypeAlias = Sequence[tuple[str, Colour]]


class Square(NamedTuple):
    x: int
    y: int
    size: int
    colour: Colour


class Disc(NamedTuple):
    """A disc in the box of this corner and size."""

    x: int
    y: int
    size: int
    colour: Colour


class Words(NamedTuple):
    x: int
    y: int
    """Where the line ends below."""
    text: str
    is_right: bool = False
    """Whether the text ends at x; by default it begins there."""


Part: TypeAlias = Square | Disc | Words


def animated_gif(shots: Sequence[Shot], legend: Legend, seconds: float) -> bytes:
    """Makes a GIF that shows each picture for this many seconds, and repeats."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ConfigError(
            "a GIF is drawn by Pillow, which is not installed: pip install pillow; or write an SVG: --out NAME.svg"
        ) from error
    font, size, images = ImageFont.load_default(_FONT), _size(shots, legend), []
    for shot in shots:
        images.append(Image.new("RGB", size, _PAGE))
        draw = ImageDraw.Draw(images[-1])
        for part in _parts(shot, legend):
            _paint(draw, part, font)
    written = io.BytesIO()
    duration = max(20, round(1000 * seconds))  # browsers slow shorter frames down
    images[0].save(written, "GIF", save_all=True, append_images=images[1:], duration=duration, loop=0)
    return written.getvalue()


def _paint(draw: Any, part: Part, font: Any) -> None:
    if isinstance(part, Words):
        draw.text((part.x, part.y), part.text, fill=_INK, font=font, anchor="rs" if part.is_right else "ls")
        return
    box = (part.x, part.y, part.x + part.size - 1, part.y + part.size - 1)
    if isinstance(part, Disc):
        draw.ellipse(box, fill=part.colour, outline=_PAGE)
    else:
        draw.rectangle(box, fill=part.colour)


def animated_svg(shots: Sequence[Shot], legend: Legend, seconds: float) -> str:
    """Draws the same as SVG. What never changes is drawn once, below all pictures. Agents stay on top of it."""
    width, height = _size(shots, legend)
    drawn = [list(_parts(shot, legend)) for shot in shots]
    still = set.intersection(*map(set, drawn)) - {part for part in drawn[0] if isinstance(part, Disc)}
    changing = [[part for part in parts if part not in still] for parts in drawn]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{len(shots) - 1} turns of a world" '
            f'font-family="sans-serif" font-size="{_FONT}">',
            f'<rect width="{width}" height="{height}" fill="{hexadecimal(_PAGE)}"/>',
            "<g>",
            *(_marked(part) for part in drawn[0] if part in still),
            "</g>",
            *(
                line
                for number in range(len(shots))
                for line in _frame(changing, number, len(shots) * seconds)
            ),
            "</svg>",
        ]
    )


def _frame(changing: Sequence[Sequence[Part]], number: int, whole: float) -> Iterator[str]:
    start, end = number / len(changing), (number + 1) / len(changing)
    shown = (
        ("visible;hidden", f"0;{end:.5f}")
        if number == 0
        else ("hidden;visible;hidden", f"0;{start:.5f};{end:.5f}")
    )
    values, times = ("hidden;visible", f"0;{start:.5f}") if number == len(changing) - 1 and number else shown
    yield '<g visibility="hidden">'
    yield (
        f'<animate attributeName="visibility" values="{values}" keyTimes="{times}" calcMode="discrete" '
        f'dur="{whole:g}s" repeatCount="indefinite"/>'
    )
    yield from map(_marked, changing[number])
    yield "</g>"


def _marked(part: Part) -> str:
    if isinstance(part, Words):
        anchor = ' text-anchor="end"' if part.is_right else ""
        return (
            f'<text x="{part.x}" y="{part.y}" fill="{hexadecimal(_INK)}"{anchor}>{escape(part.text)}</text>'
        )
    fill = f'fill="{hexadecimal(part.colour)}"'
    if isinstance(part, Square):
        return f'<rect x="{part.x}" y="{part.y}" width="{part.size}" height="{part.size}" {fill}/>'
    radius = part.size / 2
    edge = f'stroke="{hexadecimal(_PAGE)}"'
    return f'<circle cx="{part.x + radius:g}" cy="{part.y + radius:g}" r="{radius - 0.5:g}" {fill} {edge}/>'


# What there is to draw.


def _size(shots: Sequence[Shot], legend: Legend) -> tuple[int, int]:
    rows, columns = shots[0].ground.shape[:2]
    panel = max((part.y for part in _panel(shots[0], legend, 0)), default=0) + _LINE
    return columns * _CELL + _PANEL, max(rows * _CELL, panel)


def _parts(shot: Shot, legend: Legend) -> Iterator[Part]:
    for row, column in np.ndindex(shot.ground.shape[:2]):
        red, green, blue = shot.ground[row, column].tolist()
        yield Square(column * _CELL, row * _CELL, _CELL, (red, green, blue))
    for seat, (row, column) in enumerate(shot.agents):
        yield Disc(column * _CELL, row * _CELL, _CELL, agent_colour(seat))
    yield from _panel(shot, legend, shot.ground.shape[1] * _CELL)


def _panel(shot: Shot, legend: Legend, left: int) -> Iterator[Part]:
    """Yields the turn, the returns of agents and the legend, from top to bottom."""
    y = _LINE
    yield Words(left + 12, y, f"turn {shot.turn}")
    for seat, value in enumerate(shot.returns[:_MOST_AGENTS]):
        y += _LINE
        yield Disc(left + 12, y - 10, 12, agent_colour(seat))
        yield Words(left + 30, y, f"agent {seat + 1}")
        yield Words(left + _PANEL - 12, y, f"{value:.4g}", is_right=True)
    if len(shot.returns) > _MOST_AGENTS:
        y += _LINE
        yield Words(left + 30, y, f"and {len(shot.returns) - _MOST_AGENTS} more")
    y += _LINE // 2
    for title, colour in legend:
        y += _LINE
        yield Square(left + 12, y - 10, 12, colour)
        yield Words(left + 30, y, title)
