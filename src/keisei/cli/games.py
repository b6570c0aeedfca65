"""``keisei games``: a table of every game that can be played.

It is printed without rich, whose import alone would take a fifth of the command's time.
"""

from __future__ import annotations

import shutil
import sys

from keisei.games import GameSpec, make_game, registered_games

_HEADINGS = ("Game", "Seats", "Actions", "Observation", "Packed bytes", "Max plies")
_TEXTS = ("Game", "Observation")
_UNAVAILABLE = ("–", "–", "unavailable", "–", "–")
_GAP = "  "


def games() -> None:
    """List all games with their seats, actions and observations."""
    descriptions = dict(sorted(registered_games().items()))
    rows: list[tuple[str, ...]] = [_HEADINGS]
    reasons: list[str] = []
    for name in descriptions:
        try:
            cells = _cells(make_game(name).spec)
        except Exception as error:  # other packages may raise any error; the rest is still shown
            reasons.append(f"{name} is unavailable: {str(error) or repr(error)}")
            cells = _UNAVAILABLE
        rows.append((name, *cells))
    lines = _lines(rows, ["Description", *descriptions.values()])
    sys.stdout.write("\n".join([*lines, *(f"\n{reason}" for reason in reasons), ""]))


def _cells(spec: GameSpec) -> tuple[str, ...]:
    shape = "×".join(map(str, spec.observation.shape))
    return (
        str(spec.seats),
        str(spec.num_actions),
        f"{shape} {spec.observation.dtype}",
        str(spec.packed_bytes),
        "none" if spec.max_plies is None else str(spec.max_plies),
    )


def _lines(rows: list[tuple[str, ...]], descriptions: list[str]) -> list[str]:
    """Lays out a line for each row. If the terminal is too narrow, each description gets a line of its own."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    beside = sum(widths) + len(_GAP) * len(widths) + max(map(len, descriptions)) <= _columns()
    lines: list[str] = []
    for row, description in zip(rows, descriptions, strict=True):
        cells = [
            cell.ljust(width) if heading in _TEXTS else cell.rjust(width)
            for cell, width, heading in zip(row, widths, _HEADINGS, strict=True)
        ]
        lines += [_GAP.join([*cells, description])] if beside else [_GAP.join(cells), _GAP + description]
    return lines


def _columns() -> int:
    return shutil.get_terminal_size((120, 24)).columns
