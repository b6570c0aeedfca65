"""The shelf: places for the weights of opponents, in one block of shared memory.

A member of the league is written once, and every worker reads it where it lies: the parameters of its network are
views of the shelf. Nothing guards a place against being overwritten while it is read. ``Lineups`` ensures this: it
clears a place only when no lineup, no order and no saved game names its member. A worker hears of a member through
its pipe, after the member was written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from keisei.errors import ParallelError, SharedMemoryError
from keisei.games.contract import Array, ByteArray, GameSpec, IntArray
from keisei.machine.memory import free_memory
from keisei.machine.shared_memory import Layout, SharedBlock
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.weights.weight_codec import WeightLayout, Weights, tensors_of, write_tensors
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network

EMPTY = -1
MemberPlay: TypeAlias = tuple[float, float]
"""How freely a member plays: temperature and epsilon."""


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """Places for the weights of one kind of network."""

    model: ModelConfig
    layout: WeightLayout
    places: int

    @classmethod
    def of(cls, model: ModelConfig, spec: GameSpec, places: int) -> PlaceKind:
        return cls(model, WeightLayout.of(tensors_of(build_network(model, spec, seed=None))), places)


@dataclass(frozen=True, slots=True)
class StoredMember:
    """The weights of a member as they are stored, on their way to another machine."""

    member: int
    kind: int
    """The kind of its place: an index."""
    settings: MemberPlay
    content: ByteArray


class Shelf:
    """Holds the weights of members. A worker process gets it as an argument when it starts, with the arena."""

    def __init__(self, kinds: Sequence[PlaceKind], block: SharedBlock | None = None) -> None:
        self.kinds = tuple(kinds)
        self._kind_of = [kind for kind in kinds for _ in range(kind.places)]
        layout = self._layout()
        if block is None:
            _demand_memory(layout.nbytes)
            block = SharedBlock(layout.nbytes, sparse=True)
            layout.views(block)["member"][:] = EMPTY
        self._block = block
        views = layout.views(block)
        self._member: IntArray = views["member"]
        self._settings: Array = views["settings"]
        self._memory = [torch.from_numpy(views[f"place {place}"]) for place in range(len(self._kind_of))]

    @classmethod
    def of(cls, league: LeaguePlan | None, learner: ModelConfig | None, spec: GameSpec) -> Shelf | None:
        """Makes the shelf of a league; None without one."""
        if league is None or learner is None:
            return None
        own = PlaceKind.of(learner, spec, league.places)
        return cls([own, *(PlaceKind.of(model, spec, 1) for model in league.networks)])

    def _layout(self) -> Layout:
        return Layout.of(
            [
                ("member", np.int32, (len(self._kind_of),)),
                ("settings", np.float64, (len(self._kind_of), 2)),
                *(
                    (f"place {place}", np.uint8, (kind.layout.nbytes,))
                    for place, kind in enumerate(self._kind_of)
                ),
            ]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Shelf, (self.kinds, self._block)

    @property
    def members(self) -> set[int]:
        """The members whose weights are here."""
        return set(self._member.tolist()) - {EMPTY}

    def has_room(self, model: ModelConfig) -> bool:
        """Checks if a place for weights of this kind of network is free."""
        return self._free_place(model) is not None

    def put(self, member: int, model: ModelConfig, weights: Weights, settings: MemberPlay) -> None:
        """Writes the weights of a new member, and the temperature and epsilon that it plays with."""
        if member in self.members:
            raise ParallelError(f"member {member} is on the shelf already; a member's weights never change")
        place = self._free_place(model)
        if place is None:
            raise ParallelError(
                f"all {len(self._memory)} places of the shelf are taken, or are for other networks; clear members that "
                f"nobody meets any more, or make the manager with more places"
            )
        tensors, layout = tensors_of(weights), self._kind_of[place].layout
        layout.check(tensors, f"member {member}")
        with torch_threads(1):
            write_tensors(tensors, layout.views(self._memory[place]))
        self._settings[place] = settings
        self._member[place] = member

    def clear(self, member: int) -> None:
        """Frees the place of a member that nobody meets any more."""
        self._member[self.place_of(member)] = EMPTY

    def place_of(self, member: int) -> int:
        found = np.flatnonzero(self._member == member)
        if not len(found):
            raise ParallelError(f"member {member} is not on the shelf, which has {sorted(self.members)}")
        return int(found[0])

    def settings_at(self, place: int) -> MemberPlay:
        temperature, epsilon = self._settings[place].tolist()
        return temperature, epsilon

    def weights_of(self, member: int) -> dict[str, Tensor]:
        """Copies a member's weights."""
        place = self.place_of(member)
        views = self._kind_of[place].layout.views(self._memory[place])
        return {name: view.clone() for name, view in views.items()}

    def stored(self, member: int) -> StoredMember:
        """Copies a member as it is stored."""
        place = self.place_of(member)
        content = self._memory[place].numpy().copy()
        return StoredMember(member, self.kinds.index(self._kind_of[place]), self.settings_at(place), content)

    def take(self, stored: StoredMember) -> None:
        """Puts a member here that comes from the shelf of another machine. Nothing happens if it is here already."""
        if stored.member in self.members:
            return
        model = self.kinds[stored.kind].model
        place = self._free_place(model)
        if place is None:
            raise ParallelError(f"no place of the shelf is free for member {stored.member}")
        self._memory[place].numpy()[:] = stored.content
        self._settings[place] = stored.settings
        self._member[place] = stored.member

    def keep_only(self, members: Collection[int]) -> None:
        """Clears all members but these."""
        for member in self.members - set(members):
            self.clear(member)

    def network_at(self, place: int, spec: GameSpec) -> ActorCritic:
        """Builds a network that plays with whatever weights are at a place. Its parameters are views of the shelf."""
        kind = self._kind_of[place]
        network = build_network(kind.model, spec, seed=None)
        views = kind.layout.views(self._memory[place])
        for name, tensor in tensors_of(network).items():
            tensor.data = views[name]
        return network.eval()

    def close(self) -> None:
        self._memory.clear()
        self._member = self._member.copy()
        self._settings = self._settings.copy()
        self._block.close()

    def _free_place(self, model: ModelConfig) -> int | None:
        return next(
            (
                place
                for place, kind in enumerate(self._kind_of)
                if kind.model == model and self._member[place] == EMPTY
            ),
            None,
        )


def _demand_memory(nbytes: int) -> None:
    """Raises an error if the shelf cannot be filled. Its pages are taken only when they are written."""
    free = free_memory()
    if free is not None and nbytes > free:
        raise SharedMemoryError(
            f"a shelf for opponents takes {nbytes / 2**20:,.0f} MB, and {free / 2**20:,.0f} MB are left; a smaller "
            f"league.window, fewer league.milestones or a smaller network take less"
        )
