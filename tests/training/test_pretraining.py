"""Imitation of recorded games: what is learned, what is held out, and that training goes on from there."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import keisei
from keisei import make_game
from keisei.cli.main import app
from keisei.errors import ConfigError
from keisei.evaluation import play_match, recorded_game, write_record
from keisei.experience.demonstrations import demonstrate
from keisei.games.offers import RecordedGame
from keisei.learners import imitation
from keisei.learners.imitation import Imitation, ImitationConfig
from keisei.machine.torch_threads import single_threaded
from keisei.policies import build_network
from keisei.policies.neural import NeuralPolicy
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory
from keisei.training.presets import load_preset
from keisei.training.pretraining import pretrain, read_library, split

TINY = (
    "model.network=mlp",
    "model.hidden_dim=16",
    "model.num_layers=1",
    "parallel.tables=1",
    "parallel.games=4",
    "parallel.horizon=16",
    "parallel.num_workers=1",
    "parallel.backend=inline",
    "learner.minibatch_size=32",
    "learner.epochs=1",
    "evaluation.opponents=[]",
    "league=null",
    "run.steps=128",
    "run.minutes=null",
    "run.stop_at={}",
)
SPEC = make_game("shogi").spec


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve games in all notations."""
    folder = tmp_path_factory.mktemp("records")
    match = play_match("shogi", {"max_plies": 60}, "search:1", "greedy", 12, 1, record=True)
    for number in range(12):
        write_record(match, number, folder / f"game-{number}", (".kif", ".csa", ".sfen")[number % 3])
    return folder


