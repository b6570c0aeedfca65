"""What a step does, to good and to bad actions."""

from __future__ import annotations

import numpy as np

from keisei.errors import ActionError, IllegalActionError
from keisei.games.check.positions import check_position
from keisei.games.check.subject import PATIENCE, View, need, need_array, need_refusal
from keisei.games.contract import Array, Game, IntArray, Rows, Step


def check_playing(game: Game, steps: int) -> None:
    """Plays at random, and checks every step and position."""
    kept: list[View] = []
    endings: tuple[set[int], set[int]] = (set(), set())
    finished = False
    for number in range(PATIENCE * max(steps, 1)):
        if finished and number >= steps:
            break
        check_position(game)
        if number % 7 == 0 and len(kept) < 32:
            kept.append(View.of(game))
        before = game.rows()
        step = game.step(game.random_actions())
        _check_step(game, before, step)
        endings[0].update(step.ending[step.terminated].tolist())
        endings[1].update(step.ending[step.truncated].tolist())
        finished = finished or bool(step.done.any())
    need(
        finished,
        f"no game ended in {PATIENCE * steps} steps, so that restarts could not be checked; "
        f"pass more steps, or max_plies",
    )
    need(not endings[0] & endings[1], "an ending must stand for termination or for truncation, not for both")
    for view in kept:
        _check_unpacking(game, view)


def _check_step(game: Game, before: Rows, step: Step) -> None:
    spec, batch = game.spec, game.batch
    per_game = {"terminated": np.bool_, "truncated": np.bool_, "ending": np.uint8, "plies": np.int32}
    for name, dtype in per_game.items():
        need_array(f"Step.{name}", getattr(step, name), (batch,), dtype)
    for name in ("rewards", "scores"):
        need_array(f"Step.{name}", getattr(step, name), (batch, spec.seats), np.float32)
    done = step.done
    need(not (step.terminated & step.truncated).any(), "a game cannot be both terminated and truncated")
    need(np.array_equal(step.ending != 0, done), "ending must be 0 exactly while the game continues")
    need((step.ending < len(spec.endings)).all(), "ending must be an index into spec.endings")
    need(not step.scores[~done].any(), "scores must be 0 while the game continues")
    if spec.zero_sum:
        for name in ("rewards", "scores"):
            total = np.abs(getattr(step, name).sum(axis=1)).max()
            need(total < 1e-4, f"the spec says zero_sum, but {name} add up to {total}")
    first = np.searchsorted(before.game, np.arange(batch))
    need(np.array_equal(step.plies, before.ply[first] + 1), "plies must count the steps of each game")
    if spec.max_plies is not None:
        need((step.plies[step.truncated] == spec.max_plies).all(), "a game was truncated before max_plies")
        need(done[step.plies >= spec.max_plies].all(), "a game continued past max_plies")
    _check_restart(game.rows(), before.episode[first], step)
    _check_final(game, step)


def _check_restart(after: Rows, episode: IntArray, step: Step) -> None:
    first = np.searchsorted(after.game, np.arange(len(episode)))
    need(
        np.array_equal(after.episode[first], episode + step.done),
        "episode must rise by 1 where a game finished, and nowhere else",
    )
    need(
        np.array_equal(after.ply[first], np.where(step.done, 0, step.plies)),
        "ply must be 0 where a game restarted, and count the steps elsewhere",
    )


def _check_final(game: Game, step: Step) -> None:
    """Checks the last positions: one or more rows for each finished game, and for no other."""
    spec, final = game.spec, step.final
    count = len(final.game)
    need_array("Step.final.game", final.game, (count,), np.int32)
    need_array("Step.final.seat", final.seat, (count,), np.int32)
    need_array("Step.final.packed", final.packed, (count, spec.packed_bytes), np.uint8)
    need(
        np.array_equal(np.unique(final.game), np.flatnonzero(step.done)),
        "final must have rows for exactly the games that finished",
    )
    need(((final.seat >= 0) & (final.seat < spec.seats)).all(), "final has a seat that does not exist")
    order = final.game.astype(np.int64) * spec.seats + final.seat
    need((np.diff(order) > 0).all(), "final must be ordered by game, then by seat, each once")
    if count:
        _, legal = game.unpack(final.packed[step.truncated[final.game]])
        need(legal.any(axis=1).all(), "a truncated game must have a legal action in its final position")


def _check_unpacking(game: Game, view: View) -> None:
    """Unpacks rows of positions that the games have left long ago."""
    observations, legal = np.ones_like(view.observations), np.ones_like(view.legal)
    given = game.unpack(view.packed, observations, legal)
    need(given[0] is observations and given[1] is legal, "unpack must give back the arrays it was given")
    for found in (given, game.unpack(view.packed)):
        need_array("unpack()[0]", found[0], view.observations.shape, view.observations.dtype)
        need_array("unpack()[1]", found[1], view.legal.shape, np.bool_)
        need(
            np.array_equal(found[0], view.observations) and np.array_equal(found[1], view.legal),
            "unpack must give what observe and legal gave when the row was packed",
        )


def check_bad_actions(game: Game) -> None:
    """Checks that wrong arrays and illegal actions are refused, and that the games do not change."""
    for _ in range(PATIENCE):
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
            need_refusal(game, "step", actions, ActionError, what)
        illegal = ~game.legal()
        if illegal.any():
            # Use the last row with an illegal action. This finds a batch that starts to play before it has checked all
            # rows.
            row = int(np.flatnonzero(illegal.any(axis=1))[-1])
            bad = good.copy()
            bad[row] = np.flatnonzero(illegal[row])[0]
            what = f"the illegal action {bad[row]} in row {row}"
            need_refusal(game, "step", bad, IllegalActionError, what)
        game.step(good)
