"""Games of PettingZoo and OpenSpiel as Keisei games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from keisei.errors import ConfigError, GameError
from keisei.games import check_game, make_game
from keisei.games.adapters import from_openspiel, from_pettingzoo, spaces
from keisei.games.contract import Game

PETTINGZOO = ["connect_four_v3", "tictactoe_v3", "leduc_holdem_v4", "rps_v2"]
OPENSPIEL = ["tic_tac_toe", "connect_four", "breakthrough", "leduc_poker", "goofspiel", "matrix_rps"]


@pytest.mark.parametrize("name", PETTINGZOO)
def test_pettingzoo_games_keep_the_contract(name: str) -> None:
    check_game(f"pettingzoo:{name}", steps=30)


@pytest.mark.parametrize("name", OPENSPIEL)
def test_openspiel_games_keep_the_contract(name: str) -> None:
    check_game(f"openspiel:{name}", steps=30)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("tictactoe", "openspiel:tic_tac_toe"),
        ("connect-four", "openspiel:connect_four"),
        ("connect-four", "pettingzoo:classic/connect_four-v3"),
    ],
)
def test_our_rules_equal_theirs(ours: str, theirs: str) -> None:
    """Three programs by different people: the same moves are legal, and the same games are won."""
    mine, yours = make_game(ours, batch=8, seed=1), make_game(theirs, batch=8, seed=2)
    finished = 0
    for _ in range(60):
        assert np.array_equal(mine.legal(), yours.legal())
        actions = mine.random_actions()
        one, other = mine.step(actions), yours.step(actions)
        assert np.array_equal(one.rewards, other.rewards)
        assert np.array_equal(one.terminated, other.terminated)
        finished += int(one.done.sum())
    assert finished > 8


def test_pettingzoos_tictactoe_numbers_its_squares_by_columns_and_ends_as_ours() -> None:
    mine, yours = make_game("tictactoe", batch=8, seed=1), make_game("pettingzoo:tictactoe_v3", batch=8)
    for _ in range(30):
        actions = mine.random_actions()
        one, other = mine.step(actions), yours.step(actions)
        assert np.array_equal(one.scores, other.scores)
        assert np.array_equal(one.terminated, other.terminated)


def deals(game: Game) -> list[bytes]:
    return [view.tobytes() for view in game.observe()]


@pytest.mark.parametrize(("name", "cards"), [("pettingzoo:leduc_holdem_v4", 3), ("openspiel:leduc_poker", 6)])
def test_cards_are_dealt_by_keyed_randomness(name: str, cards: int) -> None:
    one = make_game(name, batch=24, seed=4)
    assert deals(one) == deals(make_game(name, batch=24, seed=4))
    assert deals(one) != deals(make_game(name, batch=24, seed=5))
    assert len(set(deals(one))) == cards  # every first card is dealt; PettingZoo does not show its suit


def test_openspiels_chance_is_even() -> None:
    game = make_game("openspiel:kuhn_poker", batch=3000, seed=2)
    cards = game.observe()[:, 2:5].sum(axis=0)  # one of three cards, marked in entries 2 to 4
    assert cards.sum() == 3000
    assert np.abs(cards - 1000).max() < 150  # more than five standard deviations


def test_options_reach_the_adapted_games() -> None:
    assert make_game("openspiel:breakthrough", rows=6, columns=5).spec.observation.shape == (3, 6, 5)
    assert make_game("openspiel:connect_four", max_plies=4).spec.max_plies == 4
    assert make_game("pettingzoo:connect_four_v3", screen_scaling=3).spec.num_actions == 7
    with pytest.raises(ConfigError, match=r"no option 'row' \(did you mean 'rows'\?\)"):
        make_game("openspiel:breakthrough", row=6)
    with pytest.raises(ConfigError, match="OpenSpiel refuses breakthrough"):
        make_game("openspiel:breakthrough", rows="six")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mfg_garnet", "mean-field"),
        ("negotiation", "cannot be repeated"),
        ("phantom_ttt_ir", "no tensor"),
        ("misere", "OpenSpiel refuses misere"),
    ],
)
def test_games_that_cannot_be_used_say_why(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        make_game(f"openspiel:{name}")


def test_a_function_that_makes_an_environment_will_do() -> None:
    def env(**options: Any) -> Any:
        import pettingzoo

        return pettingzoo.make("aec", "classic/tictactoe-v3", **options)

    game = from_pettingzoo.pettingzoo_game(env, batch=2, zero_sum=True)
    assert (game.spec.name, game.spec.zero_sum, game.batch) == ("pettingzoo:tictactoe_v3", True, 2)


def test_games_without_discrete_actions_are_refused() -> None:
    class Space:
        shape, dtype = (2,), np.dtype(np.float32)

    class Continuous:
        possible_agents, metadata = ("a",), {}

        def action_space(self, agent: str) -> Space:
            return Space()

    with pytest.raises(ConfigError, match="needs Discrete"):
        from_pettingzoo.pettingzoo_game(Continuous)


def test_missing_packages_bring_the_line_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspiel", None)
    with pytest.raises(GameError, match=r"pip install 'keisei\[openspiel\]'"):
        make_game("openspiel:tic_tac_toe")
    with pytest.raises(GameError, match="pip install something"):
        spaces.need("a_package_that_is_not_there", "pip install something")
    assert "rlcard" in from_pettingzoo.INSTALL
    assert "openspiel" in from_openspiel.INSTALL
