"""Fixed members of a league: how they play, in the league and elsewhere, and what is said of damaged files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from runs_for_tests import checkpoint_of, damage, make_run, network_of
from training_for_tests import TINY, train

from keisei import make_game
from keisei.config import apply_overrides, parse_settings
from keisei.errors import CheckpointError, ConfigError
from keisei.policies import NeuralPolicy, build_network
from keisei.policies.players.saved_player import find_player, load_player
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory
from keisei.runs.snapshots import SnapshotStore
from keisei.runs.state_tensors import model_tensors
from keisei.training.league.assembly import assemble
from keisei.training.league.roster import Member
from keisei.training.league.settings import LeagueSettings
from keisei.training.settings import TrainConfig

SPEC = make_game("tictactoe").spec
LEAGUE = "league={latest_ratio: 0.0, swap_steps: 64, members: [%s]}"


def value_run(root: Path, temperature: float = 0.0, update: int = 5) -> RunDirectory:
    """A run named ``values`` whose network has action values."""
    settings = {"env": TINY["env"], "model": TINY["model"], "learner": {"regime": "pool"}}
    given = apply_overrides(settings, ["model.hidden_dim=24", f"evaluation.temperature={temperature}"])
    run = RunDirectory.create(root, "values", parse_settings(TrainConfig, given).resolved())
    CheckpointArchive(run.checkpoints).save(checkpoint_of(run, update))
    return run


def only_member(root: Path, member: Any) -> Member:
    """The member of a new league with one member."""
    settings = parse_settings(LeagueSettings, {"members": [member]})
    (found,) = assemble(settings, SPEC, 2, run=RunDirectory(root / "mine")).roster.members.values()
    return found


def fixed_members(run: RunDirectory) -> list[tuple[int, str, float]]:
    """Number, name and temperature of those in the newest checkpoint that may be drawn."""
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    league: Any = found.checkpoint.documents["league"]
    return [
        (member["number"], member["player"]["policy"], member["player"]["temperature"])
        for member in league["members"]
        if member["in_pool"] and member["kind"] != "snapshot"
    ]


# How they play


@pytest.mark.parametrize("temperature", [0.0, 0.25])
def test_a_network_with_action_values_plays_as_in_the_evaluations_of_its_run(
    tmp_path: Path, temperature: float
) -> None:
    value_run(tmp_path, temperature)
    assert only_member(tmp_path, "values").player.temperature == temperature
    assert only_member(tmp_path, {"policy": "values", "temperature": 1.0}).player.temperature == 1.0


def test_a_network_with_a_policy_plays_at_temperature_1(tmp_path: Path) -> None:
    make_run(tmp_path, "other")
    assert only_member(tmp_path, "other").player.temperature == 1.0
    assert only_member(tmp_path, {"policy": "other", "temperature": 0}).player.temperature == 0.0
    assert only_member(tmp_path, "random").player.temperature == 1.0


def test_a_temperature_that_is_left_open_stays_when_the_run_is_resumed(tmp_path: Path) -> None:
    """Also where the run that the member comes from is gone."""
    other = value_run(tmp_path, 0.25)
    run = train(tmp_path, LEAGUE % "values", "run.steps=256").run
    assert fixed_members(run) == [(100, "values", 0.25)]
    shutil.rmtree(other.path)
    train(tmp_path, LEAGUE % "values", "run.steps=512")
    assert fixed_members(run) == [(100, "values", 0.25)]


def test_a_temperature_may_change_when_the_run_is_resumed(tmp_path: Path) -> None:
    value_run(tmp_path)
    run = train(tmp_path, LEAGUE % "{policy: values, temperature: 1.0}", "run.steps=256").run
    assert fixed_members(run) == [(100, "values", 1.0)]
    train(tmp_path, LEAGUE % "values", "run.steps=512")
    ((number, _, temperature),) = fixed_members(run)
    assert (number > 100, temperature) == (True, 0.0)


def test_an_old_league_with_settings_without_an_effect_can_be_resumed(tmp_path: Path) -> None:
    run = train(tmp_path, LEAGUE % "random", "run.steps=256").run
    archive = CheckpointArchive(run.checkpoints)
    found = archive.latest()
    assert found is not None
    league: Any = found.checkpoint.documents["league"]
    old = json.loads(json.dumps(league))
    old["members"][0]["player"]["epsilon"] = 0.5
    archive.save(replace(found.checkpoint, documents={**found.checkpoint.documents, "league": old}))
    train(tmp_path, LEAGUE % "random", "run.steps=512")
    assert fixed_members(run) == [(100, "random", 1.0)]


def test_a_run_that_is_resumed_with_an_unknown_member_stays_as_it_is(tmp_path: Path) -> None:
    run = train(tmp_path, LEAGUE % "random", "run.steps=256").run
    before, settings = run.status(), run.config()
    with pytest.raises(ConfigError, match=r"^league\.members: nobody: no run is named 'nobody'"):
        train(tmp_path, LEAGUE % "random, nobody", "run.steps=512")
    assert (run.status().state, run.config()) == (before.state, settings)
    assert train(tmp_path, LEAGUE % "random", "run.steps=512").counters.update == 2


# Elsewhere


def test_a_member_from_another_run_plays_anywhere_with_its_own_network(tmp_path: Path) -> None:
    other = value_run(tmp_path, 0.25)
    train(tmp_path, LEAGUE % "values", "run.steps=256")
    shutil.rmtree(other.path / "checkpoints")
    policy = load_player("run@member-0100", SPEC, tmp_path).policy
    assert isinstance(policy, NeuralPolicy)
    assert policy.temperature == 0.25
    expected = network_of(other, 5).state_dict()
    for name, tensor in policy.network.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=0)
    model, again = find_player("run@member-0100", tmp_path).network(SPEC)
    assert (model.hidden_dim, model.outputs, again.temperature) == (24, "dueling", 0.25)
    assert only_member(tmp_path, "run@member-0100").model == model


def test_a_snapshot_plays_as_the_checkpoints_of_its_run(tmp_path: Path) -> None:
    train(tmp_path, "league={}", "run.steps=256", "evaluation.temperature=0.25")
    policy = load_player("run@member-0100", SPEC, tmp_path).policy
    assert isinstance(policy, NeuralPolicy)
    assert policy.temperature == 0.25


# Damage


@pytest.fixture
def stored(tmp_path: Path) -> SnapshotStore:
    """The weights of the members of a run named ``run``, which can be resumed: two snapshots of one network."""
    league = "league={latest_ratio: 0.0, save_steps: 256, swap_steps: 64}"
    return SnapshotStore(train(tmp_path, league, "run.steps=512").run.league)


def refusal(stored: SnapshotStore) -> str:
    with pytest.raises(CheckpointError) as caught:
        train(stored.directory.parents[1], "league={latest_ratio: 0.0}")
    return str(caught.value)


def test_the_file_of_another_member_is_refused(stored: SnapshotStore) -> None:
    """It has the same network, so its weights would fit."""
    path = stored.path_of(101)
    shutil.rmtree(path)
    shutil.copytree(stored.path_of(100), path)
    assert refusal(stored) == (
        "member 101 of the league (update-000000001) cannot be loaded: its file holds member 100 (update-000000000), "
        f"which has another number, name, update. Restore {path} from a copy, or delete {path} to go on without it"
    )


def test_weights_of_another_network_are_refused(stored: SnapshotStore) -> None:
    wider = build_network({"network": "mlp", "hidden_dim": 32, "num_layers": 1}, SPEC, seed=0)
    stored.save(101, replace(stored.load(101), tensors={"model": model_tensors(wider)}))
    told = refusal(stored)
    assert (
        "its file holds the weights of another network: body.1.bias is float32[32] and must be float32[16]"
        in told
    )
    assert told.endswith(f"delete {stored.path_of(101)} to go on without it")


def test_a_file_without_a_member_is_refused(stored: SnapshotStore) -> None:
    stored.save(101, replace(stored.load(101), documents={}))
    assert "its file does not say which member it is" in refusal(stored)


def test_damage_of_a_member_is_told_with_one_way_out(stored: SnapshotStore) -> None:
    damage(stored.path_of(101))
    told = refusal(stored)
    assert "model.safetensors is damaged: its SHA-256 is not the manifest's. Restore " in told
    assert "earlier checkpoint" not in told


def test_a_member_whose_run_is_damaged_is_not_told_to_start_over(tmp_path: Path) -> None:
    run = make_run(tmp_path, "other", (1, 2))
    for path in run.checkpoints.glob("update-*"):
        damage(path)
    with pytest.raises(ConfigError, match=r"^league\.members: other: none of the 2 checkpoints") as caught:
        only_member(tmp_path, "other")
    assert str(caught.value).endswith("\nRestore one from a copy, or name another run")
    with pytest.raises(ConfigError, match="Restore it from a copy, or name another checkpoint: RUN@latest"):
        only_member(tmp_path, "other@1")
