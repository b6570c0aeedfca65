"""Settings that are chosen for a game, by what its spec says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import keisei
from keisei.config import parse_settings
from keisei.games.registry import make_game, registered_games
from keisei.runs.database import RunDatabase
from keisei.training.chosen_settings import chosen_in_words, chosen_settings, game_length
from keisei.training.settings import TrainConfig

HEX = f"{Path(__file__).parents[2] / 'examples' / 'hex.py'}:Hex"


@pytest.mark.parametrize("regime", [None, "ppo", "dqn"])
@pytest.mark.parametrize(
    "game", [*registered_games(), HEX, "openspiel:kuhn_poker", "pettingzoo:tictactoe_v3"]
)
def test_any_game_has_settings_that_fit_it(game: str, regime: Any) -> None:
    settings = chosen_settings(game, regime=regime)
    config = parse_settings(TrainConfig, settings).resolved()
    assert regime in (None, config.learner.regime)
    assert settings == chosen_settings(game, regime=regime), "the same game, the same settings"
    words = chosen_in_words(settings, make_game(game).spec)
    assert f"network {config.model.network};" in words
    assert words.endswith(f"evaluated against {', '.join(config.evaluation.opponents)}")


@pytest.mark.parametrize(
    ("game", "network", "regime", "opening", "opponents"),
    [
        ("tictactoe", "slim", "ppo", 6, ["random", "search:2"]),
        ("shogi", "slim", "ppo", 20, ["random", "search:2"]),
        ("ludo", "actions", "ppo", 20, ["random", "heuristic"]),
        (HEX, "slim", "ppo", 17, ["random", "greedy"]),
        ("openspiel:kuhn_poker", "mlp", "ppo", 1, ["random", "search:2"]),
        ("treasurehunt", "mlp", "independent", None, ["random", "heuristic"]),
        ("prisoners-dilemma", "mlp", "independent", None, ["random"]),
        ("dummy", "slim", "ppo", None, ["random"]),
    ],
)
def test_the_rules(game: str, network: str, regime: str, opening: int | None, opponents: list[str]) -> None:
    settings = chosen_settings(game)
    assert settings["model"]["network"] == network
    assert settings["learner"]["regime"] == regime
    assert settings["parallel"].get("seating", {}).get("opening_plies") == opening
    assert settings["evaluation"]["opponents"] == opponents
    assert (settings["run"]["minutes"], settings["run"]["steps"]) == (5.0, None)


def test_a_run_of_minutes_has_a_curve(tmp_path: Path) -> None:
    small = ["parallel.backend=inline", "parallel.games=4", "parallel.horizon=8", "learner.minibatch_size=64"]
    result = keisei.train(
        chosen_settings("tictactoe"), steps=1280, root=tmp_path, overrides=[*small, "evaluation.games=2"]
    )
    with RunDatabase(result.run.database, read_only=True) as database:
        steps = {row.step for row in database.evaluations()}
    assert steps == {128, 384, 640, 1024, 1280}


def test_options_belong_to_the_game() -> None:
    small, large = chosen_settings(HEX, {"size": 3}), chosen_settings(HEX, {"size": 8})
    assert small["env"]["options"] == {"size": 3}
    assert small["parallel"]["seating"]["opening_plies"] < large["parallel"]["seating"]["opening_plies"]
    assert small["evaluation"]["opponents"] == ["random", "search:2"], "9 actions are soon searched"


def test_the_length_of_a_game_is_that_of_random_play() -> None:
    assert 7 < game_length(keisei.make_game("tictactoe", batch=32)) < 9
    assert game_length(keisei.make_game("shogi", batch=2)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("game", ["tictactoe", "connect-four", HEX, "pettingzoo:tictactoe_v3"])
def test_what_was_chosen_soon_beats_a_random_player(game: str, tmp_path: Path) -> None:
    result = keisei.train(
        chosen_settings(game), steps=100_000, root=tmp_path, overrides=["evaluation.opponents=[random]"]
    )
    assert result.evaluation is not None
    assert result.evaluation.rows[0].score > 0.75
