"""The free parts of the arena: slabs to play in, and slots for the states of tables."""

from __future__ import annotations

from keisei.errors import ParallelError


class Stock:
    """Keeps track of free slabs and slots. A slab is in one place at a time: free, ordered, arrived, lent or
    leased."""

    def __init__(self, slabs: int, reserve: int, tables: int) -> None:
        """``reserve`` slabs replace those that a hung thread may still write to. Each slab has a state slot, because
        any slab may be the last one of a table. Each table has one more slot."""
        self.slabs = slabs
        self._free_slabs = list(range(slabs))[::-1]
        self._reserve = list(range(slabs, slabs + reserve))
        self._free_slots = list(range(self.slots(slabs, reserve, tables)))[::-1]

    @staticmethod
    def slots(slabs: int, reserve: int, tables: int) -> int:
        return slabs + reserve + tables

    @property
    def free_slabs(self) -> int:
        return len(self._free_slabs)

    def take(self) -> tuple[int, int]:
        """Takes a slab, and a slot for the state after it."""
        return self._free_slabs.pop(), self._free_slots.pop()

    def take_slab(self) -> int:
        """Takes a slab for something that is not played."""
        if not self._free_slabs:
            raise ParallelError(
                f"none of the {self.slabs} slabs is free; make the manager with more leased_slabs"
            )
        return self._free_slabs.pop()

    def take_slot(self) -> int:
        return self._free_slots.pop()

    def replace_lost(self) -> tuple[int, int]:
        """Takes a slab and a slot that replace lost ones."""
        if not self._reserve:
            raise ParallelError(
                "too many threads hang in their games, and all spare memory is lost to them; repair the game, or play "
                "in processes (backend: process), which can be ended"
            )
        return self._reserve.pop(), self._free_slots.pop()

    def give_slab(self, slab: int) -> None:
        self._free_slabs.append(slab)

    def give_slot(self, slot: int) -> None:
        self._free_slots.append(slot)
