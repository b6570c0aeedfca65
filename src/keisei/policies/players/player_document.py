"""What a checkpoint says of its player: the game, the networks and what their outputs mean, and how freely it plays.

It is data that a stranger may have written, so its types and ranges are checked, and the code that it names must be
trusted before anything is imported. Checkpoints of earlier versions hold no such document: theirs is made of the
settings that they or their runs hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import Field, model_validator

from keisei.config import Settings, parse_settings
from keisei.errors import CheckpointError, ConfigError, RunError
from keisei.games.env_config import EnvConfig
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.model_config import ModelConfig
from keisei.policies.trust import demand_trust
from keisei.ranges import Temperature
from keisei.runs.checkpoint import Checkpoint, restoring
from keisei.runs.directory import CONFIG, RunDirectory, config_digest
from keisei.runs.foreign_documents import as_written_today, check_plain

__all__ = ["DOCUMENT", "PlayerDocument", "read_document", "trained_settings"]

DOCUMENT = "player"
"""Its name among the documents of a checkpoint."""
_OUTPUTS = {"ppo": "policy", "dqn": "dueling"}
"""What ``auto`` meant, by the algorithm."""


class PlayerDocument(Settings):
    """All that is needed to play a checkpoint, except its weights."""

    game: str
    """A name that ``make_game`` knows."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The options of the game."""
    model: ModelConfig | None = None
    """The network that plays all seats, and what its outputs mean."""
    agents: AgentsPlan | None = None
    """The networks of independent agents: number i plays seat i."""
    temperature: Temperature = 0.0
    """Temperature of its play, unless another is given."""

    @model_validator(mode="after")
    def _says_who_plays(self) -> PlayerDocument:
        if (self.model is None) == (self.agents is None):
            raise ValueError("either one model plays all seats, or agents have one each")
        return self


def read_document(
    checkpoint: Checkpoint, run: RunDirectory | None, *, trusted: bool = False
) -> PlayerDocument:
    """Reads the document of a checkpoint. Code that it names must be trusted in the run, or,
    outside of a run, by ``trusted``."""
    found, where = checkpoint.documents.get(DOCUMENT), str(checkpoint.path)
    settings: Any = {DOCUMENT: found}
    if found is None:
        settings, where = _earlier_settings(checkpoint, run)
    if run is not None or not trusted:
        demand_trust(run, settings, where)
    with restoring(checkpoint, "a player"):
        check_plain(settings)
        document = _of_settings(settings, where) if found is None else found
        if not isinstance(document, Mapping):
            raise CheckpointError(f"{where} does not say what its player is")
        try:
            return parse_settings(PlayerDocument, document, where)
        except ConfigError as error:
            raise CheckpointError(str(error)) from error


def trained_settings(
    checkpoint: Checkpoint, run: RunDirectory | None
) -> tuple[Mapping[str, Any], str] | None:
    """Gets the settings that a checkpoint was trained with, and where they stand. The oldest versions of Keisei saved
    their digest only: then it is the file of the run that has this digest, or None if there is none."""
    settings = checkpoint.documents.get("settings")
    if isinstance(settings, Mapping):
        return as_written_today(settings), str(checkpoint.path)
    for path in () if run is None else run.earlier_configs():
        with suppress(RunError):  # it is damaged
            kept = RunDirectory(path.parent).kept_config(path.name)
            if config_digest(kept) == checkpoint.config_digest:
                return kept, str(path)
    return None


def _earlier_settings(checkpoint: Checkpoint, run: RunDirectory | None) -> tuple[dict[str, Any], str]:
    """Gets what an earlier version wrote about a player: into the checkpoint, or else into its run. A member of a
    league that comes from another run names its own network and temperature."""
    found = trained_settings(checkpoint, run)
    if found is None:
        if run is None:
            raise CheckpointError(
                f"{checkpoint.path} was written by an earlier version of Keisei, which kept in the run what its player "
                f"is. Put it back into the folder checkpoints of its run"
            )
        found = run.config(), str(run.path / CONFIG)
    known, where = found
    settings = {part: known.get(part) or {} for part in ("env", "model", "learner", "evaluation")}
    member = checkpoint.documents.get("member")
    if isinstance(member, Mapping) and member.get("kind") == "run":
        where = str(checkpoint.path)
        with restoring(checkpoint, "a member of a league"):
            player: Any = member["player"]
            settings |= {"model": member["model"], "evaluation": {"temperature": player["temperature"]}}
    return settings, where


def _of_settings(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Makes the document of the settings of a run."""
    env = parse_settings(EnvConfig, settings["env"], where)
    model, learner = settings["model"], {"regime": "ppo"} | settings["learner"]
    document = {
        "game": env.game,
        "options": env.game_options(),
        "temperature": settings["evaluation"].get("temperature", 0.0),
    }
    if learner["regime"] != "independent":
        return document | {"model": _with_outputs(model, learner["regime"])}
    seats = range(env.make(batch=1, seed=0).spec.seats)
    models = [_model_of(agent, model, learner) for agent in seats]
    return document | {"agents": {"models": models, "stacks": [[agent] for agent in seats]}}


def _model_of(agent: int, model: Mapping[str, Any], learner: Mapping[str, Any]) -> dict[str, Any]:
    own = {int(number): settings for number, settings in learner.get("agents", {}).items()}.get(agent, {})
    usual = learner.get("algorithm", "dqn")
    algorithm = own.get("algorithm") or usual
    if algorithm != usual:  # what its outputs mean follows from its own algorithm
        model = {**model, "outputs": "auto", "quantiles": 1}
    return _with_outputs({**model, **own.get("model", {})}, algorithm)


def _with_outputs(model: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
    outputs = model.get("outputs", "auto")
    return {**model, "outputs": _OUTPUTS[algorithm] if outputs == "auto" else outputs}
