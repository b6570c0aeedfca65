"""``SingleGameBatch``: many single games as one ``Game``."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keisei.errors import ConfigError, ContractError, GameError, IllegalActionError, SavedStateError
from keisei.games import saved
from keisei.games.contract import (
    Array,
    BoolArray,
    ByteArray,
    FloatArray,
    GameSpec,
    IntArray,
    Rows,
    Step,
    action_array,
)
from keisei.games.options import MAX_GAME, allowed_options, check_numbering, check_options, whole_number
from keisei.games.randomness import KeyedRandom, Stream, keyed_words
from keisei.games.single import Outcome, SingleGame, spec_of
from keisei.games.step_builder import StepBuilder, into

_NUMBERING = struct.Struct("<QQI")  # seed, first game, batch
_SLOT = struct.Struct("<IIBI")  # episode, ply, 1 where a snapshot follows, bytes that follow
_OWN_OPTION = "max_plies"


@dataclass(frozen=True, slots=True)
class BatchFactory:
    """Builds batches of one class of single games. It can be pickled for another process if the class can be
    imported there."""

    single: type[SingleGame]

    def __post_init__(self) -> None:
        if not (isinstance(self.single, type) and issubclass(self.single, SingleGame)):
            raise ConfigError(f"batched takes a subclass of SingleGame, got {self.single!r}")

    def option_names(self) -> tuple[str, ...] | None:
        """The options of this game; None if its class takes any."""
        own = allowed_options(self.single)
        return None if own is None else (*own, _OWN_OPTION)

    def __call__(
        self, *, batch: int = 1, seed: int = 0, first_game: int = 0, **options: Any
    ) -> SingleGameBatch:
        allowed = self.option_names()
        if allowed is not None:
            check_options(getattr(self.single, "name", self.single.__name__), options, allowed)
        return SingleGameBatch(self.single, batch, seed, first_game, options)


@dataclass(slots=True)
class _Slot:
    """One place of the batch: the game that is played there, and what is needed to save it."""

    game: SingleGame
    rng: KeyedRandom
    episode: int
    ply: int
    actions: list[int]
    returns: list[float]
    """The sum of the rewards of this game so far, for each seat."""


class SingleGameBatch:
    """A batch of single games."""

    def __init__(
        self, single: type[SingleGame], batch: int, seed: int, first_game: int, options: dict[str, Any]
    ) -> None:
        self._batch, self._seed, self._first_game = check_numbering(batch, seed, first_game)
        self._single = single
        self._own = {name: value for name, value in options.items() if name != _OWN_OPTION}
        pattern = single(**self._own)
        limit = options.get(_OWN_OPTION, pattern.max_plies)
        self._spec = spec_of(
            pattern, None if limit is None else whole_number(_OWN_OPTION, limit, 1, MAX_GAME)
        )
        self._ending_code = {name: code for code, name in enumerate(self._spec.endings)}
        self._digest = saved.digest_of(self._spec, self._own)
        self._snapshots = single.snapshot is not SingleGame.snapshot
        self._ended: dict[int, SingleGame] | None = None
        self._slots = [self._new_slot(game, 0, self._seed, self._first_game) for game in range(self._batch)]
        self._refresh()

    # What the games are, and who must act -----------------------------------------------------------

    @property
    def spec(self) -> GameSpec:
        return self._spec

    @property
    def batch(self) -> int:
        return self._batch

    def text(self, game: int = 0) -> str:
        """Draws a game by its ``__str__``."""
        return str(self._slots[game].game)

    @property
    def draws_text(self) -> bool:
        """Whether the class of the games draws them. If not, ``text`` says how it can."""
        return self._single.__str__ is not SingleGame.__str__

    def move_name(self, action: int, game: int = 0) -> str:
        return self._slots[game].game.move_name(action)

    def observation_meaning(self) -> list[str]:
        return self._slots[0].game.observation_meaning()

    def action_meaning(self) -> list[str]:
        return self._slots[0].game.action_meaning()

    def keep_last_positions(self) -> None:
        """Keeps the last position of finished games for ``last_text``. Their objects are then not used again."""
        self._ended = {}

    def last_text(self, game: int = 0) -> str:
        """Draws the last position of the game that ended last in this place."""
        if self._ended is None or game not in self._ended:
            raise GameError(
                f"no last position of game {game} of {self._spec.name} is kept; call keep_last_positions() before the "
                f"game ends"
            )
        return str(self._ended[game])

    def peek(self, game: int) -> SingleGame:
        """Makes an independent copy of one game, for players that look ahead."""
        try:
            return self._slots[game].game.copy()
        except GameError:
            raise  # its message says what to do
        except Exception as error:
            raise GameError(
                f"{self._spec.name} cannot be copied, so players cannot look ahead in it: {error}; write copy() in "
                f"{self._single.__name__}"
            ) from error

    def rows(self) -> Rows:
        return self._rows

    def observe(self, out: Array | None = None) -> Array:
        return into(out, self._observations(), "observe")

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        return into(out, self._mask, "legal")

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        return into(out, self._packed(self._observations(), self._mask), "pack")

    def unpack(
        self, packed: ByteArray, observations: Array | None = None, legal: BoolArray | None = None
    ) -> tuple[Array, BoolArray]:
        spec = self._spec
        packed = np.asarray(packed)
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != spec.packed_bytes:
            raise GameError(
                f"packed rows of {spec.name} are uint8 of shape (rows, {spec.packed_bytes}), "
                f"got {packed.dtype} of shape {packed.shape}"
            )
        split = spec.observation.nbytes
        plain = np.ascontiguousarray(packed[:, :split]).view(spec.observation.dtype)
        bits = np.unpackbits(packed[:, split:], axis=1, count=spec.num_actions)
        return (
            into(observations, plain.reshape(len(packed), *spec.observation.shape), "unpack"),
            into(legal, bits.view(np.bool_), "unpack"),
        )

    def random_actions(self) -> IntArray:
        rows, mask = self._rows, self._mask
        game = rows.game.astype(np.uint64) + np.uint64(self._first_game)
        words = keyed_words(self._seed, game, rows.episode, rows.ply, int(Stream.RANDOM_ACTION), rows.seat)
        counts = mask.sum(axis=1, dtype=np.uint64)
        picks = ((words >> np.uint64(32)) * counts) >> np.uint64(32)
        starts = np.cumsum(counts, dtype=np.uint64) - counts
        flat = np.flatnonzero(mask)[(starts + picks).astype(np.int64)]
        actions: IntArray = (flat % self._spec.num_actions).astype(np.int32)
        return actions

    # Playing ----------------------------------------------------------------------------------------

    def step(self, actions: Array) -> Step:
        chosen = action_array(actions, len(self._rows), self._spec.num_actions)
        self._refuse_illegal(chosen)
        step = StepBuilder(self._batch, self._spec)
        numbers = chosen.tolist()
        at = 0
        for index, slot in enumerate(self._slots):
            count = self._counts[index]
            outcome = self._advance(slot, numbers[at : at + count], step.rewards[index])
            at += count
            step.plies[index] = slot.ply
            if outcome is not None:
                self._finish(index, slot, outcome, step)
                self._slots[index] = self._new_slot(
                    index, slot.episode + 1, self._seed, self._first_game, self._used_again(index, slot.game)
                )
        self._refresh()
        return step.build()

    def _used_again(self, index: int, ended: SingleGame) -> SingleGame | None:
        """Gets the object to use again for the next game; None if a new one is needed."""
        if self._ended is None:
            return ended
        self._ended[index] = ended
        return None

    def _refuse_illegal(self, chosen: IntArray) -> None:
        allowed = self._mask[np.arange(len(chosen)), chosen]
        if allowed.all():
            return
        row = int(np.flatnonzero(~allowed)[0])
        game, seat = int(self._rows.game[row]), int(self._rows.seat[row])
        raise IllegalActionError(
            f"action {chosen[row]} in row {row} (game {game}, seat {seat}) is not legal in "
            f"{self._spec.name}; choose one that legal() marks in that row"
        )

    def _advance(self, slot: _Slot, actions: list[int], rewards: FloatArray) -> Outcome | None:
        """Plays one step of one game, and writes its rewards."""
        game = slot.game
        slot.rng.move_to(slot.ply)
        given = game.play(tuple(actions) if game.simultaneous else actions[0], slot.rng)
        slot.ply += 1
        if not self._snapshots:
            slot.actions += actions
        outcome = game.outcome()
        if outcome is not None:
            outcome = outcome.for_seats(self._spec.seats)
        elif slot.ply == self._spec.max_plies:
            scores = () if game.scored_by_rewards else (0.0,) * self._spec.seats
            outcome = Outcome(scores, "truncated", truncated=True)
        if given is None and outcome is not None and outcome.scores:
            given = outcome.scores
        if given is not None:
            self._need_one_per_seat("rewards", given)
            rewards[:] = given
            slot.returns = [before + float(now) for before, now in zip(slot.returns, given, strict=True)]
        return outcome

    def _finish(self, index: int, slot: _Slot, outcome: Outcome, step: StepBuilder) -> None:
        scores = slot.returns if slot.game.scored_by_rewards and not outcome.scores else outcome.scores
        self._need_one_per_seat("Outcome.scores", scores)
        ending = "truncated" if outcome.truncated else outcome.ending
        if ending not in self._ending_code:
            raise ContractError(
                f"{self._spec.name} ended with {ending!r}, "
                f"which is not in its endings {self._spec.endings[1:-1]}"
            )
        step.terminated[index] = not outcome.truncated
        step.truncated[index] = outcome.truncated
        step.ending[index] = self._ending_code[ending]
        step.scores[index] = scores
        seats = list(slot.game.acting()) or list(range(self._spec.seats))
        observations = np.stack([self._view(slot.game, seat) for seat in seats])
        # The rules ended the game, so no seat acts next. A truncated game could have continued.
        legal = self._masks([(slot.game, seat) for seat in seats if outcome.truncated])
        mask = legal if outcome.truncated else np.zeros((len(seats), self._spec.num_actions), np.bool_)
        step.add_final(index, seats, self._packed(observations, mask))

    def _need_one_per_seat(self, what: str, values: Sequence[float]) -> None:
        if len(values) != self._spec.seats:
            raise ContractError(
                f"{what} of {self._spec.name} must have one number for each of the {self._spec.seats} seats, "
                f"got {values!r}"
            )

    # Keeping -----------------------------------------------------------------------------------------

    def save(self) -> bytes:
        parts = [_NUMBERING.pack(self._seed, self._first_game, self._batch)]
        for slot in self._slots:
            state = self._slot_bytes(slot)
            parts += [_SLOT.pack(slot.episode, slot.ply, self._snapshots, len(state)), state]
        return saved.wrap(self._digest, b"".join(parts))

    def load(self, blob: bytes) -> None:
        reader = saved.Reader(saved.unwrap(blob, self._digest, self._spec.name))
        seed, first_game, batch = reader.unpack(_NUMBERING)
        if batch != self._batch:
            raise SavedStateError(f"saved state holds {batch} games, this batch has {self._batch}")
        slots = [self._read_slot(reader, index, seed, first_game) for index in range(batch)]
        reader.finish()
        self._slots, self._seed, self._first_game = slots, seed, first_game
        self._refresh()

    @property
    def _action_type(self) -> np.dtype[Any]:
        return np.min_scalar_type(self._spec.num_actions - 1).newbyteorder("<")

    def _slot_bytes(self, slot: _Slot) -> bytes:
        if not self._snapshots:
            return np.array(slot.actions, self._action_type).tobytes()
        return np.array(slot.returns, "<f8").tobytes() + slot.game.snapshot()

    def _read_slot(self, reader: saved.Reader, index: int, seed: int, first_game: int) -> _Slot:
        episode, ply, is_snapshot, size = reader.unpack(_SLOT)
        state = reader.take(size)
        if is_snapshot != self._snapshots:
            raise SavedStateError(
                f"saved state of {self._spec.name} was made by another version of its class"
            )
        slot = self._new_slot(index, episode, seed, first_game)
        if self._snapshots:
            self._restore(slot, ply, state)
        else:
            self._replay(slot, ply, state)
        return slot

    def _restore(self, slot: _Slot, ply: int, state: bytes) -> None:
        head = 8 * self._spec.seats
        if len(state) < head:
            raise SavedStateError(f"saved state ends early in a game of {self._spec.name}")
        try:
            slot.game.restore(state[head:])
        except Exception as error:
            raise SavedStateError(f"{self._spec.name} cannot restore a saved game: {error}") from error
        slot.ply, slot.returns = ply, np.frombuffer(state[:head], "<f8").tolist()

    def _replay(self, slot: _Slot, plies: int, state: bytes) -> None:
        """Plays a game's actions again. Its randomness is keyed, so the result is the same."""
        if len(state) % self._action_type.itemsize:
            raise SavedStateError(
                f"saved actions of {self._spec.name} take {len(state)} bytes, which is not a whole number of actions"
            )
        actions = np.frombuffer(state, self._action_type).tolist()
        rewards = np.zeros(self._spec.seats, np.float32)
        at = 0
        for _ in range(plies):
            seats = list(slot.game.acting())
            now = actions[at : at + len(seats)]
            at += len(seats)
            if len(now) < len(seats) or not self._are_legal(slot.game, seats, now):
                raise SavedStateError(f"saved state holds a move that {self._spec.name} does not allow")
            if self._advance(slot, now, rewards) is not None:
                raise SavedStateError(f"saved state continues after a game of {self._spec.name} has ended")
        if at != len(actions):
            raise SavedStateError(f"saved state holds {len(actions) - at} moves too many")

    def _are_legal(self, game: SingleGame, seats: list[int], actions: list[int]) -> bool:
        if max(actions) >= self._spec.num_actions:
            return False
        mask = self._masks([(game, seat) for seat in seats])
        return bool(mask[np.arange(len(actions)), actions].all())

    # Inside ------------------------------------------------------------------------------------------

    def _new_slot(
        self, index: int, episode: int, seed: int, first_game: int, game: SingleGame | None = None
    ) -> _Slot:
        """Makes a new game. A finished game object is reset and used again."""
        game = game or self._single(**self._own)
        rng = KeyedRandom(seed, first_game + index, episode)
        game.reset(rng)
        return _Slot(game, rng, episode, 0, [], [0.0] * self._spec.seats)

    def _refresh(self) -> None:
        """Finds out who must act now and what is legal. The arrays are new, so callers may keep the old ones."""
        acting = [slot.game.acting() for slot in self._slots]
        self._counts = [len(seats) for seats in acting]
        if min(self._counts) == 0:
            raise ContractError(
                f"no seat acts in a game of {self._spec.name} that continues; outcome() must end it"
            )
        if max(self._counts) > 1 and not self._spec.simultaneous:
            raise ContractError(f"several seats of {self._spec.name} act at once; set simultaneous = True")
        self._deciders = [
            (slot.game, seat) for slot, seats in zip(self._slots, acting, strict=True) for seat in seats
        ]
        self._rows = Rows(
            game=np.repeat(np.arange(self._batch, dtype=np.int32), self._counts),
            seat=np.array([seat for _, seat in self._deciders], np.int32),
            episode=np.repeat(np.array([slot.episode for slot in self._slots], np.int32), self._counts),
            ply=np.repeat(np.array([slot.ply for slot in self._slots], np.int32), self._counts),
        )
        self._mask = self._masks(self._deciders)
        if not self._mask.any(axis=1).all():
            row = int(np.flatnonzero(~self._mask.any(axis=1))[0])
            raise ContractError(
                f"{self._spec.name} gives seat {self._rows.seat[row]} no legal action, and outcome() "
                f"does not end the game; end it there, or make passing an action"
            )
        self._seen: Array | None = None

    def _observations(self) -> Array:
        if self._seen is None:
            seen = np.empty(
                (len(self._deciders), *self._spec.observation.shape), self._spec.observation.dtype
            )
            for row, (game, seat) in enumerate(self._deciders):
                seen[row] = self._view(game, seat)
            self._seen = seen
        return self._seen

    def _view(self, game: SingleGame, seat: int) -> Array:
        view, want = np.asarray(game.observe(seat)), self._spec.observation
        if view.shape != want.shape or view.dtype != want.dtype:
            raise ContractError(
                f"observe of {self._spec.name} must give {want.dtype} of shape {want.shape}, "
                f"got {view.dtype} of shape {view.shape}"
            )
        return view

    def _masks(self, deciders: Sequence[tuple[SingleGame, int]]) -> BoolArray:
        """Makes the legal mask [deciders, num_actions] from the lists or bool arrays of the games."""
        mask = np.zeros((len(deciders), self._spec.num_actions), np.bool_)
        numbers: list[int] = []
        counts: list[int] = []
        for row, (game, seat) in enumerate(deciders):
            legal = game.legal(seat)
            if isinstance(legal, np.ndarray) and legal.dtype == np.bool_:
                mask[row] = self._whole_mask(legal)
                counts.append(0)
            else:
                before = len(numbers)
                numbers.extend(legal)
                counts.append(len(numbers) - before)
        if numbers:
            if min(numbers) < 0 or max(numbers) >= self._spec.num_actions:
                raise ContractError(
                    f"legal of {self._spec.name} names actions {min(numbers)} … {max(numbers)}, "
                    f"but they must lie in 0 … {self._spec.num_actions - 1}"
                )
            mask[np.repeat(np.arange(len(deciders)), counts), numbers] = True
        return mask

    def _whole_mask(self, legal: BoolArray) -> BoolArray:
        if legal.shape != (self._spec.num_actions,):
            raise ContractError(
                f"a bool array from legal of {self._spec.name} must have shape ({self._spec.num_actions},), "
                f"got {legal.shape}"
            )
        return legal

    def _packed(self, observations: Array, mask: BoolArray) -> ByteArray:
        split = self._spec.observation.nbytes
        packed = np.empty((len(mask), self._spec.packed_bytes), np.uint8)
        packed[:, :split] = observations.reshape(len(mask), -1).view(np.uint8)
        packed[:, split:] = np.packbits(mask, axis=1)
        return packed
