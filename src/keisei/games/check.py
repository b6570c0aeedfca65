"""``check_game``: tests whether a game keeps the contract.

Each ``_check_*`` function below tests one promise of ``keisei.games.contract``. They work for every game, from a
class of twenty lines to a native core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ActionError, ContractError, IllegalActionError, SavedStateError
from keisei.games.contract import Array, BoolArray, FinalRows, Game, GameSpec, IntArray, Rows, Step
from keisei.games.heuristic import HasHeuristic
from keisei.games.lookahead import LooksAhead
from keisei.games.registry import GameSource, make_game

_BATCH = 3
_PATIENCE = 20
"""A batch must finish one game within this many times ``steps``."""


def check_game(game: GameSource, *, steps: int = 200, seed: int = 7, **options: Any) -> None:
    """Raises ``ContractError`` if a game breaks the contract.

    ``game`` is what ``make_game`` takes: a name, ``module:Class``, a class or a factory. The longer checks play at
    least ``steps`` steps.
    """
    subject = _Subject(game, seed, options)
    _check_spec(subject.make())
    _check_offers(subject)
    _check_reading(subject.make())
    _check_playing(subject.make(), steps)
    _check_bad_actions(subject.make())
    _check_determinism(subject, steps)
    _check_numbering(subject, steps)
    _check_save_and_load(subject, steps)
    _check_damaged_states(subject)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The game under test. Each check builds its own batches."""

    source: GameSource
    seed: int
    options: dict[str, Any]

    def make(self, batch: int = _BATCH, first_game: int = 0, seed: int | None = None) -> Game:
        seed = self.seed if seed is None else seed
        return make_game(self.source, batch=batch, seed=seed, first_game=first_game, **self.options)


def _need(holds: object, message: str) -> None:
    if not holds:
        raise ContractError(message)


def _need_array(name: str, array: object, shape: tuple[int, ...], dtype: Any) -> None:
    _need(isinstance(array, np.ndarray), f"{name} must be a NumPy array, got {type(array).__name__}")
    assert isinstance(array, np.ndarray)
    _need(array.shape == shape, f"{name} must have shape {shape}, got {array.shape}")
    _need(array.dtype == np.dtype(dtype), f"{name} must be {np.dtype(dtype)}, got {array.dtype}")
    if np.issubdtype(array.dtype, np.floating):
        _need(np.isfinite(array).all(), f"{name} holds numbers that are not finite")


@dataclass(frozen=True, slots=True)
class _View:
    """A copy of everything that a caller can read from a batch."""

    game: IntArray
    seat: IntArray
    episode: IntArray
    ply: IntArray
    observations: Array
    legal: BoolArray
    packed: Array
    random_actions: IntArray

    @classmethod
    def of(cls, game: Game) -> _View:
        rows = game.rows()
        return cls(
            game=rows.game.copy(),
            seat=rows.seat.copy(),
            episode=rows.episode.copy(),
            ply=rows.ply.copy(),
            observations=game.observe().copy(),
            legal=game.legal().copy(),
            packed=game.pack().copy(),
            random_actions=game.random_actions().copy(),
        )


def _need_same(one: object, other: object, promise: str) -> None:
    """Compares two dataclasses of arrays field by field, to the bit."""
    for field in fields(one):  # type: ignore[arg-type]
        mine, yours = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, FinalRows):
            _need_same(mine, yours, promise)
        elif mine.shape != yours.shape or mine.dtype != yours.dtype or mine.tobytes() != yours.tobytes():
            raise ContractError(f"{promise}, but {field.name} differs")


def _check_spec(game: Game) -> None:
    _need(isinstance(game, Game), f"{type(game).__name__} lacks a method of keisei.games.contract.Game")
    _need(game.batch == _BATCH, f"batch must be {_BATCH}, as asked for, got {game.batch}")
    spec = game.spec
    for name in ("seats", "num_actions", "packed_bytes"):
        value = getattr(spec, name)
        _need(
            isinstance(value, int) and value >= 1, f"spec.{name} must be an int of at least 1, got {value!r}"
        )
    shape, scale, flat = spec.observation.shape, spec.observation.scale, spec.observation.flat
    _need(all(size >= 1 for size in shape), f"observation.shape must have positive sizes, got {shape}")
    _need(isinstance(spec.observation.dtype, np.dtype), "observation.dtype must be an np.dtype")
    _need(
        not scale or len(scale) == shape[0],
        f"observation.scale must be empty or have {shape[:1]} factors, got {len(scale)}",
    )
    planes = shape[0] if shape else 0
    _need(
        len(set(flat)) == len(flat) and all(0 <= plane < planes for plane in flat),
        f"observation.flat must name planes from 0 to {planes - 1}, each once; got {flat}",
    )
    _need(
        spec.max_plies is None or spec.max_plies >= 1,
        f"max_plies must be None or at least 1, got {spec.max_plies}",
    )
    _need(
        len(spec.endings) >= 2 and len(set(spec.endings)) == len(spec.endings),
        f"endings must be distinct names, the first for a game that continues; got {spec.endings}",
    )


