"""Animations of worlds: frames of coloured cells as GIF, for which Pillow is needed, or as SVG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import ByteArray

__all__ = ["animated_gif", "animated_svg"]

_CELL = 16
"""Pixels of a cell."""


def animated_gif(frames: Sequence[ByteArray], seconds: float) -> bytes:
    """Draws frames, [height, width, 3] each, one after the other for so many seconds each, over and over."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ConfigError(
            "a GIF is drawn by Pillow, which is not installed: pip install pillow; or write an SVG: --out NAME.svg"
        ) from error
    large = [frame.repeat(_CELL, axis=0).repeat(_CELL, axis=1) for frame in frames]
    first, *others = (Image.fromarray(np.ascontiguousarray(frame)) for frame in large)
    written = io.BytesIO()
    duration = max(20, round(1000 * seconds))  # browsers slow shorter frames down
    first.save(written, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
    return written.getvalue()


def animated_svg(frames: Sequence[ByteArray], seconds: float) -> str:
    """Draws the same as SVG. What never changes is drawn once, below all frames."""
    height, width = frames[0].shape[:2]
    still = (np.stack(frames) == frames[0]).all(axis=(0, 3))
    whole = len(frames) * seconds
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * _CELL} {height * _CELL}" '
            f'width="{width * _CELL}" height="{height * _CELL}" role="img" '
            f'aria-label="{len(frames)} turns of a world">',
            "<g>",
            *_cells(frames[0], still),
            "</g>",
            *(line for number in range(len(frames)) for line in _frame(frames, number, ~still, whole)),
            "</svg>",
        ]
    )


def _frame(frames: Sequence[ByteArray], number: int, drawn: ByteArray, whole: float) -> Iterator[str]:
    start, end = number / len(frames), (number + 1) / len(frames)
    shown = (
        ("visible;hidden", f"0;{end:.5f}")
        if number == 0
        else ("hidden;visible;hidden", f"0;{start:.5f};{end:.5f}")
    )
    values, times = ("hidden;visible", f"0;{start:.5f}") if number == len(frames) - 1 and number else shown
    yield '<g visibility="hidden">'
    yield (
        f'<animate attributeName="visibility" values="{values}" keyTimes="{times}" calcMode="discrete" '
        f'dur="{whole:g}s" repeatCount="indefinite"/>'
    )
    yield from _cells(frames[number], drawn)
    yield "</g>"


def _cells(frame: ByteArray, drawn: ByteArray) -> Iterator[str]:
    for row, column in np.argwhere(drawn):
        red, green, blue = frame[row, column]
        yield (
            f'<rect x="{column * _CELL}" y="{row * _CELL}" width="{_CELL}" height="{_CELL}" '
            f'fill="#{red:02x}{green:02x}{blue:02x}"/>'
        )
