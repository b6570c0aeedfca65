"""What a person sees of PettingZoo's games in a terminal: positions as text, and names of actions.

PettingZoo draws text only in the render mode ``ansi``, which few of its games have. For other games, Go draws itself,
boards are drawn from an agent's observation, and everything else is a list of numbers. Actions are named for the games
below; PettingZoo has no names for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keisei.games.contract import Array

__all__ = ["action_text", "drawing"]

_MOST_NUMBERS = 24
"""How many entries of an observation are written out. Of longer ones, only entries other than 0 are named."""
_SIGNS = "XOabcdefghijklmnopqrstuvwxyz"
"""The signs of planes."""


def drawing(env: Any, seat: int, seen: Array) -> str:
    """Draws the position. ``seen`` is what the seat observes, in case the game draws no text itself."""
    plain = env.unwrapped
    if getattr(plain, "render_mode", None) == "ansi":
        drawn = env.render()
        if isinstance(drawn, str):
            return drawn
    if _name(env).startswith("go_"):
        return str(plain._go.__str__(colors=False)).rstrip("\n")
    return _board(seat, seen) if seen.ndim == 3 else _numbers(seat, seen)


def _board(seat: int, seen: Array) -> str:
    """Draws squares with the sign of the first plane that is not 0 there. Planes are on the last axis. A plane with the
    same value on all squares is ignored."""
    told = [plane for plane in range(seen.shape[2]) if np.ptp(np.asarray(seen[..., plane], float))]
    signs = np.full(seen.shape[:2], ".")
    for plane in reversed(told):
        signs[seen[..., plane] != 0] = _sign(plane)
    meaning = ", ".join(f"{_sign(plane)} plane {plane}" for plane in told)
    legend = f"what seat {seat + 1} sees" + (f": {meaning}" if meaning else "")
    return "\n".join([*(" ".join(row) for row in signs), legend])


def _sign(plane: int) -> str:
    return _SIGNS[min(plane, len(_SIGNS) - 1)]


def _numbers(seat: int, seen: Array) -> str:
    flat = np.asarray(seen).reshape(-1)
    if flat.size <= _MOST_NUMBERS:
        return f"what seat {seat + 1} sees: {' '.join(f'{value:g}' for value in flat)}"
    told = " ".join(f"{place}={flat[place]:g}" for place in np.flatnonzero(flat))
    return f"what seat {seat + 1} sees: {told or 'nothing'}; all other of its {flat.size} entries are 0"


def action_text(env: Any, seat: int, action: int) -> str:
    """Names an action, by its number if nothing better is known."""
    name = _name(env)
    for known, named in _NAMED.items():
        if name.startswith(known):
            return named(env.unwrapped, seat, action)
    return str(action)


def _name(env: Any) -> str:
    """Gets the name of an environment of PettingZoo, such as ``go_v5``; empty for those of other libraries."""
    own = type(env.unwrapped).__module__.startswith("pettingzoo.")
    return str(env.metadata.get("name", "")) if own else ""


def _chess(env: Any, seat: int, action: int) -> str:
    from pettingzoo.classic.chess import chess_utils

    return str(chess_utils.action_to_move(env.board, action, seat).uci())


def _point(env: Any, seat: int, action: int) -> str:
    """Names a point as Go programs do, from the lower left: ``C3``."""
    from pettingzoo.classic.go import coords

    return str(coords.to_gtp(coords.from_flat(action)))


def _gesture(env: Any, seat: int, action: int) -> str:
    return str(env._moves[action]).lower()


def _bet(env: Any, seat: int, action: int) -> str:
    return ("call", "raise", "fold", "check")[action]


def _bet_without_limit(env: Any, seat: int, action: int) -> str:
    return ("fold", "call", "raise-half-pot", "raise-pot", "all-in")[action]


_NAMED: Mapping[str, Callable[[Any, int, int], str]] = {
    "chess_": _chess,
    "go_": _point,
    "leduc_holdem_": _bet,
    "rps_": _gesture,
    "texas_holdem_no_limit_": _bet_without_limit,
    "texas_holdem_v": _bet,
}
