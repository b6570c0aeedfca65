"""Ludo once more, from the written rules and as slowly as one likes: an oracle for the board and for the batch.

Every player has a way of 57 places, and a token walks it place by place. Nothing here is shared with the code under
test but the numbers of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from keisei.games.contract import Array
from keisei.games.ludo import LudoBoard

Place: TypeAlias = tuple[str, int, int]
Tokens: TypeAlias = Sequence[Sequence[int]]

SAFE = {0, 8, 13, 21, 26, 34, 39, 47}
RULES: list[dict[str, Any]] = [
    {},
    {"players": 3},
    {"players": 4},
    {"blocks": True},
    {"capture_rolls": False},
    {"players": 3, "blocks": True, "capture_rolls": False},
    {"players": 4, "blocks": True},
    {"players": 4, "capture_rolls": False},
]
"""All rules, each on and off."""


@cache
def way(seat: int, players: int) -> list[Place]:
    """The places from a player's start to home, in order."""
    start = {2: (0, 26), 3: (0, 13, 26), 4: (0, 13, 26, 39)}[players][seat]
    loop = [("loop", 0, (start + step) % 52) for step in range(51)]
    return [*loop, *(("column", seat, step) for step in range(5)), ("home", seat, 0)]


def place(seat: int, position: int, players: int) -> Place:
    return ("yard", seat, 0) if position == -1 else way(seat, players)[position]


def standing_on(where: Place, tokens: Tokens, but: int) -> dict[int, list[int]]:
    """The tokens of other players than ``but`` that stand on a place, for each of them."""
    players = len(tokens)
    found = {}
    for seat in range(players):
        here = [token for token in range(4) if place(seat, tokens[seat][token], players) == where]
        if seat != but and here:
            found[seat] = here
    return found


def walk(tokens: Tokens, seat: int, token: int, value: int, blocks: bool) -> int | None:
    """Where a token comes to with a die; None if it may not go."""
    places = way(seat, len(tokens))
    position = tokens[seat][token]
    if position == -1:
        if value != 6:
            return None
        value = 1  # one step leads out of the yard
    for _ in range(value):
        position += 1
        if position >= len(places):
            return None
        others = standing_on(places[position], tokens, seat)
        if blocks and any(len(here) >= 2 for here in others.values()):
            return None
    return position


def legal(tokens: Tokens, dice: Sequence[int], seat: int, blocks: bool = False) -> list[int]:
    return [
        4 * (value - 1) + token
        for value in range(1, 7)
        for token in range(4)
        if value in dice and walk(tokens, seat, token, value, blocks) is not None
    ]


def victim(tokens: Tokens, seat: int, position: int) -> tuple[int, int] | None:
    """Whom a token captures that comes to a position: seat and token."""
    where = place(seat, position, len(tokens))
    if where[0] != "loop" or where[2] in SAFE:
        return None
    others = standing_on(where, tokens, seat)
    after = sorted(others, key=lambda other: (other - seat) % len(tokens))
    return (after[0], others[after[0]][0]) if after else None


def is_safe(tokens: Tokens, seat: int, position: int) -> bool:
    """Whether no other player can ever capture a token that stands here."""
    return _is_safe(len(tokens), seat, position)


@cache
def _is_safe(players: int, seat: int, position: int) -> bool:
    where = place(seat, position, players)
    ways = [way(other, players) for other in range(players) if other != seat]
    return not any(where in other for other in ways) or (where[0] == "loop" and where[2] in SAFE)


def dangers(tokens: Tokens, seat: int, position: int) -> int:
    """How many tokens of others stand one to six places before this one on their own way."""
    players = len(tokens)
    if position == -1 or is_safe(tokens, seat, position):
        return 0
    where = place(seat, position, players)
    return sum(
        where in way(other, players)[there + 1 : there + 7]
        for other in range(players)
        for there in tokens[other]
        if other != seat and there >= 0
    )


def targets(tokens: Tokens, seat: int, position: int) -> int:
    """How many tokens of others stand one to six places after this one on the own way, and are not safe there."""
    players = len(tokens)
    ahead = way(seat, players)[position + 1 : position + 7] if position >= 0 else []
    return sum(
        place(other, there, players) in ahead and not is_safe(tokens, other, there)
        for other in range(players)
        for there in tokens[other]
        if other != seat and there >= 0
    )


def observation(board: LudoBoard) -> Array:
    """What docs/games/ludo.md says that the seat to move sees."""
    players, seat, tokens = len(board.tokens), board.to_move, board.tokens
    starts = [way(other, players)[0][2] for other in range(players)]
    parts: list[int] = []
    for position in tokens[seat]:
        parts += [int(position == where) for where in range(-1, 57)]
    parts += [position + 1 for position in tokens[seat]]
    parts += [dangers(tokens, seat, position) for position in tokens[seat]]
    parts += [targets(tokens, seat, position) for position in tokens[seat]]
    for ahead in [26] if players == 2 else [13, 26, 39]:
        there = [other for other in range(players) if (starts[other] - starts[seat]) % 52 == ahead]
        parts += enemy(tokens[there[0]] if there else (), ahead)
    parts += [board.dice.count(value) for value in range(1, 7)]
    actions = legal(tokens, board.dice, seat, board.blocks) if board.winner is None else []
    effects = {
        action: walk(tokens, seat, action % 4, action // 4 + 1, board.blocks) or 0 for action in actions
    }
    parts += [int(action in effects) for action in range(24)]
    parts += [
        int(action in effects and victim(tokens, seat, effects[action]) is not None) for action in range(24)
    ]
    parts += [int(action in effects and is_safe(tokens, seat, effects[action])) for action in range(24)]
    parts += [dangers(tokens, seat, effects[action]) if action in effects else 0 for action in range(24)]
    parts += [targets(tokens, seat, effects[action]) if action in effects else 0 for action in range(24)]
    return np.array(parts, np.uint8)


def enemy(positions: Sequence[int], ahead: int) -> list[int]:
    on_loop = [(position + ahead) % 52 for position in positions if 0 <= position <= 50]
    return [
        positions.count(-1),
        *(on_loop.count(square) for square in range(52)),
        *(positions.count(position) for position in range(51, 56)),
        positions.count(56),
        sum(position + 1 for position in positions),
    ]


def standing(tokens: Tokens, seat: int, weights: dict[str, Any]) -> float:
    out = [position for position in tokens[seat] if position >= 0]
    safe = [position for position in out if is_safe(tokens, seat, position)]
    return (
        weights.get("progress", 0) * sum(out) / 56
        + weights.get("leaving", 0) * len(out)
        + weights.get("safety", 0) * len(safe)
        + weights.get("home", 0) * out.count(56)
    ) / 4


def rewards(
    before: Tokens, seat: int, captured: bool, after: LudoBoard, options: dict[str, Any]
) -> list[float]:
    """What docs/games/ludo.md says that a step pays to each seat."""
    players, winner = len(before), after.winner
    keeps = winner is None or options.get("keep_standing", False)
    gains = [
        (options.get("discount", 1) * standing(after.tokens, other, options) if keeps else 0)
        - standing(before, other, options)
        + (options.get("captures", 0) if captured and other == seat else 0)
        for other in range(players)
    ]
    if options.get("zero_sum", True):
        gains = [gain - (sum(gains) - gain) / (players - 1) for gain in gains]
    scores = [
        0.0 if winner is None else 1.0 if other == winner else -1 / (players - 1) for other in range(players)
    ]
    return [gain + score for gain, score in zip(gains, scores, strict=True)]
