"""``keisei games``: a table of every game that can be played."""

from __future__ import annotations

from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.games import GameSpec, make_game, registered_games

_NUMBERS = ("Seats", "Actions", "Packed bytes", "Max plies")


def games() -> None:
    """List all games with their seats, actions and observations."""
    table = Table(box=None, pad_edge=False)
    for heading in ("Game", "Seats", "Actions", "Observation", "Packed bytes", "Max plies", "Description"):
        justify: Literal["left", "right"] = "right" if heading in _NUMBERS else "left"
        table.add_column(heading, justify=justify, no_wrap=heading in ("Game", "Observation"))
    reasons: list[tuple[str, str]] = []
    for name, description in sorted(registered_games().items()):
        try:
            cells = _cells(make_game(name).spec)
        except Exception as error:  # other packages may raise any error; the rest is still shown
            reasons.append((name, str(error) or repr(error)))
            cells = ("–", "–", "unavailable", "–", "–")
        table.add_row(*(Text(cell) for cell in (name, *cells, description)))
    console = Console()
    console.print(table)
    for name, reason in reasons:
        console.print(Text(f"\n{name} is unavailable: {reason}", style="yellow"), soft_wrap=True)


def _cells(spec: GameSpec) -> tuple[str, ...]:
    shape = "×".join(map(str, spec.observation.shape))
    return (
        str(spec.seats),
        str(spec.num_actions),
        f"{shape} {spec.observation.dtype}",
        str(spec.packed_bytes),
        "none" if spec.max_plies is None else str(spec.max_plies),
    )
