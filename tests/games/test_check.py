"""``check_game`` finds what is wrong: every game here breaks one promise, and is caught at it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from keisei.errors import ContractError, IllegalActionError, InvalidMoveError, SavedStateError
from keisei.games import Outcome, RecordedGame, check_game
from keisei.games.batched import SingleGameBatch
from keisei.games.contract import Array, BoolArray, ByteArray, FinalRows, IntArray, Rows, Step
from keisei.games.randomness import KeyedRandom
from keisei.games.tictactoe import TicTacToe

CASES: list[Any] = []


def broken(message: str) -> Callable[[type], type]:
    """Collect a class that breaks the contract, with a part of the message that must say so."""

    def collect(kind: type) -> type:
        CASES.append(pytest.param(kind, message, id=kind.__name__))
        return kind

    return collect


class Batch(SingleGameBatch):
    """A batch of tic-tac-toe that a test breaks by overriding one method."""

    def __init__(self, *, batch: int, seed: int, first_game: int) -> None:
        super().__init__(TicTacToe, batch, seed, first_game, {})


def test_the_unbroken_batch_passes() -> None:
    check_game(Batch, steps=30)


# Single games ---------------------------------------------------------------------------------------


@broken("the spec says zero_sum")
class PaysTwice(TicTacToe):
    def outcome(self) -> Outcome | None:
        outcome = super().outcome()
        return outcome and replace(outcome, scores=(1.0, 1.0))


@broken("same seed must play the same")
class UsesGlobalRandomness(TicTacToe):
    def observe(self, seat: int) -> Array:
        return super().observe(seat) + np.uint8(random.getrandbits(7))

    def play(self, action: int, rng: KeyedRandom) -> None:
        super().play(action, rng)


@broken("must continue as it did")
class RemembersTheLastGame(TicTacToe):
    episodes = 0

    def reset(self, rng: KeyedRandom) -> None:
        super().reset(rng)
        self.episodes += 1

    def observe(self, seat: int) -> Array:
        return super().observe(seat) + np.uint8(self.episodes)


@broken("save after load must give the state that was loaded")
class ForgetsInItsSnapshot(TicTacToe):
    def snapshot(self) -> bytes:
        return bytes([self.to_move]) + b"".join(mark.to_bytes(2, "little") for mark in self.marks)

    def restore(self, state: bytes) -> None:
        self.to_move = state[0]
        self.marks = [int.from_bytes(state[1:3], "little") & ~1, int.from_bytes(state[3:5], "little")]


@broken("restarts could not be checked")
class NeverEnds(TicTacToe):
    def legal(self, seat: int) -> list[int]:
        return list(range(9))

    def outcome(self) -> None:
        return None


# Batches ----------------------------------------------------------------------------------------------


@broken("batch must be 3")
class BatchOfAnotherSize(Batch):
    @property
    def batch(self) -> int:
        return 4


@broken("spec.packed_bytes must be an int of at least 1")
class NoPackedBytes(Batch):
    def __init__(self, **numbering: int) -> None:
        super().__init__(**numbering)
        self._spec = replace(self._spec, packed_bytes=0)


@broken("endings must be distinct")
class EqualEndings(Batch):
    def __init__(self, **numbering: int) -> None:
        super().__init__(**numbering)
        self._spec = replace(self._spec, endings=("unfinished", "same", "same"))


@broken("must be uint8, got float32")
class ObservesFloats(Batch):
    def observe(self, out: Array | None = None) -> Array:
        return super().observe(out).astype(np.float32)


@broken("observe() must have shape (3, 2, 3, 3)")
class ObservesFlat(Batch):
    def observe(self, out: Array | None = None) -> Array:
        return super().observe(out).reshape(self.batch, -1)


@broken("observe(out) must give back the array")
class IgnoresOut(Batch):
    def observe(self, out: Array | None = None) -> Array:
        return super().observe()


@broken("legal(out) must write what legal() gives")
class LeavesOutAsItWas(Batch):
    def legal(self, out: BoolArray | None = None) -> BoolArray:
        return super().legal() if out is None else np.copyto(out, False) or out


@broken("writing into what legal() gave must not change the games")
class GivesItsOwnMask(Batch):
    def legal(self, out: BoolArray | None = None) -> BoolArray:
        return self._mask if out is None else super().legal(out)


@broken("ordered by game, then by seat")
class BackwardRows(Batch):
    def rows(self) -> Rows:
        rows = super().rows()
        return Rows(rows.game[::-1], rows.seat[::-1], rows.episode[::-1], rows.ply[::-1])


@broken("rows().game must be int32")
class WideRows(Batch):
    def rows(self) -> Rows:
        return replace(super().rows(), game=super().rows().game.astype(np.int64))


@broken("every row must have at least one legal action")
class NothingLegal(Batch):
    def legal(self, out: BoolArray | None = None) -> BoolArray:
        mask = super().legal(out)
        mask[:] = False
        return mask


@broken("random_actions() must be legal")
class RandomIsIllegal(Batch):
    def random_actions(self) -> IntArray:
        return self._mask.argmin(axis=1).astype(np.int32)


@broken("random_actions() must be the same when asked twice")
class RandomOnEveryCall(Batch):
    def random_actions(self) -> IntArray:
        return np.array([random.choice(np.flatnonzero(mask)) for mask in self._mask], np.int32)


@broken("step must refuse the illegal action")
class PlaysIllegalActions(Batch):
    def step(self, actions: Array) -> Step:
        if np.asarray(actions).shape == (self.batch,) and np.asarray(actions).dtype.kind == "i":
            legal = self._mask[np.arange(self.batch), np.clip(actions, 0, 8)]
            in_range = (np.asarray(actions) >= 0) & (np.asarray(actions) < 9)
            actions = np.where(legal | ~in_range, actions, self.random_actions())
        return super().step(actions)


@broken("as they were after step refused the illegal action")
class StepsBeforeItLooks(Batch):
    def step(self, actions: Array) -> Step:
        try:
            return super().step(actions)
        except IllegalActionError:
            legal = self._mask[np.arange(self.batch), actions]
            super().step(np.where(legal, actions, self.random_actions()))
            raise


@broken("step must refuse floating-point actions")
class RoundsActions(Batch):
    def step(self, actions: Array) -> Step:
        return super().step(np.asarray(actions).astype(np.int64))


@broken("step must raise ActionError for an action below 0")
class RaisesSomethingElse(Batch):
    def step(self, actions: Array) -> Step:
        if np.min(actions) < 0:
            raise IndexError("no such action")
        return super().step(actions)


def with_step(change: Callable[[Batch, Step], Step]) -> Callable[[Batch, Array], Step]:
    return lambda self, actions: change(self, SingleGameBatch.step(self, actions))


def final_of_all(game: Batch, step: Step) -> Step:
    rows = game.rows()
    return replace(step, final=FinalRows(rows.game, rows.seat, game.pack()))


def truncate_wins(game: Batch, step: Step) -> Step:
    wins = step.ending == 1
    return replace(step, terminated=step.terminated & ~wins, truncated=step.truncated | wins)


CHANGES: dict[str, tuple[str, Callable[[Batch, Step], Step]]] = {
    "BothEnds": ("both terminated and truncated", lambda g, s: replace(s, truncated=s.terminated)),
    "EndingWithoutEnd": ("ending must be 0 exactly", lambda g, s: replace(s, ending=s.ending + np.uint8(1))),
    "UnknownEnding": ("index into spec.endings", lambda g, s: replace(s, ending=s.ending * np.uint8(9))),
    "EarlyScores": ("scores must be 0 while", lambda g, s: replace(s, scores=s.scores + np.float32(1))),
    "WrongPlies": ("plies must count", lambda g, s: replace(s, plies=s.plies + np.int32(1))),
    "Infinite": ("not finite", lambda g, s: replace(s, rewards=s.rewards * np.float32("nan"))),
    "DoubleRewards": ("must be float32", lambda g, s: replace(s, rewards=s.rewards.astype(np.float64))),
    "FinalOfAll": ("exactly the games that finished", final_of_all),
    "TruncatedWithoutMoves": ("a legal action in its final position", truncate_wins),
}
for name, (message, change) in CHANGES.items():
    broken(message)(type(name, (Batch,), {"step": with_step(change)}))


@broken("stand for termination or for truncation, not for both")
class OneEndingForAll(Batch):
    turns = itertools.cycle([False, True])

    def _finish(self, index: int, slot: Any, outcome: Outcome, step: Any) -> None:
        if next(self.turns):
            slot.game.marks = [0, 0]
            super()._finish(index, slot, replace(outcome, truncated=True), step)
            step.scores[index] = 0
        else:
            super()._finish(index, slot, outcome, step)
        step.ending[index] = 1


@broken("a game was truncated before max_plies")
class TruncatesEarly(SingleGameBatch):
    def __init__(self, *, batch: int, seed: int, first_game: int) -> None:
        super().__init__(TicTacToe, batch, seed, first_game, {"max_plies": 4})
        self._spec = replace(self._spec, max_plies=4)

    def _advance(self, slot: Any, actions: list[int], rewards: Any) -> Outcome | None:
        outcome = super()._advance(slot, actions, rewards)
        return Outcome.draw("truncated") if slot.ply == 3 else outcome

    def step(self, actions: Array) -> Step:
        step = super().step(actions)
        return replace(step, terminated=step.truncated, truncated=step.terminated)


@broken("episode must rise by 1")
class ForgetsEpisodes(Batch):
    def rows(self) -> Rows:
        return replace(super().rows(), episode=np.zeros(self.batch, np.int32))


@broken("unpack must give what observe and legal gave")
class UnpacksThePresent(Batch):
    def unpack(
        self, packed: ByteArray, observations: Array | None = None, legal: BoolArray | None = None
    ) -> tuple[Array, BoolArray]:
        if len(packed) == self.batch:
            packed = self.pack()
        return super().unpack(packed, observations, legal)


@broken("must play as one alone")
class IgnoresFirstGame(Batch):
    def __init__(self, *, batch: int, seed: int, first_game: int) -> None:
        super().__init__(batch=batch, seed=seed, first_game=0)


@broken("load must refuse the state of a batch of another size")
class LoadsAnything(Batch):
    def load(self, blob: bytes) -> None:
        try:
            super().load(blob)
        except SavedStateError:
            if len(blob) < 30:
                raise


@broken("load must raise SavedStateError for an empty state")
class CrashesOnDamage(Batch):
    def load(self, blob: bytes) -> None:
        blob[0]
        super().load(blob)


@broken("as they were after load refused")
class DropsGamesBeforeItReads(Batch):
    def load(self, blob: bytes) -> None:
        self._slots = [self._new_slot(game, 0, self._seed, self._first_game) for game in range(self._batch)]
        self._refresh()
        super().load(blob)


@broken("save after load must give the state that was loaded")
class SavesTheTime(Batch):
    saves = 0

    def load(self, blob: bytes) -> None:
        super().load(blob)
        self._slots[0].episode += 1


@broken("save must give bytes")
class SavesAnArray(Batch):
    def save(self) -> Any:
        return bytearray(super().save())


# What a spec offers beyond the contract ---------------------------------------------------------------


def saying(**offers: Any) -> type[Batch]:
    """A batch whose spec says so, whatever it can do."""

    class Saying(Batch):
        def __init__(self, **numbering: int) -> None:
            super().__init__(**numbering)
            self._spec = replace(self._spec, **offers)

    return Saying


class TakesTheFirst(Batch):
    """Looks ahead by itself, not far."""

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        mask = self._mask if selected is None else self._mask[selected]
        return mask.argmax(axis=1).astype(np.int32)

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return self.greedy_actions(selected, keys)


def test_a_batch_that_looks_ahead_passes() -> None:
    check_game(TakesTheFirst, steps=30)


@broken("spec.plane_actions needs a whole number of actions for each of the 9 squares, got 10")
class ActionsWithoutSquares(saying(plane_actions=True, num_actions=10)):  # type: ignore[misc]
    pass


class WithoutADot:
    suffix = "txt"

    def write(self, game: RecordedGame, path: Path) -> None: ...


@broken("a suffix that begins with a dot")
class RecordsWithoutADot(saying(record_format=WithoutADot())):  # type: ignore[misc]
    pass


@broken("the batch has only a part of keisei.games.offers.LooksAhead: it lacks search_actions")
class LooksAheadInPart(Batch):
    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return self.random_actions()


@broken("greedy_actions() must be legal")
class LooksAtWhatIsTaken(TakesTheFirst):
    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return np.zeros(len(keys), np.int32)


@broken("search_actions() must decide for selected rows as it does for all")
class LooksAtOtherRows(TakesTheFirst):
    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return self.greedy_actions(None, keys)[: len(keys)]


@broken("greedy_actions() must not change the games")
class LooksByPlaying(TakesTheFirst):
    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        actions = super().greedy_actions(selected, keys)
        if selected is not None:
            self.step(self.random_actions())
        return actions


class ByRule(Batch):
    """Has a heuristic, which takes the last legal action."""

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        mask = self._mask if selected is None else self._mask[selected]
        return (8 - mask[:, ::-1].argmax(axis=1)).astype(np.int32)


def test_a_batch_with_a_heuristic_passes() -> None:
    check_game(ByRule, steps=30)


@broken("heuristic_actions() must be legal")
class RulesThatForget(ByRule):
    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return np.full(len(keys), 8, np.int32)


class ReadsWords(Batch):
    """Reads squares as words."""

    WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

    def move_examples(self, action: int, game: int = 0) -> list[str]:
        return [self.WORDS[action], str(action + 1)]

    def read_move(self, text: str, game: int = 0) -> list[int]:
        if text not in self.WORDS and not text.isdecimal():
            raise InvalidMoveError(text)
        return [self.WORDS.index(text) if text in self.WORDS else int(text) - 1]


def test_a_batch_that_reads_moves_passes() -> None:
    check_game(ReadsWords, steps=30)


@broken("writes action 0 as 'ONE', so read_move must give it alone")
class WritesWhatItCannotRead(ReadsWords):
    def move_examples(self, action: int, game: int = 0) -> list[str]:
        return [self.WORDS[action].upper()]


@broken("writes action 0 as 'one', so read_move must give it alone")
class ReadsSeveral(ReadsWords):
    def read_move(self, text: str, game: int = 0) -> list[int]:
        return [*super().read_move(text, game), 8]


@pytest.mark.parametrize(("kind", "message"), CASES)
def test_a_broken_promise_is_found(kind: Any, message: str) -> None:
    random.seed(3)
    with pytest.raises(ContractError) as caught:
        check_game(kind, steps=40)
    assert message in str(caught.value)
