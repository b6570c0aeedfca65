"""Bugs that users of other replay buffers report, each as a test by name."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from brute_force_for_tests import NOTHING, Ply, Row
from histories_for_tests import GAMES, KINDS, Histories, Kind, names_of
from replays_for_tests import DISCOUNT, Held, all_held, cut, replay_of

from keisei.experience.replay import ReplayBuffer
from keisei.experience.replayed import ReplaySample

BOARD = Kind(seats=2, zero_sum=True)
PARTY = Kind(seats=2)
"""The same without zero sum: each seat has a chain of its own."""


def turns(count: int, first: int = 0, owner: int | None = 0) -> list[Ply]:
    """Plies in which two seats take turns. ``owner`` has all of them; None gives it only seat 0."""
    return [
        Ply({t % 2: Row(first + t, t % 2, owner if owner is not None else -(t % 2))}, [0.0, 0.0])
        for t in range(count)
    ]


def ended(ply: Ply, end: str, rewards: list[float], finals: dict[int, int] | None = None) -> Ply:
    return replace(ply, end=end, rewards=rewards, finals=finals)


def with_one_game(kind: Kind, plies: list[Ply], steps: int, **settings: Any) -> dict[int, Held]:
    """All that a replay holds of one column."""
    buffer = replay_of(kind, steps, 1, 8, **settings)
    buffer.take(cut([plies], kind, steps))
    return all_held(buffer)


def sample_of(buffer: ReplayBuffer, names: list[int]) -> ReplaySample:
    """A sample of these decisions."""
    found = buffer.view().sample(len(buffer), 0, 0)
    chosen = [names_of(found.packed).index(name) for name in names]
    return ReplaySample(*(getattr(found, name)[chosen] for name in ReplaySample.__slots__))


def test_alpha_applied_twice() -> None:
    """Priorities 1 and 16 with alpha 0.5 are drawn 1 : 4, and not 1 : 2."""
    buffer = replay_of(BOARD, 2, 1, 2, alpha=0.5, smallest_error=1e-12, beta=1.0)
    plies = turns(3)
    plies[1] = ended(plies[1], "terminated", [1.0, -1.0])
    buffer.take(cut([plies], BOARD, 2))
    buffer.view().update_priorities(sample_of(buffer, [0, 1]), np.array([1.0, 16.0], np.float32))
    drawn = buffer.view().sample(1000, 1, 1)
    counts = np.bincount(names_of(drawn.packed))
    assert counts.tolist() == [200, 800]
    # The importance weights are those of the same chances: 1/P(0) : 1/P(1) is 4 : 1.
    weights = dict(zip(names_of(drawn.packed), drawn.weights.tolist(), strict=True))
    assert weights == pytest.approx({0: 1.0, 1: 0.25})
    # And not once more when priorities are read and written again.
    buffer.view().update_priorities(sample_of(buffer, [0, 1]), np.array([1.0, 16.0], np.float32))
    assert np.bincount(names_of(buffer.view().sample(1000, 1, 1).packed)).tolist() == [200, 800]


@pytest.mark.parametrize("n_step", [1, 3])
def test_wrong_next_position_at_truncation(n_step: int) -> None:
    """A truncated game bootstraps from its last position, and neither from nothing nor from the next game."""
    plies = turns(9)
    plies[3] = ended(plies[3], "truncated", [0.0, 0.0], finals={0: 777})
    found = with_one_game(BOARD, plies, 8, n_step=n_step)
    assert found[3].next == 777
    assert found[3].discount == pytest.approx(-DISCOUNT)
    for name in range(max(0, 4 - n_step), 4):
        assert found[name].next == 777
        assert found[name].discount == pytest.approx((-DISCOUNT) ** (4 - name))


def test_a_terminated_game_bootstraps_from_nothing() -> None:
    plies = turns(9)
    plies[3] = ended(plies[3], "terminated", [0.5, -0.5])
    found = with_one_game(BOARD, plies, 8)
    assert (found[3].next, found[3].discount, found[3].reward) == (NOTHING, 0.0, -0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_across_episodes(kind: Kind) -> None:
    """No next position is of another game than the decision, and no reward either: each game pays its own number."""
    histories = Histories(np.random.default_rng(4), kind, "alone")
    columns = [histories.column(40) for _ in range(GAMES)]
    game_of: dict[int, int] = {NOTHING: -1}
    number = 1
    for column in columns:
        for at, ply in enumerate(column):
            names = [row.name for row in ply.rows.values()] + list((ply.finals or {}).values())
            game_of |= dict.fromkeys(names, number)
            column[at] = replace(ply, rewards=[float(number)] * kind.seats if ply.end else [0.0] * kind.seats)
            number += bool(ply.end)
        number += 1
    for n_step in (1, 4):
        buffer = replay_of(kind, 4, GAMES, 12, n_step=n_step, discount=1.0)
        buffer.take(cut(columns, kind, 4))
        found = all_held(buffer)
        assert any(row.reward for row in found.values())
        for name, row in found.items():
            assert row.next == NOTHING or game_of[row.next] == game_of[name]
            assert abs(row.reward) in (0.0, game_of[name])


@pytest.mark.parametrize("prioritised", [True, False])
def test_unwritten_slots(prioritised: bool) -> None:
    """Nothing is drawn that nobody decided: not from empty slabs of the ring, nor from seats that rest."""
    kind = Kind(seats=3, simultaneous=True)
    histories = Histories(
        np.random.default_rng(7), kind, "alone", count(1)
    )  # rows that nobody wrote are named 0
    columns = [histories.column(8) for _ in range(GAMES)]
    decided = {row.name for column in columns for ply in column[:-1] for row in ply.rows.values()}
    buffer = replay_of(kind, 4, GAMES, 9, prioritised=prioritised)
    with pytest.raises(Exception, match="no decision to draw"):
        buffer.view().sample(1, 0, 0)
    buffer.take(cut(columns, kind, 4))
    sample = buffer.view().sample(5000, 1, 2)
    assert set(names_of(sample.packed)) <= decided
    assert sample.places.max() < 2 * 4 * 3 * GAMES
    assert len(set(sample.places.tolist())) == len(buffer) < 2 * 4 * 3 * GAMES


def test_priorities_of_overwritten_entries() -> None:
    """A priority that comes late does not go to the decision that is there now. It is counted."""
    buffer = replay_of(BOARD, 2, 1, 2, alpha=1.0)
    slabs = cut([turns(9)], BOARD, 2)
    buffer.take(slabs[:2])
    old = buffer.view().sample(len(buffer), 0, 0)
    buffer.take(slabs[2:3])
    assert (set(names_of(old.packed)), set(all_held(buffer))) == ({0, 1, 2}, {2, 3, 4})
    buffer.view().update_priorities(old, np.full(len(old), 99.0, np.float32))
    assert buffer.late_priorities == 2
    counts = np.bincount(names_of(buffer.view().sample(1000, 1, 1).packed))
    assert counts.tolist() == pytest.approx([0, 0, 980, 10, 10], abs=2)


@pytest.mark.parametrize(("n_step", "slabs"), [(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (5, 7), (5, 12)])
def test_n_step_at_the_rings_seam(n_step: int, slabs: int) -> None:
    """Where the newest slab lies beside the oldest, no return leads from one to the other."""
    steps = 2
    plies = [replace(ply, rewards=[1.0, -1.0]) for ply in turns(61)]
    buffer = replay_of(PARTY, steps, 1, slabs, n_step=n_step)
    for taken, item in enumerate(cut([plies], PARTY, steps), start=1):
        buffer.take([item])
        found = all_held(buffer)
        for name, row in found.items():
            assert row.next == name + 2 * n_step
            assert row.discount == pytest.approx(DISCOUNT ** (2 * n_step))
            sign = 1 - 2 * (name % 2)
            assert row.reward == pytest.approx(sign * sum(DISCOUNT**k for k in range(2 * n_step)))
        # All that the ring holds is there, but for the newest decisions, which wait. A seat acts in every second ply.
        oldest = steps * max(0, taken - slabs)
        assert sorted(found) == list(range(oldest, max(oldest, steps * taken - 2 * n_step)))


def test_slabs_of_other_games_do_not_continue() -> None:
    """A slab of other games may have the number that comes next, if experience of two managers is mixed."""
    buffer = replay_of(BOARD, 2, 1, 4)
    ours, theirs = (cut([turns(5, first)], BOARD, 2) for first in (0, 100))
    buffer.take([ours[0], theirs[1]])
    found = all_held(buffer)
    assert found[1].next == 2, "the position in which its own game was left"
    assert found[102].next == 103


def test_the_winning_move_missing() -> None:
    """The last move of a game is there, with what it won, for every place of a slab at which a game may end."""
    for length in range(1, 9):
        plies = turns(length)
        winner = (length - 1) % 2
        plies[-1] = ended(plies[-1], "terminated", [1.0, -1.0] if winner == 0 else [-1.0, 1.0])
        whole = [replace(ply, rows={s: replace(row, name=row.name + 100 * game) for s, row in ply.rows.items()})
                 for game in range(25) for ply in plies]  # fmt: skip
        for kind in (BOARD, PARTY):
            found = with_one_game(kind, [*whole[:24], turns(1, first=5000)[0]], 3, n_step=2)
            wins = [100 * game + length - 1 for game in range(24 // length)]
            assert [found[name].reward for name in wins] == [1.0] * len(wins)
            assert [found[name].discount for name in wins] == [0.0] * len(wins)


@pytest.mark.parametrize("kind", [BOARD, PARTY])
@pytest.mark.parametrize("owner", [0, None])
@pytest.mark.parametrize("steps", [1, 2, 4, 8])
def test_a_loss_on_the_opponents_move(kind: Kind, owner: int | None, steps: int) -> None:
    """The opponent wins with its own move. The last decision before it gets the loss, also across slabs, and whether
    or not the opponent learns too."""
    plies = turns(9, owner=owner)
    plies[3] = ended(plies[3], "terminated", [-1.0, 1.0])
    found = with_one_game(kind, plies, steps, n_step=1 if kind is PARTY or owner is None else 2)
    assert found[2].reward == pytest.approx(-DISCOUNT)
    assert (found[2].next, found[2].discount) == (NOTHING, 0.0)
    assert (3 in found) == (owner is not None)
