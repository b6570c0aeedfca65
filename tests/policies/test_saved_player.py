"""Texts name checkpoints, and checkpoints play with their own weights."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from runs_for_tests import checkpoint_of, damage, make_run, network_of

from keisei import make_game
from keisei.errors import CheckpointError, ConfigError, RunError
from keisei.evaluation import Player, play_match
from keisei.policies import NeuralPolicy, RandomPolicy
from keisei.policies.players.finding import find_run, game_of
from keisei.policies.players.saved_player import find_player, load_player, load_players
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import CONFIG, RunDirectory

SPEC = make_game("tictactoe").spec


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of runs, below the current directory, as for a person at the command line."""
    monkeypatch.chdir(tmp_path)
    return Path("runs")


@pytest.fixture
def run(root: Path) -> RunDirectory:
    return make_run(root, "a", (5, 10, 20), best=10)


def weights(player: Player) -> dict[str, torch.Tensor]:
    assert isinstance(player.policy, NeuralPolicy)
    return player.policy.network.state_dict()


def is_update(player: Player, run: RunDirectory, update: int) -> bool:
    expected = network_of(run, update).state_dict()
    return all(torch.equal(tensor, expected[name]) for name, tensor in weights(player).items())


@pytest.mark.parametrize(
    ("text", "update"),
    [
        ("a", 10),
        ("a@best", 10),
        ("a@latest", 20),
        ("a@5", 5),
        ("a@update-000000020", 20),
        ("runs/a", 10),
        ("runs/a@latest", 20),
        ("runs/a/checkpoints/update-000000005", 5),
        ("runs/a/checkpoints/update-000000005/", 5),
        ("runs/a/checkpoints/best", 10),
        ("runs/a/checkpoints/latest", 20),
    ],
)
def test_a_text_names_a_checkpoint_and_its_weights(
    run: RunDirectory, root: Path, text: str, update: int
) -> None:
    assert find_player(text, root).path.samefile(run.checkpoints / f"update-{update:09d}")
    player = load_player(text, SPEC, root)
    assert is_update(player, run, update)
    assert not is_update(player, run, update + 1)
    assert player.name == f"a@{update}"
    assert is_update(load_player(player.name, SPEC, root), run, update)


def test_a_run_may_lie_anywhere_and_a_path_may_have_the_sign(tmp_path: Path, root: Path) -> None:
    run = make_run(tmp_path / "me@home", "b", (1, 2))
    player = load_player(f"{run.path}@1", SPEC, root)
    assert is_update(player, run, 1)
    assert player.name == f"{run.path}@1"
    assert is_update(load_player(str(run.path), SPEC, root), run, 2)