def run_pretrain(root: Path, *arguments: str) -> Result:
    changes = [word for setting in TINY for word in ("--set", setting)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(
        app, ["pretrain", *arguments, "--root", str(root), *changes]
    )


def test_decisions_are_those_of_the_games() -> None:
    match = play_match("shogi", {"max_plies": 40}, "search:1", "random", 2, 3, record=True)
    games = [recorded_game(match, number) for number in range(2)]
    found = demonstrate("shogi", {}, games, discount=0.5)
    assert len(found) == sum(len(game.actions) for game in games)
    assert found.actions.tolist() == [action for game in games for action in game.actions]
    replay = make_game("shogi", batch=1)
    for row, action in enumerate(games[0].actions):
        assert (found.packed[row] == replay.pack()[0]).all()
        seat = int(replay.rows().seat[0])
        left = len(games[0].actions) - 1 - row
        assert found.returns[row] == pytest.approx(games[0].scores[seat] * 0.5**left)
        replay.step(np.array([action], np.int32))


REWARDS: dict[str, Any] = {
    "win": 0.7,
    "loss": -0.8,
    "draw": -0.5,
    "ply_cost": 0.01,
    "material": 1.0,
    "keep_material": True,
    "discount": 0.9,
}


def own_returns(
    options: dict[str, Any], actions: tuple[int, ...], resigned: tuple[float, ...] = ()
) -> list[float]:
    """The returns of a run with these options: by its definition, one sum for each decision."""
    game = make_game("shogi", batch=1, **options)
    seats, rewards = [], []
    for action in actions:
        seats.append(int(game.rows().seat[0]))
        rewards.append(game.step(np.array([action], np.int32)).rewards[0].tolist())
    if resigned:
        rewards[-1] = [reward + score for reward, score in zip(rewards[-1], resigned, strict=True)]
    return [
        sum(0.9 ** (later - now) * rewards[later][seat] for later in range(now, len(actions)))
        for now, seat in enumerate(seats)
    ]


def test_values_are_the_discounted_rewards_of_the_run() -> None:
    """Also for a draw, which the record counts as 0 and the run does not."""
    options = {**REWARDS, "max_plies": 40, "limit": "draw"}
    match = play_match("shogi", {"max_plies": 40, "limit": "draw"}, "search:1", "random", 2, 3, record=True)
    game = replace(recorded_game(match, 0), options={})
    assert game.scores == (0.0, 0.0)
    found = demonstrate("shogi", options, [game], discount=0.9)
    assert found.returns.tolist() == pytest.approx(own_returns(options, game.actions), abs=1e-5)
    assert found.returns[-1] < -0.3
    assert len(set(found.returns.tolist())) > 30


@pytest.mark.parametrize("max_plies", [40, 20])
def test_a_result_of_the_record_counts_where_the_rules_have_not_ended_the_game(max_plies: int) -> None:
    """After a resignation, and where the run cuts games off before that."""
    match = play_match("shogi", {"max_plies": 40}, "search:1", "random", 2, 3, record=True)
    played = recorded_game(match, 0)
    game = RecordedGame({}, played.actions[:30], played.names, (1.0, -1.0), "resignation")
    options = {**REWARDS, "max_plies": max_plies}
    found = demonstrate("shogi", options, [game], discount=0.9)
    actions = game.actions[:max_plies]
    assert found.returns.tolist() == pytest.approx(own_returns(options, actions, (1.0, -1.0)), abs=1e-5)


@pytest.mark.parametrize("recorded", [(1.0, -1.0), (0.0, 0.0), ()])
def test_where_the_rules_have_ended_the_game_their_rewards_are_all(recorded: tuple[float, ...]) -> None:
    """Whatever the record says: its result is not paid on top of them."""
    game = RecordedGame({}, (0, 3, 1, 4, 2), ("", ""), recorded, "three in a row")
    returns = demonstrate("tictactoe", {}, [game], discount=0.5).returns
    assert returns.tolist() == [0.0625, -0.125, 0.25, -0.5, 1.0]


def test_a_game_without_a_result_teaches_only_moves() -> None:
    game = RecordedGame({}, (4, 0), ("", ""), (), "interrupted")
    assert np.isnan(demonstrate("tictactoe", {}, [game]).returns).all()


def test_what_follows_the_end_of_a_game_is_ignored() -> None:
    game = RecordedGame({}, (0, 3, 1, 4, 2, 5, 8), ("", ""), (1.0, -1.0), "three in a row")
    assert demonstrate("tictactoe", {}, [game]).actions.tolist() == [0, 3, 1, 4, 2]


def test_a_network_learns_what_was_played() -> None:
    game = make_game("tictactoe")
    games = [
        RecordedGame({}, (4, 0, 8, 1, 2, 5, 6), ("", ""), (1.0, -1.0), "three in a row"),
        RecordedGame({}, (4, 1, 0, 8, 3, 5, 6), ("", ""), (1.0, -1.0), "three in a row"),
    ]
    decisions = demonstrate("tictactoe", {}, games)
    network = build_network({"network": "mlp", "hidden_dim": 32, "num_layers": 1}, game.spec, seed=1)
    teacher = Imitation(network, game, ImitationConfig(learning_rate=0.01, minibatch_size=4))
    with single_threaded():
        before = teacher.skill(decisions)
        for number in range(60):
            losses = list(teacher.epoch(decisions, number))
            assert len(losses) == math.ceil(len(decisions) / 4)
        after = teacher.skill(decisions)
    assert after.accuracy >= (len(decisions) - 1) / len(decisions)  # one position has two answers
    assert after.log_loss < before.log_loss / 2
    assert after.value_error < before.value_error / 2


def test_the_same_seed_learns_the_same(library: Path, tmp_path: Path) -> None:
    first, second = (run_pretrain(tmp_path, str(library), "--run", name, "--epochs=1") for name in "ab")
    assert first.exit_code == second.exit_code == 0, first.output
    assert first.stdout.replace("/a", "/b") == second.stdout


def test_a_run_is_made_and_trained_on(library: Path, tmp_path: Path) -> None:
    result = run_pretrain(tmp_path, str(library), "--run", "mine", "--epochs=2", "--held-out=0.25")
    assert result.exit_code == 0, result.output
    assert "12 games" in result.stdout
    assert result.stdout.count("held out: accuracy") == 2
    assert f"Train it on: keisei train {tmp_path / 'mine'}" in result.stdout
    found = CheckpointArchive(RunDirectory(tmp_path / "mine").checkpoints, read_only=True).latest()
    assert found is not None
    assert found.checkpoint.update == 0
    trained = CliRunner().invoke(app, ["train", "mine", "--root", str(tmp_path), "--plain"])
    assert trained.exit_code == 0, trained.output
    assert "start over" not in (tmp_path / "mine" / "log.jsonl").read_text()
    later = CheckpointArchive(RunDirectory(tmp_path / "mine").checkpoints, read_only=True).latest()
    assert later is not None
    assert later.checkpoint.update == 2


def test_the_epoch_with_the_lowest_log_loss_is_kept(library: Path, tmp_path: Path) -> None:
    """Few games teach the likeliest moves better and better, and make all others too unlikely."""
    games = read_library([library], SPEC)
    config = load_preset("shogi-ppo").config(TINY).resolved()
    settings = ImitationConfig(learning_rate=0.003, minibatch_size=32)
    with single_threaded():
        found = pretrain(games, config, "taught", tmp_path, epochs=3, held_out=0.25, settings=settings)
        skills = [epoch.skill for epoch in found.epochs]
        assert found.best.skill.log_loss == min(skill.log_loss for skill in skills)
        assert found.best.skill.accuracy < max(skill.accuracy for skill in skills)
        _, measured = split(games, config, 0.25)
        policy = keisei.load(found.run.path).policy
        assert isinstance(policy, NeuralPolicy)
        kept = Imitation(policy.network, config.env.make(batch=1, seed=0)).skill(measured)
    assert kept.log_loss == pytest.approx(found.best.skill.log_loss, rel=1e-5)


def test_whole_games_are_held_out(library: Path) -> None:
    config = load_preset("shogi-ppo").config(TINY).resolved()
    games = read_library([library], SPEC)
    learned, measured = split(games, config, 0.25)
    lengths = {len(game.actions) for game in games.games}
    assert len(learned) + len(measured) == sum(len(game.actions) for game in games.games)
    assert len(measured) <= 3 * max(lengths)
    with pytest.raises(ConfigError, match="cannot be held out"):
        split(games, config, 0.99)


def test_damaged_files_are_left_out_and_named(library: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.kif").write_text("1 ９九玉(11)\n")
    found = read_library([library, tmp_path / "bad.kif"], SPEC)
    assert len(found.games) == 12
    (reason,) = found.skipped
    assert reason.startswith(f"{tmp_path / 'bad.kif'}: line 1")


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        (["missing.kif"], [], "there is no file or folder missing.kif"),
        (["empty"], [], "no game was found in empty; files end in .kif"),
        (["notes.txt"], [], "its name ends in none of"),
        (["games"], ["--preset=connect-four-ppo"], "connect-four has no records that can be read"),
    ],
)
def test_what_cannot_be_learned_from(
    files: list[str], arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "games").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    result = CliRunner().invoke(app, ["pretrain", *files, "--run=mine", "--root=runs", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_that_fails_leaves_nothing(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_too_fast = ImitationConfig(learning_rate=1e30)  # more than the command allows
    with monkeypatch.context() as patched:
        patched.setattr(imitation, "ImitationConfig", lambda **_: far_too_fast)
        result = run_pretrain(tmp_path, str(library), "--run=mine")
    assert result.exit_code == 2
    assert "imitation has diverged" in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert run_pretrain(tmp_path, str(library), "--run=mine", "--epochs=1").exit_code == 0
    again = run_pretrain(tmp_path, str(library), "--run=mine", "--epochs=1")
    assert again.exit_code == 2
    assert "exists" in again.stderr
