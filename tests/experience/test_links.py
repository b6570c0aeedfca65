"""Links say what came of decisions. Their native maker refuses what would lead it beyond its memory, whoever saved or
wrote it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force_for_tests import Ply, Row
from histories_for_tests import GAMES, Histories, Kind, Opinion, slabs_of

from keisei.experience.links import NONE, OPEN, ROW, LinkRule, Links, OpenRows, linker
from keisei.experience.slab import Slab
from keisei.games.contract import Array
from keisei.native import core, load_core, usable_builds

STEPS = 4
KIND = Kind(seats=3)


def played(kind: Kind = KIND) -> Slab:
    histories = Histories(np.random.default_rng(1), kind, "alone")
    return slabs_of([histories.column(STEPS) for _ in range(GAMES)], kind, [STEPS], Opinion(1, False))[0].slab


class Table:
    """A table whose slab is followed, with all arrays of the right size."""

    def __init__(self, n_step: int = 1, earlier: int = 0) -> None:
        self.slab, self.rule = played(), LinkRule(n_step, 0.9, 0, one_chain=False)
        self.maker = linker(self.slab.shape, self.rule)
        self.rows = OpenRows(self.rule.most_open(self.slab.shape))
        self.links = Links(self.slab.shape.transitions + earlier, plies=True)
        self.closed = np.empty(self.slab.shape.transitions + self.rule.most_open(self.slab.shape), np.int32)

    def follow(self, index: int = 0, *, games: bool = True, end: bool = False) -> Array:
        return self.rows.follow(self.maker, index, self.slab, self.links, self.closed, games=games, end=end)

    def with_row(self, **changes: int) -> None:
        row = {"chain": 0, "place": 0, "seat": 0, "plies": 1, "earned": 0.0, "factor": 1.0} | changes
        self.rows = OpenRows(len(self.rows._rows), np.array([tuple(row.values())], ROW))


def test_a_link_says_what_was_earned_how_long_it_took_and_where_it_goes_on() -> None:
    """One seat alone: a game of two decisions that ends, one that is cut off, and one that goes on."""
    kind = Kind(seats=1)
    plies = [Ply({0: Row(t, 0, 0)}, [2.0**t]) for t in range(STEPS + 1)]
    plies[1] = replace(plies[1], end="terminated")
    plies[2] = replace(plies[2], end="truncated", finals={0: 99})
    slab = slabs_of([plies], kind, [STEPS], Opinion(1, False))[0].slab
    rule = LinkRule(1, 0.5, 0, one_chain=False)
    links, rows, closed = Links(STEPS, plies=True), OpenRows(1), np.empty(STEPS + 1, np.int32)
    found = rows.follow(linker(slab.shape, rule), 0, slab, links, closed, games=True, end=False)
    assert found.tolist() == [0, 1, 2]
    assert links.rewards.tolist() == [1, 2, 4, 0]
    assert links.discounts.tolist() == [0.5, 0, 0.5, 0]
    assert links.next.tolist() == [1, NONE, STEPS + 1 + 2, OPEN]
    assert links.plies.tolist() == [1, 1, 1, 0]
    assert rows.rows.tolist() == [(0, 3, 0, 1, 8.0, 0.5)]
    (found,) = rows.follow(linker(slab.shape, rule), 0, slab, links, closed, games=False, end=True)
    assert (found, links.next[3], links.plies[3], links.rewards[3], len(rows)) == (3, STEPS, 1, 8, 0)


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_plies_are_counted_to_the_end_of_a_game_over_slabs(n_step: int, end: str) -> None:
    """Seat 0 decides in the first ply, and waits until its game ends in the third ply of the second slab."""
    kind = Kind(seats=2)
    plies = [Ply({int(t > 0): Row(t, int(t > 0), int(t > 0))}, [1.0, 0.0]) for t in range(2 * STEPS + 1)]
    plies[STEPS + 2] = replace(plies[STEPS + 2], end=end, finals={0: 99} if end == "truncated" else None)
    rule = LinkRule(n_step, 1.0, 0, one_chain=False)
    slabs = [item.slab for item in slabs_of([plies], kind, [STEPS, 2 * STEPS], Opinion(1, False))]
    maker = linker(slabs[0].shape, rule, 2)
    rows, links, closed = (
        OpenRows(2 * n_step),
        Links(2 * STEPS, plies=True),
        np.empty(STEPS + 2 * n_step, np.int32),
    )
    for index, slab in enumerate(slabs):
        rows.follow(maker, index, slab, links, closed, games=True, end=False)
    assert (links.plies[0], links.rewards[0]) == (STEPS + 3, STEPS + 3)


@pytest.mark.parametrize("games", [True, False])
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"chain": -1}, "of no chain"),
        ({"chain": GAMES * 3}, "of no chain"),
        ({"place": -1}, "has no place"),
        ({"place": STEPS * GAMES}, "has no place"),
        ({"seat": -1}, "a seat is none"),
        ({"seat": 3}, "a seat is none"),
        ({"plies": -1}, "has no place"),
    ],
)
def test_rows_that_are_none_of_the_table_are_refused(games: bool, row: dict[str, int], problem: str) -> None:
    table = Table()
    table.with_row(**row)
    with pytest.raises(IndexError, match=problem):
        table.follow(games=games, end=not games)


def test_a_chain_has_no_more_rows_than_decisions_of_a_link() -> None:
    for n_step, error in ((1, True), (2, False)):
        table = Table(n_step)
        rows = np.zeros(2, ROW)
        table.rows = OpenRows(len(table.rows._rows), rows)
        if error:
            with pytest.raises(IndexError, match="of no chain"):
                table.follow()
        else:
            table.follow()
    table.rows._count = len(table.rows._rows) + 1
    with pytest.raises(IndexError, match="more open decisions than the table has"):
        table.follow()


@pytest.mark.parametrize(("column", "number"), [("seat", 3), ("seat", -1), ("final_seat", 3)])
def test_a_slab_with_seats_that_the_game_does_not_have_is_refused(column: str, number: int) -> None:
    """In a chain of both seats; where each seat has its own, no chain is of such a seat."""
    table = Table()
    slab = played(Kind(seats=2, zero_sum=True))
    slab.terminated[:], slab.truncated[:] = False, False
    slab.truncated[-1] = column == "final_seat"
    getattr(slab, column)[:] = number
    table.slab = slab
    table.maker = linker(slab.shape, LinkRule(1, 0.9, 0, one_chain=True))
    table.rows, table.closed = OpenRows(GAMES), np.empty(slab.shape.transitions + GAMES, np.int32)
    with pytest.raises(IndexError, match="a seat is none of the game"):
        table.follow()


def test_a_slab_that_the_ring_does_not_have_is_refused() -> None:
    table = Table()
    for index in (-1, 1):
        with pytest.raises(IndexError, match="a slab is outside 0 … 0"):
            table.follow(index)


@pytest.mark.parametrize("name", ["rewards", "discounts", "next", "plies"])
def test_arrays_of_the_wrong_size_are_refused(name: str) -> None:
    table = Table()
    setattr(table.links, name, getattr(table.links, name)[:-1].copy())
    with pytest.raises(ValueError, match=f"{name.rstrip('s')[:4]}.* elements, not"):
        table.follow()
    table = Table()
    table.closed = table.closed[:-1].copy()
    with pytest.raises(ValueError, match="closed has"):
        table.follow()


@pytest.mark.parametrize("changed", ["slabs", "steps", "games", "seats", "n_step"])
def test_sizes_of_nothing_are_refused(changed: str) -> None:
    sizes: dict[str, Any] = dict.fromkeys(("slabs", "steps", "games", "seats", "n_step"), 1)
    rest: dict[str, Any] = {"simultaneous": False, "discount": 0.9, "owner": 0, "one_chain": False}
    core.Linker(**sizes, **rest)
    with pytest.raises(ValueError, match="are 1 or more"):
        core.Linker(**{**sizes, changed: 0}, **rest)


def estimated(table: Table, places: Array, values: Array, ratios: int = 0, trace: float = 0.9) -> None:
    rho = np.ones(ratios, np.float32)
    out = np.empty((2, len(places)), np.float32)
    table.maker.estimate(*table.links.arrays, values, rho, rho, trace, places, *out)


def test_an_estimate_reads_no_number_that_leads_elsewhere() -> None:
    table = Table()
    table.follow()
    places = np.flatnonzero(table.links.next != OPEN).astype(np.int32)
    values = np.zeros((2 * STEPS + 1) * GAMES, np.float32)
    estimated(table, places, values)
    for wrong in (places - 1000, places + 1000):
        with pytest.raises(IndexError, match="a place is outside"):
            estimated(table, wrong, values)
    with pytest.raises(ValueError, match="values has"):
        estimated(table, places, values[:-1].copy())
    with pytest.raises(ValueError, match="rho has"):
        estimated(table, places, values, ratios=1)
    for name, number in (("next", len(values)), ("plies", -1)):
        column = getattr(table.links, name)
        kept, column[places[-1]] = column[places[-1]], number
        with pytest.raises(IndexError, match="leads to no position"):
            estimated(table, places, values)
        column[places[-1]] = kept
    table.links.plies = table.links.plies[:0]
    with pytest.raises(ValueError, match="needs the plies"):
        estimated(table, places, values)


@pytest.mark.skipif(len(usable_builds()) < 2, reason="this processor runs one build only")
def test_both_builds_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for build in usable_builds():
        monkeypatch.setattr("keisei.experience.links.core", load_core(build))
        table = Table()
        table.follow(end=True)
        places = np.flatnonzero(table.links.next != OPEN).astype(np.int32)
        values = np.random.default_rng(2).normal(size=(2 * STEPS + 1) * GAMES).astype(np.float32)
        out = np.empty((2, len(places)), np.float32)
        ratios = np.linspace(0.1, 1, len(places), dtype=np.float32)
        table.maker.estimate(*table.links.arrays, values, ratios, ratios, 0.83, places, *out)
        found.append(b"".join(array.tobytes() for array in (*table.links.arrays, table.rows.rows, out)))
    assert found[0] == found[1]