def test_within_the_checkpoints_a_name_is_enough(
    run: RunDirectory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = root.absolute()
    monkeypatch.chdir(run.checkpoints)
    player = load_player("update-000000005", SPEC, root)
    assert player.name == "a@5"


def test_without_a_best_one_a_run_is_its_latest(root: Path) -> None:
    make_run(root, "a", (3, 4))
    assert find_player("a", root).path.name == "update-000000004"
    with pytest.raises(CheckpointError, match=r"no checkpoint best: it has 3, 4, and none is marked best"):
        find_player("a@best", root)


def test_a_second_attempt_at_an_update_is_the_one_that_counts(run: RunDirectory, root: Path) -> None:
    CheckpointArchive(run.checkpoints, keep=100).save(checkpoint_of(run, 10))
    assert find_player("a@10", root).path.name == "update-000000010-1"
    assert load_player("a@10", SPEC, root).name == "a@10-1"
    assert find_player("a@10-1", root).path.name == "update-000000010-1"
    assert find_player("a@update-000000010", root).path.name == "update-000000010"


def test_the_network_plays_as_it_was_saved(run: RunDirectory, root: Path) -> None:
    player = load_player("a@20", SPEC, root, temperature=0.5)
    assert isinstance(player.policy, NeuralPolicy)
    assert player.policy.temperature == 0.5
    assert not player.policy.network.training
    by_text = play_match("tictactoe", None, "a@20", "random", 20, seed=3, root=root, record=True)
    saved = Player("a@20", NeuralPolicy(network_of(run, 20), SPEC, 0.0))
    assert by_text.games == play_match("tictactoe", None, saved, "random", 20, seed=3, record=True).games
    other = Player("a@20", NeuralPolicy(network_of(run, 5), SPEC, 0.0))
    assert by_text.games != play_match("tictactoe", None, other, "random", 20, seed=3, record=True).games


def test_by_default_a_run_plays_as_in_its_own_evaluations(run: RunDirectory, root: Path) -> None:
    for temperature in (0.0, 0.2):
        settings = run.config() | {"evaluation": {"temperature": temperature}}
        (run.path / CONFIG).write_text(yaml.safe_dump(settings))
        player = load_player("a", SPEC, root)
        assert isinstance(player.policy, NeuralPolicy)
        assert player.policy.temperature == temperature


def test_players_without_a_run_keep_their_names(run: RunDirectory, root: Path) -> None:
    assert isinstance(load_player("random", SPEC, root).policy, RandomPolicy)
    assert load_player("search:2", SPEC, root).name == "search:2"


def test_a_damaged_latest_one_is_passed_over_and_told(
    run: RunDirectory, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(run.checkpoints / "update-000000020")
    with caplog.at_level(logging.WARNING):
        player = load_player("a@latest", SPEC, root)
    assert player.name == "a@10"
    assert is_update(player, run, 10)
    assert "update-000000020 is skipped" in caplog.text


@pytest.mark.parametrize("text", ["a", "a@best", "a@10", "runs/a/checkpoints/update-000000010"])
def test_a_damaged_checkpoint_that_was_asked_for_is_an_error(
    run: RunDirectory, root: Path, text: str
) -> None:
    damage(run.checkpoints / "update-000000010")
    with pytest.raises(CheckpointError, match=r"update-000000010/model\.safetensors is damaged"):
        load_player(text, SPEC, root)


def test_all_checkpoints_of_a_run_without_the_damaged_ones(
    run: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    players = load_players(run, SPEC)
    assert [player.name for player in players] == ["update-000000005", "update-000000010", "update-000000020"]
    assert [is_update(player, run, update) for player, update in zip(players, (5, 10, 20), strict=True)] == [
        True
    ] * 3
    damage(run.checkpoints / "update-000000010")
    assert [player.name for player in load_players(run, SPEC)] == ["update-000000005", "update-000000020"]
    assert "update-000000010 is left out" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a@7", r"runs/a has no checkpoint 7: it has 5, 10, 20"),
        ("a@newest", r"no checkpoint newest: it has 5, 10, 20"),
        ("runs/a/checkpoints/update-000000099", r"no checkpoint update-000000099"),
        ("empty", r"runs/empty has no checkpoint to play with: it has none yet"),
        ("empty@latest", r"runs/empty has no checkpoint latest: it has none yet"),
    ],
)
def test_a_checkpoint_that_is_not_there(run: RunDirectory, root: Path, text: str, message: str) -> None:
    make_run(root, "empty", ())
    with pytest.raises(CheckpointError, match=message):
        find_player(text, root)


@pytest.mark.parametrize("text", ["alpa", "alpa@best", "", "@best", "runs", "somewhere/else"])
def test_a_run_that_is_not_there(root: Path, text: str) -> None:
    make_run(root, "alpha", (1,))
    with pytest.raises(RunError, match=r"no run is named .*Runs in runs: alpha\..*random, greedy") as caught:
        load_player(text, SPEC, root)
    assert ("did you mean 'alpha'" in str(caught.value)) == text.startswith("alpa")


def test_where_a_whole_run_is_meant(run: RunDirectory, root: Path) -> None:
    assert find_run("a", root).path == run.path
    with pytest.raises(RunError, match=r"'a@10' names one checkpoint.*write a$"):
        find_run("a@10", root)


def test_a_network_plays_no_other_game(run: RunDirectory, root: Path) -> None:
    other = make_game("connect-four").spec
    with pytest.raises(ConfigError, match=r"trained on tictactoe .* cannot play connect.four"):
        load_player("a", other, root)
    wider = replace(SPEC, observation=replace(SPEC.observation, shape=(3, 3, 3)))
    with pytest.raises(
        ConfigError, match=r"2 x 3 x 3 uint8.* cannot play tictactoe \(observations of 3 x 3 x 3"
    ):
        load_player("a", wider, root)


def test_weights_that_are_not_of_the_runs_network(run: RunDirectory, root: Path) -> None:
    config = run.config()
    config["model"]["hidden_dim"] = 9
    run.change_config(config)
    with pytest.raises(
        CheckpointError,
        match=r"update-000000010: .*another network",
    ):
        load_player("a", SPEC, root)


def test_a_configuration_that_cannot_be_read_is_named(run: RunDirectory, root: Path) -> None:
    (run.path / "config.yaml").write_text("env: {gaem: tictactoe}")
    with pytest.raises(ConfigError, match=r"runs/a/config\.yaml:\n.*gaem.*did you mean game"):
        load_player("a", SPEC, root)


def test_the_game_of_a_run_has_its_options(root: Path) -> None:
    make_run(root, "s", (), game="shogi", options={"max_plies": 50}, reward_structure={"draw": -0.5})
    game = game_of("s", root)
    assert game.name == game.spec.name == "shogi"
    assert game.options == {"max_plies": 50, "draw": -0.5, "discount": 0.99}
    assert game.spec.max_plies == 50


def test_nothing_is_written(run: RunDirectory, root: Path) -> None:
    before = sorted(os.walk(run.path))
    load_player("a@latest", SPEC, root)
    load_players(run, SPEC)
    assert sorted(os.walk(run.path)) == before
