"""Settings of the league: who is in it, when the learner joins it, and how members are drawn."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keisei.config import Rule, Settings
from keisei.ranges import Count, Temperature

__all__ = ["SNAPSHOTS", "CurriculumPhase", "LeagueSettings", "MemberSettings", "Sampling", "Weighting"]

Sampling = Literal["uniform", "latest", "pfsp"]
Weighting = Literal["variance", "squared", "linear"]
SNAPSHOTS = "snapshots"
"""In a curriculum, the name of all snapshots of the learner."""


class MemberSettings(Settings):
    """A member of the league that is there from the start and stays. A text alone is its ``policy``."""

    text_is: ClassVar = "policy"

    policy: str
    """random, greedy, heuristic, search:DEPTH, a run or a checkpoint, as in ``keisei evaluate``."""
    temperature: Temperature | None = None
    """Temperature of the play of a run; 0 takes the best action. Null takes 1 for a network with a policy. A network
    with action values plays as in the evaluations of its run, since at 1 it would be close to random."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of its decisions that are random. Only runs and checkpoints have one."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of all draws that give this member. Null draws it as if it were a snapshot."""

    @model_validator(mode="after")
    def _is_another(self) -> MemberSettings:
        if self.policy in ("learner", SNAPSHOTS):
            raise ValueError(
                f"{self.policy!r} is no fixed member: latest_ratio says how often the learner meets itself, and its "
                f"snapshots join by themselves"
            )
        return self


class CurriculumPhase(Settings):
    """Other settings for a part of the run."""

    until: Annotated[float, Field(gt=0, le=1)]
    """The progress of the run, 0 to 1, at which the phase ends."""
    members: tuple[str, ...] | None = None
    """The members that may be drawn: fixed members by their ``policy``, and ``snapshots``. Null allows all."""
    latest_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    """As below; null takes that one."""
    sampling: Sampling | None = None
    """As below; null takes that one."""


class LeagueSettings(Settings):
    """The learner plays some of its games against a pool of opponents: its own earlier weights and fixed members. A run
    has no league unless its settings name one."""

    on_change: ClassVar[Rule] = Rule.ANNOUNCED

    other_names: ClassVar = {"play_against_latest_model_ratio": "latest_ratio"}

    enabled: bool = True
    """False plays without a league."""
    latest_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of games in which the learner plays against itself. In the others it meets a member of the league. Games
    with an opponent of ``parallel.seating`` are in neither share. ``play_against_latest_model_ratio`` is another
    name."""
    window: Annotated[int, Field(ge=1, le=1024)] = 12
    """Snapshots of the learner that may be drawn: the latest ones."""
    milestones: Annotated[int, Field(ge=0, le=1024)] = 4
    """Older snapshots that may be drawn as well. They are spread evenly over the run, and the first one stays."""
    save_steps: Count = 100_000
    """Transitions from one snapshot to the next. With ``add_when: win_rate``, the fewest."""
    add_when: Literal["steps", "win_rate"] = "steps"
    """When a snapshot is added: after ``save_steps``, or when the learner also scores enough against the others."""
    win_rate_threshold: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """For ``add_when: win_rate``: a snapshot joins when the learner scores at least this against the other snapshots.
    Only games since the last snapshot count."""
    swap_steps: Count = 50_000
    """A table draws another member after so many of its transitions, when a snapshot joins, and when a phase of the
    curriculum ends. Games that have begun keep their opponent."""
    sampling: Sampling = "uniform"
    """How members are drawn. uniform: all equally often. latest: the newest snapshot and the fixed members equally
    often, and no older snapshot. pfsp: by the score against them (prioritised fictitious self-play)."""
    weighting: Weighting = "variance"
    """Whom pfsp prefers; p is the learner's score against a member. variance: members of its own strength, p(1-p).
    squared: strong members, (1-p)². linear: strong members, less so, 1-p."""
    members: tuple[MemberSettings, ...] = ()
    """Fixed members beside the snapshots."""
    curriculum: tuple[CurriculumPhase, ...] = ()
    """Phases at the start of the run, in order. After the last one, the settings above hold."""
    temperature: Temperature | None = None
    """The temperature of snapshots. Null takes that of the learner when the snapshot was made."""
    epsilon: Annotated[float, Field(ge=0, le=1)] | None = None
    """The share of random decisions of snapshots. Null takes that of the learner when the snapshot was made: the mean
    over its games, if they differed."""
    forgotten_threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """A member counts as forgotten when the interval of the learner's score against it was once above this, and is now
    below it."""

    @model_validator(mode="after")
    def _fits_together(self) -> LeagueSettings:
        names = [member.policy for member in self.members]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"members names {twice[0]!r} twice; raise its share instead")
        total = sum(member.share or 0.0 for member in self.members)
        if total > 1 + 1e-9:
            raise ValueError(f"the shares of all members together must be at most 1; they are {total:g}")
        ends = [phase.until for phase in self.curriculum]
        if ends != sorted(set(ends)):
            raise ValueError(f"the phases of a curriculum end one after the other; theirs end at {ends}")
        known = {*names, SNAPSHOTS}
        unknown = [name for phase in self.curriculum for name in phase.members or () if name not in known]
        if unknown:
            raise ValueError(
                f"a phase of the curriculum names {unknown[0]!r}, which is no member; known are "
                f"{', '.join(sorted(known))}"
            )
        return self

    def phase_at(self, progress: float) -> CurriculumPhase:
        """Finds who may be drawn at this progress of the run, and how."""
        phase = next((phase for phase in self.curriculum if progress < phase.until), CurriculumPhase(until=1))
        return phase.model_copy(
            update={
                "latest_ratio": self.latest_ratio if phase.latest_ratio is None else phase.latest_ratio,
                "sampling": phase.sampling or self.sampling,
            }
        )
