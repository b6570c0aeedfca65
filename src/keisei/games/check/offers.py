"""What a spec says, and what a game offers beyond the contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from keisei.errors import NotationError
from keisei.games.check.subject import BATCH, PATIENCE, Subject, View, need, need_array
from keisei.games.contract import Game, IntArray
from keisei.games.offers import BATCH_OFFERS, HasHeuristic, LooksAhead, ReadsMoves


def check_spec(game: Game) -> None:
    need(isinstance(game, Game), f"{type(game).__name__} lacks a method of keisei.games.contract.Game")
    need(game.batch == BATCH, f"batch must be {BATCH}, as asked for, got {game.batch}")
    spec = game.spec
    for name in ("seats", "num_actions", "packed_bytes"):
        value = getattr(spec, name)
        need(
            isinstance(value, int) and value >= 1, f"spec.{name} must be an int of at least 1, got {value!r}"
        )
    shape, scale, flat = spec.observation.shape, spec.observation.scale, spec.observation.flat
    need(all(size >= 1 for size in shape), f"observation.shape must have positive sizes, got {shape}")
    need(isinstance(spec.observation.dtype, np.dtype), "observation.dtype must be an np.dtype")
    need(
        not scale or len(scale) == shape[0],
        f"observation.scale must be empty or have {shape[:1]} factors, got {len(scale)}",
    )
    planes = shape[0] if shape else 0
    need(
        len(set(flat)) == len(flat) and all(0 <= plane < planes for plane in flat),
        f"observation.flat must name planes from 0 to {planes - 1}, each once; got {flat}",
    )
    need(
        spec.max_plies is None or spec.max_plies >= 1,
        f"max_plies must be None or at least 1, got {spec.max_plies}",
    )
    need(
        len(spec.endings) >= 2 and len(set(spec.endings)) == len(spec.endings),
        f"endings must be distinct names, the first for a game that continues; got {spec.endings}",
    )


def check_offers(subject: Subject) -> None:
    """Checks what a game offers beyond the contract."""
    game = subject.make()
    spec = game.spec
    squares = spec.observation.size // spec.observation.shape[0] if spec.observation.shape else 1
    need(
        not spec.plane_actions or spec.num_actions % squares == 0,
        f"spec.plane_actions needs a whole number of actions for each of the {squares} squares, got "
        f"{spec.num_actions}",
    )
    need(
        spec.record_format is None or spec.record_format.suffix.startswith("."),
        "spec.record_format must have a suffix that begins with a dot",
    )
    for offer in BATCH_OFFERS:
        _check_whole(game, offer)
    _check_players(game)
    _check_typed_moves(subject.make())


def _check_typed_moves(game: Game) -> None:
    """Checks that a batch reads every notation in which it writes moves, and that each text means exactly one move."""
    if not isinstance(game, ReadsMoves):
        return
    for _ in range(PATIENCE):
        index = int(game.rows().game[0])
        for action in np.flatnonzero(game.legal()[0]).tolist():
            for text in game.move_examples(action, index):
                rule = f"move_examples writes action {action} as {text!r}, so read_move must give it alone"
                need(_read(game, text, index) == [action], rule)
        game.step(game.random_actions())


def _read(game: ReadsMoves, text: str, index: int) -> list[int]:
    try:
        return [*game.read_move(text, index)]
    except NotationError:
        return []


def _check_whole(game: Game, offer: type) -> None:
    """Checks that no offer lacks a method: an incomplete offer would silently count as none."""
    methods = [name for name, value in vars(offer).items() if callable(value) and not name.startswith("_")]
    missing = [name for name in methods if not hasattr(game, name)]
    need(
        not missing or len(missing) == len(methods),
        f"the batch has only a part of keisei.games.offers.{offer.__name__}: it lacks {', '.join(missing)}",
    )


_Choose = Callable[[IntArray | None, NDArray[np.uint64]], IntArray]


def _own_players(game: Game) -> dict[str, _Choose]:
    """Lists the methods of a batch that decide for players."""
    players: dict[str, _Choose] = {}
    if isinstance(game, LooksAhead):
        players = {"greedy_actions": game.greedy_actions, "search_actions": partial(game.search_actions, 1)}
    if isinstance(game, HasHeuristic):
        players["heuristic_actions"] = game.heuristic_actions
    return players


def _check_players(game: Game) -> None:
    """Checks that a batch's own players choose legal actions, choose the same ones for some rows as for all, and do not
    change the games."""
    players = _own_players(game)
    for _ in range(PATIENCE if players else 0):
        before, state = View.of(game), game.save()
        keys = np.arange(len(before.game), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        some = np.arange(1, len(keys), 2, dtype=np.int32)
        for name, choose in players.items():
            actions = choose(None, keys)
            need_array(f"{name}()", actions, (len(keys),), np.int32)
            in_range = ((actions >= 0) & (actions < game.spec.num_actions)).all()
            need(in_range and before.legal[np.arange(len(keys)), actions].all(), f"{name}() must be legal")
            same = np.array_equal(choose(some, keys[some]), actions[some])
            need(same, f"{name}() must decide for selected rows as it does for all")
            need(game.save() == state, f"{name}() must not change the games, but save() differs")
        game.step(before.random_actions)
