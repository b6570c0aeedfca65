"""``keisei.load`` gives a player of a run: one row or many, best actions or drawn ones, and moves on a board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runs_for_tests import make_run, network_of

import keisei
from keisei.errors import CheckpointError, ConfigError, PolicyError, RunError
from keisei.evaluation import Player, play_match
from keisei.games.contract import Game
from keisei.games.shogi import Board
from keisei.policies import NeuralPolicy, Situation
from keisei.policies.players.trained_player import TrainedPlayer
from keisei.runs.directory import RunDirectory


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("runs")


@pytest.fixture
def run(root: Path) -> RunDirectory:
    return make_run(root, "a", (5, 10), best=5)


@pytest.fixture
def player(run: RunDirectory) -> TrainedPlayer:
    return keisei.load("runs/a")


@pytest.fixture
def game(player: TrainedPlayer) -> Game:
    """Games in the middle."""
    game = player.game(batch=6, seed=3)
    for _ in range(2):
        game.step(game.random_actions())
    return game


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("a", "a@5"),
        ("runs/a", "a@5"),
        (Path("runs") / "a", "a@5"),
        ("a@latest", "a@10"),
        ("runs/a/checkpoints/update-000000010", "a@10"),
        ("runs/a/checkpoints/best/", "a@5"),
    ],
)
def test_a_run_or_a_checkpoint_is_named(run: RunDirectory, target: str | Path, name: str) -> None:
    assert keisei.load(target).name == name


def test_another_folder_of_runs(tmp_path: Path) -> None:
    make_run(tmp_path / "elsewhere", "b")
    assert keisei.load("b", root=tmp_path / "elsewhere").name == "b@20"


def test_what_is_not_there_is_told(root: Path, run: RunDirectory) -> None:
    with pytest.raises(RunError, match=r"no run is named 'aa'.*Runs in runs: a"):
        keisei.load("aa")
    with pytest.raises(CheckpointError, match="no checkpoint 7"):
        keisei.load("a@7")


def test_the_actions_are_those_of_the_policy(player: TrainedPlayer, game: Game) -> None:
    actions = player.predict(game.observe(), game.legal())
    assert isinstance(actions, np.ndarray)
    assert actions.dtype == np.int32
    best = NeuralPolicy(network_of(RunDirectory(Path("runs/a")), 5), game.spec, temperature=0.0)
    assert (actions == best.act(Situation(game, 0, 0)).actions).all()
    game.step(actions)  # all are legal


def test_one_row_gives_one_action_one_value_and_one_row_of_probabilities(
    player: TrainedPlayer, game: Game
) -> None:
    observations, legal = game.observe(), game.legal()
    for row in range(6):
        given = observations[row], legal[row]
        action, value = player.predict(*given), player.values(*given)
        assert (type(action), type(value)) == (int, float)
        assert action == player.predict(observations, legal)[row]  # type: ignore[index]
        assert value == pytest.approx(player.values(observations, legal)[row], abs=1e-6)  # type: ignore[index]
        np.testing.assert_allclose(
            player.probabilities(*given), player.probabilities(observations, legal)[row], atol=1e-6
        )


def test_probabilities_add_up_to_1_over_the_legal_actions(player: TrainedPlayer, game: Game) -> None:
    legal = game.legal()
    probabilities = player.probabilities(game.observe(), legal)
    assert probabilities.shape == legal.shape
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert (probabilities[~legal] == 0).all()
    assert (probabilities[legal] > 0).all()
    assert (probabilities.argmax(axis=1) == player.predict(game.observe(), legal)).all()


def test_draws_follow_the_probabilities(player: TrainedPlayer, game: Game) -> None:
    observations, legal = np.repeat(game.observe()[:1], 4000, 0), np.repeat(game.legal()[:1], 4000, 0)
    drawn = player.predict(observations, legal, temperature=1.0)
    shares = np.bincount(drawn, minlength=legal.shape[1]) / 4000
    np.testing.assert_allclose(shares, player.probabilities(observations[0], legal[0]), atol=0.03)
    again = keisei.load("a").predict(observations, legal, temperature=1.0)
    other = keisei.load("a", seed=1).predict(observations, legal, temperature=1.0)
    assert np.array_equal(drawn, again)
    assert not np.array_equal(drawn, other)
    assert not np.array_equal(drawn, player.predict(observations, legal, temperature=1.0))


def test_its_game_has_the_options_of_the_run(root: Path) -> None:
    make_run(root, "short", game="connect-four", options={"max_plies": 9})
    player = keisei.load("short")
    game = player.game(batch=3, seed=1)
    assert (game.spec.name, game.spec.max_plies, game.batch) == ("connect-four", 9, 3)
    assert game.spec == player.spec


def test_it_plays_matches(player: TrainedPlayer) -> None:
    match = play_match("tictactoe", {}, Player(player.name, player.policy), "random", 4, 0)
    assert match.players == ("a@5", "random")


# Boards


@pytest.fixture
def shogi(root: Path) -> TrainedPlayer:
    make_run(root, "shogi", (1,), game="shogi", options={"max_plies": 100})
    return keisei.load("shogi")


def test_a_board_gets_a_legal_move(shogi: TrainedPlayer) -> None:
    board = Board()
    game = shogi.game()
    for _ in range(10):
        move = shogi.play(board)
        assert move in board.legal_moves
        action = shogi.predict(game.observe()[0], game.legal()[0])
        assert board.action(move) == action
        game.step(np.array([action]))
        board.push(move)
    drawn = {shogi.play(board, temperature=1.0) for _ in range(20)}
    assert len(drawn) > 1


def test_a_board_of_a_finished_game_is_refused(shogi: TrainedPlayer) -> None:
    mated = Board("4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1")
    assert mated.is_checkmate()
    with pytest.raises(PolicyError, match="the game on this board is over"):
        shogi.play(mated)


def test_what_is_no_board_of_the_game_is_refused(shogi: TrainedPlayer, player: TrainedPlayer) -> None:
    with pytest.raises(PolicyError, match="a@5 plays tictactoe, and this is a board of another game"):
        player.play(Board())
    with pytest.raises(PolicyError, match=r"a board with pack\(\) and move_from_action\(\), got str"):
        shogi.play("startpos")  # type: ignore[arg-type]


# What is given


@pytest.mark.parametrize(
    ("observation", "legal", "message"),
    [
        ((3, 3), (9,), r"\(2, 3, 3\) for one row and \(rows, 2, 3, 3\) for a batch; got \(3, 3\)"),
        ((4, 2, 3, 4), (4, 9), r"for a batch; got \(4, 2, 3, 4\)"),
        ((2, 3, 3), (1, 9), r"the shape must be \(9,\) for these observations, got \(1, 9\)"),
        ((4, 2, 3, 3), (9,), r"the shape must be \(4, 9\) for these observations, got \(9,\)"),
        ((4, 2, 3, 3), (3, 9), r"the shape must be \(4, 9\) for these observations, got \(3, 9\)"),
        ((2, 3, 3), (7,), r"one entry for each action of tictactoe: the shape must be \(9,\)"),
    ],
)
def test_wrong_shapes_are_told_with_the_right_ones(
    player: TrainedPlayer, observation: tuple[int, ...], legal: tuple[int, ...], message: str
) -> None:
    given = np.zeros(observation, np.uint8), np.ones(legal, np.bool_)
    for method in (player.predict, player.values, player.probabilities):
        with pytest.raises(PolicyError, match=message):
            method(*given)


def test_other_types_are_taken_if_no_value_changes(player: TrainedPlayer, game: Game) -> None:
    observations, legal = game.observe(), game.legal()
    actions = player.predict(observations, legal)
    assert (player.predict(observations.astype(np.float64), legal.astype(np.int8)) == actions).all()
    assert (player.predict(observations.tolist(), legal.tolist()) == actions).all()


@pytest.mark.parametrize("wrong", [0.5, -1.0, 300.0, np.nan])
def test_values_that_would_change_are_refused(player: TrainedPlayer, game: Game, wrong: float) -> None:
    observations = game.observe().astype(np.float32)
    observations[2, 0, 1, 1] = wrong
    with pytest.raises(
        PolicyError, match="observations of tictactoe are uint8; these float32 values do not fit"
    ):
        player.predict(observations, game.legal())


def test_masks_of_other_numbers_and_empty_ones_are_refused(player: TrainedPlayer, game: Game) -> None:
    observations = game.observe()
    with pytest.raises(PolicyError, match="masks of legal actions are bool; these int64 values do not fit"):
        player.predict(observations, game.legal().astype(np.int64) * 2)
    with pytest.raises(PolicyError, match="are bool; these <U1 values do not fit"):
        player.predict(observations, np.full((6, 9), "x"))
    nothing = game.legal()
    nothing[3] = False
    with pytest.raises(PolicyError, match="legal marks no action in some row"):
        player.predict(observations, nothing)


def test_a_temperature_below_0_is_refused(player: TrainedPlayer, game: Game) -> None:
    with pytest.raises(ConfigError, match="temperature = -1: must be 0"):
        player.predict(game.observe(), game.legal(), temperature=-1)


def test_it_says_what_it_is(player: TrainedPlayer) -> None:
    assert repr(player) == "<TrainedPlayer a@5 of tictactoe>"