def _check_offers(subject: _Subject) -> None:
    """Checks the optional features that a spec declares."""
    game = subject.make()
    spec = game.spec
    squares = spec.observation.size // spec.observation.shape[0] if spec.observation.shape else 1
    _need(
        not spec.plane_actions or spec.num_actions % squares == 0,
        f"spec.plane_actions needs a whole number of actions for each of the {squares} squares, got "
        f"{spec.num_actions}",
    )
    _check_mirror(spec)
    _need(
        spec.record_format is None or spec.record_format.suffix.startswith("."),
        "spec.record_format must have a suffix that begins with a dot",
    )
    _check_offer(game, LooksAhead, "looks_ahead", spec.looks_ahead)
    _check_offer(game, HasHeuristic, "heuristic", spec.heuristic)
    _check_players(game)


def _check_mirror(spec: GameSpec) -> None:
    """Checks that mirroring twice changes nothing. Whether the rules are symmetric, only their author knows."""
    if spec.mirror is None:
        return
    image = spec.mirror.actions
    _need(
        len(image) == spec.num_actions
        and all(0 <= other < len(image) and image[other] == action for action, other in enumerate(image)),
        f"spec.mirror.actions must have one entry for each of the {spec.num_actions} actions, and the mirror image of "
        f"a mirror image must be the action itself",
    )
    _need(
        0 < spec.mirror.axis < len(spec.observation.shape),
        f"spec.mirror.axis must be an axis of the observation after the first, got {spec.mirror.axis}",
    )


def _check_offer(game: Game, protocol: type, name: str, declared: bool) -> None:
    offers = isinstance(game, protocol)
    _need(
        offers == declared,
        f"spec.{name} is {declared}, but the batch has {'the' if offers else 'not all'} methods of "
        f"keisei.games.{protocol.__name__}",
    )


_Choose = Callable[[IntArray | None, NDArray[np.uint64]], IntArray]


def _own_players(game: Game) -> dict[str, _Choose]:
    """The methods of a batch that decide for players."""
    players: dict[str, _Choose] = {}
    if isinstance(game, LooksAhead):
        players = {"greedy_actions": game.greedy_actions, "search_actions": partial(game.search_actions, 1)}
    if isinstance(game, HasHeuristic):
        players["heuristic_actions"] = game.heuristic_actions
    return players


