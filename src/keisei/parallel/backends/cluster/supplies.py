"""What actors need, in Ray's object store: weights by version, and members of the league. Each is put there once, by
the learner's process, and every node fetches it once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Any

from keisei.parallel.weights.model_sync import WeightReader
from keisei.parallel.weights.shelf import Shelf

KEPT_VERSIONS = 2
"""Orders name the newest version, or the one before while it is replaced."""


class Supplies:
    """References to stored weights. A reference that is dropped frees its memory on all nodes, when the calls that use
    it have ended."""

    def __init__(self, ray: Any, weights: WeightReader | None, shelf: Shelf | None) -> None:
        self._ray, self._reader, self._shelf = ray, weights, shelf
        self._weights: OrderedDict[int, Any] = OrderedDict()
        self._members: dict[int, Any] = {}

    def weights(self, version: int) -> tuple[int, Any]:
        """Gets a version of the weights and its reference; -1 is the newest. Without a network there are none."""
        if self._reader is None:
            return version, None
        wanted = self._reader.version if version < 0 else version
        if wanted not in self._weights:
            stored = self._reader.stored(None if version < 0 else version)
            wanted = stored.version
            self._weights[wanted] = self._ray.put(stored)
            while len(self._weights) > KEPT_VERSIONS:
                self._weights.popitem(last=False)
        return wanted, self._weights[wanted]

    @property
    def on_shelf(self) -> tuple[int, ...]:
        return () if self._shelf is None else tuple(sorted(self._shelf.members))

    def members(self, wanted: Collection[int]) -> list[Any]:
        """Gets references to the weights of members. All of them are on the shelf."""
        assert self._shelf is not None or not wanted
        self._members = {number: self._members[number] for number in self.on_shelf if number in self._members}
        for number in wanted:
            if self._shelf is not None and number not in self._members:
                self._members[number] = self._ray.put(self._shelf.stored(number))
        return [self._members[number] for number in wanted]

    def clear(self) -> None:
        self._weights.clear()
        self._members.clear()
