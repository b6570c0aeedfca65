"""The same seed, the same number and the same saved state play the same game."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from keisei.errors import SavedStateError
from keisei.games.check.subject import BATCH, Subject, View, need, need_refusal, need_same, random_play
from keisei.games.contract import FinalRows, Step


def check_determinism(subject: Subject, steps: int) -> None:
    one, other = subject.make(), subject.make()
    promise = "two batches with the same seed must play the same"
    for mine, yours in zip(random_play(one, steps), random_play(other, steps), strict=True):
        need_same(mine[0], yours[0], promise)
        need_same(mine[1], yours[1], promise)
    for _ in random_play(subject.make(seed=subject.seed + 1), min(steps, 20)):
        pass  # another seed may play other games, but it must play


def check_numbering(subject: Subject, steps: int) -> None:
    """Checks that game k of a batch plays like the only game of a batch that starts at k."""
    first = 5
    together = subject.make(first_game=first)
    alone = [subject.make(batch=1, first_game=first + index) for index in range(BATCH)]
    for view, step in random_play(together, steps):
        for index, game in enumerate(alone):
            single = View.of(game)
            promise = (
                f"game {index} of a batch from first_game={first} must play as one alone from {first + index}"
            )
            need_same(single, _rows_of(view, index), promise)
            need_same(game.step(single.random_actions), _step_of(step, index), promise)


def _rows_of(view: View, index: int) -> View:
    mine = view.game == index
    parts = {field.name: getattr(view, field.name)[mine] for field in fields(view)}
    return View(**{**parts, "game": np.zeros_like(parts["game"])})


def _step_of(step: Step, index: int) -> Step:
    here = slice(index, index + 1)
    mine = step.final.game == index
    final = FinalRows(np.zeros_like(step.final.game[mine]), step.final.seat[mine], step.final.packed[mine])
    arrays = {field.name: getattr(step, field.name)[here] for field in fields(step) if field.name != "final"}
    return Step(**arrays, final=final)


def check_save_and_load(subject: Subject, steps: int) -> None:
    """Checks that a state saved in the middle of games continues bit for bit, here and in another batch."""
    for played in sorted({0, 1, 3, steps // 3, steps}):
        game = subject.make()
        for _ in random_play(game, played):
            pass
        state = game.save()
        need(isinstance(state, bytes), f"save must give bytes, got {type(state).__name__}")
        future = list(random_play(game, 20))
        for again in (game, subject.make()):
            again.load(state)
            need(again.save() == state, "save after load must give the state that was loaded")
            for was, now in zip(future, random_play(again, 20), strict=True):
                need_same(was[0], now[0], f"a game saved after {played} steps must continue as it did")
                need_same(was[1], now[1], f"a game saved after {played} steps must continue as it did")


def check_damaged_states(subject: Subject) -> None:
    """Checks that truncated, changed and foreign states are refused, and that the games do not change."""
    game = subject.make()
    for _ in random_play(game, 3):
        pass
    state = game.save()
    for _ in random_play(game, 2):
        pass
    damaged = {
        "an empty state": b"",
        "text that is not a state": b"not a saved state",
        "the state of a batch of another size": subject.make(batch=BATCH + 1).save(),
        "a state with a byte too many": state + b"\0",
    }
    for length in {1, len(state) // 2, len(state) - 1}:
        damaged[f"a state cut off after {length} bytes"] = state[:length]
    for bit in range(0, 8 * len(state), max(1, len(state) // 16) * 8 + 1):
        flipped = bytearray(state)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged[f"a state with bit {bit} flipped"] = bytes(flipped)
    for what, blob in damaged.items():
        need_refusal(game, "load", blob, SavedStateError, what)