def _check_players(game: Game) -> None:
    """A batch's own players give legal actions, the same for some rows as for all, and do not change the games."""
    players = _own_players(game)
    for _ in range(_PATIENCE if players else 0):
        before, state = _View.of(game), game.save()
        keys = np.arange(len(before.game), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        some = np.arange(1, len(keys), 2, dtype=np.int32)
        for name, choose in players.items():
            actions = choose(None, keys)
            _need_array(f"{name}()", actions, (len(keys),), np.int32)
            in_range = ((actions >= 0) & (actions < game.spec.num_actions)).all()
            _need(in_range and before.legal[np.arange(len(keys)), actions].all(), f"{name}() must be legal")
            same = np.array_equal(choose(some, keys[some]), actions[some])
            _need(same, f"{name}() must decide for selected rows as it does for all")
            _need(game.save() == state, f"{name}() must not change the games, but save() differs")
        game.step(before.random_actions)


def _check_reading(game: Game) -> None:
    """Checks shapes and types, ``out=``, and that reading changes nothing."""
    _check_position(game)
    rows = game.rows()
    _need(not rows.episode.any() and not rows.ply.any(), "a new batch must start at episode 0 and ply 0")
    before, state = _View.of(game), game.save()
    readers: list[tuple[str, Callable[[Array | None], Array], Array]] = [
        ("observe", game.observe, before.observations),
        ("legal", game.legal, before.legal),
        ("pack", game.pack, before.packed),
    ]
    for name, read, expected in readers:
        out = np.ones_like(expected)
        _need(read(out) is out, f"{name}(out) must give back the array that it was given")
        _need(np.array_equal(out, expected), f"{name}(out) must write what {name}() gives")
        read(None)[...] = 0
        same = np.array_equal(read(None), expected)
        _need(same, f"writing into what {name}() gave must not change the games")
    _need_same(_View.of(game), before, "reading must not change the games")
    _need(game.save() == state, "reading must not change the games, but save() differs")


def _check_position(game: Game) -> None:
    """Checks one position of every game: rows, masks, packing and random actions fit together."""
    spec, rows = game.spec, game.rows()
    count = len(rows)
    _check_rows(game, rows)
    observed, legal = game.observe(), game.legal()
    _need_array("observe()", observed, (count, *spec.observation.shape), spec.observation.dtype)
    for plane in spec.observation.flat:
        squares = observed[:, plane].reshape(count, -1)
        same = (squares == squares[:, :1]).all()
        _need(same, f"observation.flat names plane {plane}, whose squares must then have one value")
    _need_array("legal()", legal, (count, spec.num_actions), np.bool_)
    _need(legal.any(axis=1).all(), "every row must have at least one legal action")
    _need_array("pack()", game.pack(), (count, spec.packed_bytes), np.uint8)
    actions = game.random_actions()
    _need_array("random_actions()", actions, (count,), np.int32)
    in_range = ((actions >= 0) & (actions < spec.num_actions)).all()
    _need(in_range and legal[np.arange(count), actions].all(), "random_actions() must be legal")
    _need(
        np.array_equal(actions, game.random_actions()), "random_actions() must be the same when asked twice"
    )


def _check_rows(game: Game, rows: Rows) -> None:
    spec = game.spec
    for field in fields(rows):
        _need_array(f"rows().{field.name}", getattr(rows, field.name), (len(rows),), np.int32)
    _need(((rows.seat >= 0) & (rows.seat < spec.seats)).all(), f"seats must lie in 0 … {spec.seats - 1}")
    order = rows.game.astype(np.int64) * spec.seats + rows.seat
    _need((np.diff(order) > 0).all(), "rows must be ordered by game, then by seat, each once")
    _need(np.array_equal(np.unique(rows.game), np.arange(game.batch)), "every game must have a row")
    _need(spec.simultaneous or len(rows) == game.batch, "a turn-based game must have one row for each game")
    _need(
        spec.max_plies is None or (rows.ply < spec.max_plies).all(), "a game must be truncated at max_plies"
    )


def _check_bad_actions(game: Game) -> None:
    """Wrong arrays and illegal actions are refused, and the games do not change."""
    for _ in range(_PATIENCE):
        good = game.random_actions()
        outside = (np.full_like(good, -1), np.full_like(good, game.spec.num_actions))
        wrong: list[tuple[str, Array]] = [
            ("one action too many", np.append(good, good[:1])),
            ("one action too few", good[:-1]),
            ("an array of two axes", good[:, None]),
            ("floating-point actions", good.astype(np.float64)),
            ("an action below 0", np.append(good[:-1], outside[0][:1])),
            ("an action past the last", np.append(good[:-1], outside[1][:1])),
        ]
        for what, actions in wrong:
            _need_refusal(game, actions, ActionError, what)
        illegal = ~game.legal()
        if illegal.any():
            # The last row that has one. This finds a batch that starts to play before it has checked all rows.
            row = int(np.flatnonzero(illegal.any(axis=1))[-1])
            bad = good.copy()
            bad[row] = np.flatnonzero(illegal[row])[0]
            _need_refusal(game, bad, IllegalActionError, f"the illegal action {bad[row]} in row {row}")
        game.step(good)


def _need_refusal(game: Game, actions: Array, error: type[ActionError], what: str) -> None:
    before, state = _View.of(game), game.save()
    try:
        game.step(actions)
    except error:
        pass
    except Exception as other:
        raise ContractError(f"step must raise {error.__name__} for {what}, got {other!r}") from other
    else:
        raise ContractError(f"step must refuse {what} with {error.__name__}")
    promise = f"the games must be as they were after step refused {what}"
    _need_same(_View.of(game), before, promise)
    _need(game.save() == state, f"{promise}, but save() differs")


def _check_playing(game: Game, steps: int) -> None:
    """Plays at random, and checks every step and position."""
    kept: list[_View] = []
    endings: tuple[set[int], set[int]] = (set(), set())
    finished = False
    for number in range(_PATIENCE * max(steps, 1)):
        if finished and number >= steps:
            break
        _check_position(game)
        if number % 7 == 0 and len(kept) < 32:
            kept.append(_View.of(game))
        before = game.rows()
        step = game.step(game.random_actions())
        _check_step(game, before, step)
        endings[0].update(step.ending[step.terminated].tolist())
        endings[1].update(step.ending[step.truncated].tolist())
        finished = finished or bool(step.done.any())
    _need(
        finished,
        f"no game ended in {_PATIENCE * steps} steps, so that restarts could not be checked; "
        f"pass more steps, or max_plies",
    )
    _need(not endings[0] & endings[1], "an ending must stand for termination or for truncation, not for both")
    for view in kept:
        _check_unpacking(game, view)


def _check_step(game: Game, before: Rows, step: Step) -> None:
    spec, batch = game.spec, game.batch
    per_game = {"terminated": np.bool_, "truncated": np.bool_, "ending": np.uint8, "plies": np.int32}
    for name, dtype in per_game.items():
        _need_array(f"Step.{name}", getattr(step, name), (batch,), dtype)
    for name in ("rewards", "scores"):
        _need_array(f"Step.{name}", getattr(step, name), (batch, spec.seats), np.float32)
    done = step.done
    _need(not (step.terminated & step.truncated).any(), "a game cannot be both terminated and truncated")
    _need(np.array_equal(step.ending != 0, done), "ending must be 0 exactly while the game continues")
    _need((step.ending < len(spec.endings)).all(), "ending must be an index into spec.endings")
    _need(not step.scores[~done].any(), "scores must be 0 while the game continues")
    if spec.zero_sum:
        for name in ("rewards", "scores"):
            total = np.abs(getattr(step, name).sum(axis=1)).max()
            _need(total < 1e-4, f"the spec says zero_sum, but {name} add up to {total}")
    first = np.searchsorted(before.game, np.arange(batch))
    _need(np.array_equal(step.plies, before.ply[first] + 1), "plies must count the steps of each game")
    if spec.max_plies is not None:
        _need((step.plies[step.truncated] == spec.max_plies).all(), "a game was truncated before max_plies")
        _need(done[step.plies >= spec.max_plies].all(), "a game continued past max_plies")
    _check_restart(game.rows(), before.episode[first], step)
    _check_final(game, step)


def _check_restart(after: Rows, episode: IntArray, step: Step) -> None:
    first = np.searchsorted(after.game, np.arange(len(episode)))
    _need(
        np.array_equal(after.episode[first], episode + step.done),
        "episode must rise by 1 where a game finished, and nowhere else",
    )
    _need(
        np.array_equal(after.ply[first], np.where(step.done, 0, step.plies)),
        "ply must be 0 where a game restarted, and count the steps elsewhere",
    )


def _check_final(game: Game, step: Step) -> None:
    """Checks the last positions: one or more rows for each finished game, and for no other."""
    spec, final = game.spec, step.final
    count = len(final.game)
    _need_array("Step.final.game", final.game, (count,), np.int32)
    _need_array("Step.final.seat", final.seat, (count,), np.int32)
    _need_array("Step.final.packed", final.packed, (count, spec.packed_bytes), np.uint8)
    _need(
        np.array_equal(np.unique(final.game), np.flatnonzero(step.done)),
        "final must have rows for exactly the games that finished",
    )
    _need(((final.seat >= 0) & (final.seat < spec.seats)).all(), "final has a seat that does not exist")
    order = final.game.astype(np.int64) * spec.seats + final.seat
    _need((np.diff(order) > 0).all(), "final must be ordered by game, then by seat, each once")
    if count:
        _, legal = game.unpack(final.packed[step.truncated[final.game]])
        _need(legal.any(axis=1).all(), "a truncated game must have a legal action in its final position")


def _check_unpacking(game: Game, view: _View) -> None:
    """Unpacks rows of positions that the games have left long ago."""
    observations, legal = np.ones_like(view.observations), np.ones_like(view.legal)
    given = game.unpack(view.packed, observations, legal)
    _need(given[0] is observations and given[1] is legal, "unpack must give back the arrays it was given")
    for found in (given, game.unpack(view.packed)):
        _need_array("unpack()[0]", found[0], view.observations.shape, view.observations.dtype)
        _need_array("unpack()[1]", found[1], view.legal.shape, np.bool_)
        _need(
            np.array_equal(found[0], view.observations) and np.array_equal(found[1], view.legal),
            "unpack must give what observe and legal gave when the row was packed",
        )


def _random_play(game: Game, steps: int) -> Iterator[tuple[_View, Step]]:
    for _ in range(steps):
        view = _View.of(game)
        yield view, game.step(view.random_actions)


def _check_determinism(subject: _Subject, steps: int) -> None:
    one, other = subject.make(), subject.make()
    promise = "two batches with the same seed must play the same"
    for mine, yours in zip(_random_play(one, steps), _random_play(other, steps), strict=True):
        _need_same(mine[0], yours[0], promise)
        _need_same(mine[1], yours[1], promise)
    for _ in _random_play(subject.make(seed=subject.seed + 1), min(steps, 20)):
        pass  # another seed may play other games, but it must play


def _check_numbering(subject: _Subject, steps: int) -> None:
    """Game k of a batch plays like the only game of a batch that starts at k."""
    first = 5
    together = subject.make(first_game=first)
    alone = [subject.make(batch=1, first_game=first + index) for index in range(_BATCH)]
    for view, step in _random_play(together, steps):
        for index, game in enumerate(alone):
            single = _View.of(game)
            promise = (
                f"game {index} of a batch from first_game={first} must play as one alone from {first + index}"
            )
            _need_same(single, _rows_of(view, index), promise)
            _need_same(game.step(single.random_actions), _step_of(step, index), promise)


def _rows_of(view: _View, index: int) -> _View:
    mine = view.game == index
    parts = {field.name: getattr(view, field.name)[mine] for field in fields(view)}
    return _View(**{**parts, "game": np.zeros_like(parts["game"])})


def _step_of(step: Step, index: int) -> Step:
    here = slice(index, index + 1)
    mine = step.final.game == index
    final = FinalRows(np.zeros_like(step.final.game[mine]), step.final.seat[mine], step.final.packed[mine])
    arrays = {field.name: getattr(step, field.name)[here] for field in fields(step) if field.name != "final"}
    return Step(**arrays, final=final)


def _check_save_and_load(subject: _Subject, steps: int) -> None:
    """A state saved in the middle of games continues bit for bit, here and in another batch."""
    for played in sorted({0, 1, 3, steps // 3, steps}):
        game = subject.make()
        for _ in _random_play(game, played):
            pass
        state = game.save()
        _need(isinstance(state, bytes), f"save must give bytes, got {type(state).__name__}")
        future = list(_random_play(game, 20))
        for again in (game, subject.make()):
            again.load(state)
            _need(again.save() == state, "save after load must give the state that was loaded")
            for was, now in zip(future, _random_play(again, 20), strict=True):
                _need_same(was[0], now[0], f"a game saved after {played} steps must continue as it did")
                _need_same(was[1], now[1], f"a game saved after {played} steps must continue as it did")


def _check_damaged_states(subject: _Subject) -> None:
    """Truncated, changed and foreign states are refused, and the games do not change."""
    game = subject.make()
    for _ in _random_play(game, 3):
        pass
    state = game.save()
    for _ in _random_play(game, 2):
        pass
    damaged = {
        "an empty state": b"",
        "text that is not a state": b"not a saved state",
        "the state of a batch of another size": subject.make(batch=_BATCH + 1).save(),
        "a state with a byte too many": state + b"\0",
    }
    for length in {1, len(state) // 2, len(state) - 1}:
        damaged[f"a state cut off after {length} bytes"] = state[:length]
    for bit in range(0, 8 * len(state), max(1, len(state) // 16) * 8 + 1):
        flipped = bytearray(state)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged[f"a state with bit {bit} flipped"] = bytes(flipped)
    before, own = _View.of(game), game.save()
    for what, blob in damaged.items():
        try:
            game.load(blob)
        except SavedStateError:
            pass
        except Exception as other:
            raise ContractError(f"load must raise SavedStateError for {what}, got {other!r}") from other
        else:
            raise ContractError(f"load must refuse {what} with SavedStateError")
        _need_same(_View.of(game), before, f"the games must be as they were after load refused {what}")
        _need(game.save() == own, f"the games must be as they were after load refused {what}")
