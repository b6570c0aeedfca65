"""Puts a league together at the start of a run: from its settings, its checkpoint and the weights on disk."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from keisei.errors import CheckpointError, ConfigError, KeiseiError
from keisei.games.contract import GameSpec
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.tables import TableSnapshot
from keisei.parallel.worker.members import with_members_of
from keisei.policies.networks import build_network
from keisei.policies.players.finding import RUNS
from keisei.policies.players.saved_player import find_player
from keisei.policies.seating import PolicyConfig
from keisei.policies.trust import demand_trust, trust_settings
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.snapshots import SnapshotStore
from keisei.runs.state_tensors import weights_difference
from keisei.training.league.fixed_members import as_policy, has_values, is_player
from keisei.training.league.opponents import TENSORS, OpponentManager
from keisei.training.league.roster import Member, Roster
from keisei.training.league.settings import LeagueSettings, MemberSettings

__all__ = ["Assembly", "assemble"]

logger = logging.getLogger(__name__)

MOST_SPARE = 16
"""The most places on the shelf for members that left the pool while games still meet them."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """A league before the workers start."""

    settings: LeagueSettings
    roster: Roster
    plan: LeaguePlan
    weights: Mapping[int, Mapping[str, Tensor]]
    """Weights by the number of the member."""
    document: Mapping[str, Any] | None
    """The league in the checkpoint; None if it has none."""

    def open(self, manager: ParallelManager) -> OpponentManager:
        """Puts all weights on the shelf of a manager that was made with the plan."""
        opponents = OpponentManager(self.settings, self.roster, manager)
        for number, weights in self.weights.items():
            member = self.roster.members[number]
            settings = member.player.temperature, member.player.epsilon
            model = (
                None if member.kind == "snapshot" else member.model
            )  # a snapshot has the learner's network
            opponents.lineups.shelve(number, weights, settings, model)
        if self.document is not None:
            opponents.restore(self.document)
        return opponents

    def without_gone(self, snapshots: Sequence[TableSnapshot]) -> list[TableSnapshot]:
        """Replaces members that are gone: in their saved games, the learner plays on against itself."""
        return [
            replace(taken, state=with_members_of(taken.state, self.roster.members)) for taken in snapshots
        ]


def assemble(
    settings: LeagueSettings,
    spec: GameSpec,
    tables: int,
    checkpoint: Checkpoint | None = None,
    run: RunDirectory | None = None,
) -> Assembly:
    """Builds the league for a number of tables, new or from a checkpoint. Weights are loaded and checked here. ``run``
    is the directory with the weights of earlier members."""
    document = None if checkpoint is None else checkpoint.documents.get("league")
    assert document is None or isinstance(document, Mapping)
    loading = _Loading(settings, spec, checkpoint, run)
    if document is not None:
        if run is not None:
            demand_trust(run, document, f"the league in the checkpoint of {run.path}")
        loading.restore(document)
    else:
        loading.skip_used_numbers()
    if loading.store is not None:
        loading.store.remove_leftovers()
    loading.take_in_fixed_members()
    plan = _plan(settings, loading.roster, tables)
    return Assembly(settings, loading.roster, plan, loading.weights, document)


def _plan(settings: LeagueSettings, roster: Roster, tables: int) -> LeaguePlan:
    members = roster.members.values()
    usual = settings.window + settings.milestones + min(MOST_SPARE, 4 + tables)
    return LeaguePlan(
        players={member.number: member.player for member in members if member.kind == "player"},
        places=max(usual, len(roster.snapshots)),  # more if the window was larger before
        networks=tuple(
            member.model for member in members if member.kind == "run" and member.model is not None
        ),
    )


@dataclass
class _Loading:
    """Finds the members and their weights."""

    settings: LeagueSettings
    spec: GameSpec
    checkpoint: Checkpoint | None
    run: RunDirectory | None
    weights: dict[int, Mapping[str, Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.roster = Roster(self.settings.window, self.settings.milestones)
        self.store = None if self.run is None else SnapshotStore(self.run.league)
        self._root: Path = RUNS if self.run is None else self.run.root

    def restore(self, document: Mapping[str, Any]) -> None:
        """Restores the members of a checkpoint."""
        try:
            members = [Member.of(entry) for entry in document["members"]]
            self.roster.continue_at(int(document["next_number"]), int(document["taken"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint does not hold the league: {error!r}") from error
        drawn = self.roster.drawn_after(self.roster.taken)
        for member in members:
            member.in_pool = member.kind == "snapshot" and member.ordinal in drawn
            if member.kind == "player":
                # Older versions of Keisei took an epsilon for random, without an effect.
                member.player = PolicyConfig(policy=member.name)
            if member.model is None or self._find_weights(member):
                self.roster.members[member.number] = member

    def skip_used_numbers(self) -> None:
        """Uses no number twice, also if the run had a league before and went on without it."""
        if self.run is None or self.store is None:
            return
        used = self.store.numbers()
        if self.run.database.exists():
            with RunDatabase(self.run.database, read_only=True) as database:
                used |= {row.number for row in database.league_members()}
        self.roster.next_number = max([self.roster.next_number - 1, *used]) + 1

    def take_in_fixed_members(self) -> None:
        """Adds the fixed members of the settings. Those of the checkpoint keep their numbers; those that the settings
        no longer name leave the pool."""
        known = {member.name: member for member in self.roster.members.values() if member.kind != "snapshot"}
        for given in self.settings.members:
            member = known.get(given.policy)
            if member is None or not self._is_meant(member, given):
                member = self._add(given)
            member.share, member.in_pool = given.share, True

    def _is_meant(self, member: Member, given: MemberSettings) -> bool:
        """Checks if a member of the checkpoint plays as the settings ask. Its run may be gone, so a temperature
        that was left open, and still is, stays."""
        if given.temperature is None and has_values(member.model):
            return given.policy not in self._with_temperature() and member.player.epsilon == given.epsilon
        return member.player == as_policy(given)

    def _with_temperature(self) -> set[str]:
        """Lists the members whose temperature the settings of the checkpoint name."""
        settings: Any = {} if self.checkpoint is None else self.checkpoint.documents.get("settings") or {}
        members = settings.get("league", {}).get("members", ())
        return {member["policy"] for member in members if member.get("temperature") is not None}

    def _add(self, given: MemberSettings) -> Member:
        if is_player(given.policy, self.spec):
            return self.roster.add("player", as_policy(given))
        try:
            model, policy = find_player(given.policy, self._root).network(self.spec)
        except KeiseiError as error:  # a run that is resumed with this member is refused, and has not failed
            raise ConfigError(f"league.members: {given.policy}: {error}") from error
        if self.run is not None:
            trust_settings(self.run, model)  # it was trusted in its own run
        member = self.roster.add("run", as_policy(given, policy), model=model)
        self.weights[member.number] = policy.network.state_dict()
        return member

    def _find_weights(self, member: Member) -> bool:
        """Loads the weights of a member of the checkpoint. Returns False if somebody has removed them."""
        saved = {} if self.checkpoint is None else self.checkpoint.tensors.get(TENSORS, {})
        prefix = f"{member.number}."
        own = {name.removeprefix(prefix): tensor for name, tensor in saved.items() if name.startswith(prefix)}
        if own:
            self.weights[member.number] = own
        elif self.store is not None and member.number in self.store.numbers():
            self.weights[member.number] = self._stored(self.store, member)
        else:
            logger.warning(
                "member %d of the league (%s) is gone, and is left out", member.number, member.name
            )
        return member.number in self.weights

    def _stored(self, store: SnapshotStore, member: Member) -> Mapping[str, Tensor]:
        path = store.path_of(member.number)
        try:
            checkpoint = store.load(member.number)
            weights = checkpoint.tensors.get("model", {})
            _demand_same(member, checkpoint.documents.get("member"))
            _demand_network(member, weights, self.spec)
        except CheckpointError as error:
            raise CheckpointError(
                f"member {member.number} of the league ({member.name}) cannot be loaded: {error}. Restore {path} from "
                f"a copy, or delete {path} to go on without it"
            ) from error
        return weights


def _demand_same(member: Member, document: Any) -> None:
    """Refuses the file of another member, which somebody has put in its place."""
    try:
        found = Member.of(document)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"its file does not say which member it is: {error!r}") from error
    wanted, there = (
        {"number": m.number, "name": m.name, "update": m.update, "network": m.model} for m in (member, found)
    )
    if wanted != there:
        differing = ", ".join(part for part in wanted if wanted[part] != there[part])
        raise CheckpointError(
            f"its file holds member {found.number} ({found.name}), which has another {differing}"
        )


def _demand_network(member: Member, weights: Mapping[str, Tensor], spec: GameSpec) -> None:
    """Refuses weights of another network."""
    assert member.model is not None
    if difference := weights_difference(build_network(member.model, spec, seed=None).state_dict(), weights):
        raise CheckpointError(f"its file holds the weights of another network: {difference}")
