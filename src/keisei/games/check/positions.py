"""What can be read from a batch: rows, observations, masks and packed rows fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from keisei.games.check.subject import View, need, need_array, need_same
from keisei.games.contract import Array, Game, Rows


def check_reading(game: Game) -> None:
    """Checks shapes and types, ``out=``, and that reading changes nothing."""
    check_position(game)
    rows = game.rows()
    need(not rows.episode.any() and not rows.ply.any(), "a new batch must start at episode 0 and ply 0")
    before, state = View.of(game), game.save()
    readers: list[tuple[str, Callable[[Array | None], Array], Array]] = [
        ("observe", game.observe, before.observations),
        ("legal", game.legal, before.legal),
        ("pack", game.pack, before.packed),
    ]
    for name, read, expected in readers:
        out = np.ones_like(expected)
        need(read(out) is out, f"{name}(out) must give back the array that it was given")
        need(np.array_equal(out, expected), f"{name}(out) must write what {name}() gives")
        read(None)[...] = 0
        same = np.array_equal(read(None), expected)
        need(same, f"writing into what {name}() gave must not change the games")
    need_same(View.of(game), before, "reading must not change the games")
    need(game.save() == state, "reading must not change the games, but save() differs")


def check_position(game: Game) -> None:
    """Checks one position of every game: rows, masks, packing and random actions fit together."""
    spec, rows = game.spec, game.rows()
    count = len(rows)
    _check_rows(game, rows)
    observed, legal = game.observe(), game.legal()
    need_array("observe()", observed, (count, *spec.observation.shape), spec.observation.dtype)
    for plane in spec.observation.flat:
        squares = observed[:, plane].reshape(count, -1)
        same = (squares == squares[:, :1]).all()
        need(same, f"observation.flat names plane {plane}, whose squares must then have one value")
    need_array("legal()", legal, (count, spec.num_actions), np.bool_)
    need(legal.any(axis=1).all(), "every row must have at least one legal action")
    need_array("pack()", game.pack(), (count, spec.packed_bytes), np.uint8)
    actions = game.random_actions()
    need_array("random_actions()", actions, (count,), np.int32)
    in_range = ((actions >= 0) & (actions < spec.num_actions)).all()
    need(in_range and legal[np.arange(count), actions].all(), "random_actions() must be legal")
    need(np.array_equal(actions, game.random_actions()), "random_actions() must be the same when asked twice")


def _check_rows(game: Game, rows: Rows) -> None:
    spec = game.spec
    for field in fields(rows):
        need_array(f"rows().{field.name}", getattr(rows, field.name), (len(rows),), np.int32)
    need(((rows.seat >= 0) & (rows.seat < spec.seats)).all(), f"seats must lie in 0 … {spec.seats - 1}")
    order = rows.game.astype(np.int64) * spec.seats + rows.seat
    need((np.diff(order) > 0).all(), "rows must be ordered by game, then by seat, each once")
    need(np.array_equal(np.unique(rows.game), np.arange(game.batch)), "every game must have a row")
    need(spec.simultaneous or len(rows) == game.batch, "a turn-based game must have one row for each game")
    need(spec.max_plies is None or (rows.ply < spec.max_plies).all(), "a game must be truncated at max_plies")
