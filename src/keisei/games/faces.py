"""Faces: how a person sees a game and says what to play. The package of a game may offer one.

A face draws packed positions, so the same one serves games that are played, watched and replayed. Its picture marks
places with ``data-place``. A person makes a choice by naming its places one after the other, such as the square that a
piece leaves and the one where it goes. If several choices have the same places, their labels tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from keisei.games.contract import Game, GameSpec
from keisei.games.offers import Choice, GameFace, ShowsRows

__all__ = ["PlainFace", "face_of", "face_of_rows", "place", "svg_page"]


def svg_page(parts: Sequence[str], width: float, height: float, style: str, label: str) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{style}" viewBox="0 0 {width:g} {height:g}" role="group" '
            f'aria-label="{escape(label)}">',
            *parts,
            "</svg>",
        ]
    )


def place(name: str, label: str, box: tuple[float, float, float, float], at: tuple[float, float]) -> str:
    """Writes a place of a picture: its box (x, y, width, height), and its column and row for the arrow keys."""
    x, y, width, height = box
    return (
        f'<rect class="place" data-place="{escape(name)}" data-x="{at[0]:g}" data-y="{at[1]:g}" x="{x:g}" y="{y:g}" '
        f'width="{width:g}" height="{height:g}" rx="3" role="button" aria-label="{escape(label)}"/>'
    )


class PlainFace:
    """The face of a game that offers none. Planes are drawn as a grid with a colour for each plane; other positions
    are a list of numbers."""

    person_options = ()
    has_sides = False
    style = (
        ".cell{fill:light-dark(#fff,#23262d);stroke:light-dark(#d5d2ca,#3a3f49)}"
        ".n0{fill:#0072b2}.n1{fill:#d55e00}.n2{fill:#009e73}.n3{fill:#cc79a7}.n4{fill:#e69f00}.n5{fill:#56b4e9}"
        ".mark{font:700 18px system-ui,sans-serif;fill:#fff;text-anchor:middle}"
        ".numbers{font:13px ui-monospace,monospace;fill:currentColor}"
    )
    _CELL = 44

    def __init__(self, spec: GameSpec) -> None:
        self._observation = spec.observation
        self.seats = tuple(f"Seat {seat + 1}" for seat in range(spec.seats))

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        shape, size = self._observation.shape, self._observation.nbytes
        values = np.frombuffer(packed[:size], self._observation.dtype)
        if len(shape) == 3 and values.size == self._observation.size:
            return self._grid(values.reshape(shape), seat)
        lines = [
            " ".join(f"{value:g}" for value in values[at : at + 12])
            for at in range(0, min(120, len(values)), 12)
        ]
        texts = [
            f'<text class="numbers" x="12" y="{24 + 20 * row}">{line}</text>'
            for row, line in enumerate(lines)
        ]
        return svg_page(texts, 520, 20 + 20 * max(1, len(lines)), "plain", f"what {self.seats[seat]} sees")

    def _grid(self, planes: np.ndarray, seat: int) -> str:
        _, rows, columns = planes.shape
        parts = [
            part
            for row in range(rows)
            for column in range(columns)
            for part in self._square(planes, row, column)
        ]
        return svg_page(
            parts, columns * self._CELL, rows * self._CELL, "plain", f"what {self.seats[seat]} sees"
        )

    def _square(self, planes: np.ndarray, row: int, column: int) -> Iterator[str]:
        """Draws a square with the first plane that is not 0 there."""
        size, x, y = self._CELL, column * self._CELL, row * self._CELL
        yield f'<rect class="cell" x="{x}" y="{y}" width="{size}" height="{size}"/>'
        seen = np.flatnonzero(planes[:, row, column])
        if len(seen):
            number = int(seen[0])
            box = f'x="{x + 5}" y="{y + 5}" width="{size - 10}" height="{size - 10}"'
            yield f'<rect class="n{number % 6}" {box} rx="8"/>'
            yield f'<text class="mark" x="{x + size / 2:g}" y="{y + size / 2 + 6:g}">{number}</text>'

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        return [Choice(action, f"action {action}", label=str(action)) for action in actions]

    def text(self, packed: bytes, seat: int) -> str:
        return ""


def face_of(spec: GameSpec) -> GameFace:
    """Gets the face of a game."""
    return spec.face or PlainFace(spec)


def face_of_rows(game: Game) -> GameFace:
    """Gets the face that draws packed rows of a game, without the game that they come from."""
    return game.row_face() if isinstance(game, ShowsRows) else face_of(game.spec)
