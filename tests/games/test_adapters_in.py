"""Games of PettingZoo and OpenSpiel as Keisei games."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.classic.tictactoe.tictactoe import raw_env as tictactoe_env
from pettingzoo.env_registry.spec import _load_env_creator

from keisei.errors import ConfigError, GameError
from keisei.games import check_game, make_game
from keisei.games.adapters import from_openspiel, from_pettingzoo, spaces
from keisei.games.contract import Game
from keisei.games.naming import move_names, read_move
from keisei.games.pictures import last_picture, picture

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


@pytest.mark.parametrize(
    ("game", "module", "folder", "line"),
    [
        ("chess_v6", "chess", "chess", "classic/chess-v6 needs the package 'chess'"),
        ("hanabi_v5", "shimmy", "hanabi", "classic/hanabi-v5 needs the package 'shimmy'"),
    ],
)
def test_an_environment_names_the_package_that_it_misses(
    game: str, module: str, folder: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _load_env_creator.cache_clear()
    for known in [*sys.modules]:
        if known.partition(".")[0] == module or f"pettingzoo.classic.{folder}" in known:
            monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(GameError) as caught:
        make_game(f"pettingzoo:{game}")
    assert str(caught.value) == (
        f"{line}, which is not installed; pip install {module}, or all that such games need: "
        f"pip install 'pettingzoo[classic]'"
    )


def test_an_import_that_fails_otherwise_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(kind: str, identity: str, **options: Any) -> None:
        raise ImportError("libSDL.so: cannot open shared object file")

    monkeypatch.setattr("pettingzoo.make", fails)
    with pytest.raises(GameError, match=r"tictactoe-v3 cannot be imported: ImportError: libSDL.*pip install"):
        make_game("pettingzoo:tictactoe_v3")


# In the terminal


class DrawnTicTacToe(tictactoe_env):
    """An environment that draws text, as the library's chess does."""

    metadata = {**tictactoe_env.metadata, "render_modes": ["human", "ansi"], "name": "drawn_v1"}  # noqa: RUF012

    def render(self) -> Any:
        assert self.render_mode == "ansi"
        return f"squares {self.board.squares}"


def test_an_environment_that_draws_text_is_asked_for_it() -> None:
    pettingzoo.register("aec", id="test/drawn-v1", entry_point=DrawnTicTacToe)
    game = make_game("pettingzoo:test/drawn-v1")
    assert picture(game) == "squares [0, 0, 0, 0, 0, 0, 0, 0, 0]"
    game.keep_last_positions()
    for action in (0, 3, 1, 4, 2):
        game.step(np.array([action]))
    assert last_picture(game) == "squares [1, 1, 1, 2, 2, 0, 0, 0, 0]"


def test_a_way_to_draw_that_the_user_chose_stays() -> None:
    pettingzoo.register("aec", id="test/drawn-v2", entry_point=DrawnTicTacToe)
    shown = picture(make_game("pettingzoo:test/drawn-v2", render_mode=None))
    assert shown.endswith("what seat 1 sees")


def play_on(game: Game, *actions: int) -> Game:
    for action in actions:
        game.step(np.array([action]))
    return game


def test_other_boards_are_drawn_from_what_a_seat_sees() -> None:
    game = play_on(make_game("pettingzoo:connect_four_v3"), 3, 3, 0)
    assert picture(game).splitlines() == [
        *[". . . . . . ."] * 4,
        ". . . X . . .",
        "O . . O . . .",
        "what seat 2 sees: X plane 0, O plane 1",
    ]


def test_other_positions_are_lists_of_numbers() -> None:
    assert picture(make_game("pettingzoo:rps_v2")) == "what seat 1 sees: 3"
    shown = picture(make_game("pettingzoo:leduc_holdem_v4"))
    assert shown.startswith("what seat 1 sees: ")
    assert "=1" in shown
    assert shown.endswith("all other of its 36 entries are 0")


def test_go_shows_its_own_board_and_names_its_points() -> None:
    game = make_game("pettingzoo:go_v5", board_size=9)
    names = move_names(game, np.flatnonzero(game.legal()[0]).tolist())
    assert [*names][:3] == ["A9", "B9", "C9"]
    assert [*names][-1] == "pass"
    play_on(game, *read_move(game, "c3", names))
    assert " 3 . . X<. . . . . .  3" in picture(game)


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting")
@pytest.mark.parametrize(
    ("game", "names"),
    [
        ("pettingzoo:rps_v2", ["rock", "paper", "scissors"]),
        ("pettingzoo:leduc_holdem_v4", ["call", "raise", "fold"]),
        ("pettingzoo:texas_holdem_no_limit_v6", ["fold", "call", "raise-pot", "all-in"]),
        ("pettingzoo:connect_four_v3", ["0", "1", "2", "3", "4", "5", "6"]),
        ("openspiel:kuhn_poker", ["Pass", "Bet"]),
        ("openspiel:tic_tac_toe", [f"x({row},{column})" for row in range(3) for column in range(3)]),
    ],
)
def test_actions_have_names_where_they_are_known(game: str, names: list[str]) -> None:
    batch = make_game(game)
    assert [*move_names(batch, np.flatnonzero(batch.legal()[0]).tolist())] == names


def test_chess_writes_its_moves_and_its_board() -> None:
    pytest.importorskip("chess")
    game = make_game("pettingzoo:chess_v6")
    names = move_names(game, np.flatnonzero(game.legal()[0]).tolist())
    assert {"e2e4", "g1f3"} <= {*names}
    play_on(game, names["e2e4"])
    assert "P P P P . P P P" in picture(game)
    assert "e7e5" in move_names(game, np.flatnonzero(game.legal()[0]).tolist())


def test_a_person_sees_only_what_their_seat_knows() -> None:
    """The state of poker as text has all cards."""
    for seed in range(8):
        game = make_game("openspiel:leduc_poker", seed=seed)
        assert "Cards" not in picture(game)
        assert "[Private: " in picture(game)
    game.keep_last_positions()
    play_on(game, 1, 2)  # call, raise … until one folds
    assert "[Observer: 0]" in picture(game)
    play_on(game, 0)
    assert "Cards" in last_picture(game)
