"""Games by name, and what happens with names and options that do not exist."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

import keisei
from keisei.errors import ConfigError, GameError, UnknownGameError
from keisei.games import batched, registry
from keisei.games.batched import SingleGameBatch
from keisei.games.options import did_you_mean
from keisei.games.registry import DEFAULT_GAME
from keisei.games.saved import digest_of
from keisei.games.tictactoe import TicTacToe

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


@pytest.mark.parametrize(
    "name", ["connect-four", "connect_four", "Connect-Four", "connectfour", " connect-four "]
)
def test_spelling_variants_name_the_same_game(name: str) -> None:
    assert keisei.make_game(name).spec.name == "connect-four"


def test_built_in_games_are_described() -> None:
    games = keisei.registered_games()
    assert {"tictactoe", "connect-four", "ludo", "shogi"} <= set(games)
    assert all(games.values())


def test_a_name_that_only_shares_some_letters_is_not_suggested() -> None:
    assert did_you_mean("three", ["random", "greedy"]) == ""
    assert did_you_mean("gready", ["random", "greedy"]) == " (did you mean 'greedy'?)"


def test_unknown_names_bring_the_nearest() -> None:
    with pytest.raises(
        UnknownGameError, match=r"no game is named 'conect-for' \(did you mean 'connect-four'"
    ):
        keisei.make_game("conect-for")
    with pytest.raises(UnknownGameError, match="Known games: bach-stravinsky, cleanup, connect-four, dummy"):
        keisei.make_game("backgammon")


def test_unknown_options_bring_the_nearest_and_all_others() -> None:
    with pytest.raises(ConfigError, match=r"no option 'row' \(did you mean 'rows'\?\)") as caught:
        keisei.make_game("connect-four", row=5, depth=3)
    assert "no option 'depth'" in str(caught.value)
    assert "columns, connect, max_plies, rows" in str(caught.value)
    with pytest.raises(ConfigError, match=r"no option 'rows'\. Its options: max_plies"):
        keisei.make_game("tictactoe", rows=4)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("batch", 0, r"1 … 1048576; got 0"),
        ("batch", -1, r"1 … 1048576; got -1"),
        ("batch", 2.0, r"got 2.0 \(float\)"),
        ("batch", True, r"got True \(bool\)"),
        ("batch", "8", r"got '8' \(str\)"),
        ("seed", -1, r"0 … 9223372036854775807; got -1"),
        ("seed", 2**63, "got 9223372036854775808"),
        ("seed", None, r"got None \(NoneType\)"),
        ("first_game", -1, "first_game must be a whole number in 0"),
        ("max_plies", 0, "max_plies must be a whole number in 1"),
        ("rows", "six", "rows must be a whole number in 1 … 32"),
    ],
)
def test_settings_out_of_range_name_the_range(name: str, value: object, allowed: str) -> None:
    with pytest.raises(ConfigError, match=allowed):
        keisei.make_game("connect-four", **{name: value})  # type: ignore[arg-type]


def test_numpy_integers_are_whole_numbers() -> None:
    assert keisei.make_game("tictactoe", batch=np.int64(3), seed=np.uint8(4)).batch == 3


@pytest.mark.usefixtures("clean_registry")
def test_a_registered_class_is_batched() -> None:
    keisei.register_game("noughts", TicTacToe)
    assert keisei.make_game("noughts", batch=5).batch == 5
    assert keisei.registered_games()["noughts"].startswith("Seat 0 plays X")


@pytest.mark.usefixtures("clean_registry")
def test_a_registered_factory_is_used_as_it_is() -> None:
    def factory(*, batch: int, seed: int, first_game: int, wide: bool = False) -> SingleGameBatch:
        return batched(TicTacToe)(batch=batch * (2 if wide else 1), seed=seed, first_game=first_game)

    keisei.register_game("pairs", factory, "Two for one.")
    assert keisei.make_game("pairs", batch=4, wide=True).batch == 8
    with pytest.raises(ConfigError, match="no option 'wode'"):
        keisei.make_game("pairs", wode=True)


@pytest.mark.usefixtures("clean_registry")
def test_a_name_is_given_once() -> None:
    keisei.register_game("noughts", TicTacToe)
    keisei.register_game("noughts", TicTacToe)
    with pytest.raises(ConfigError, match="'noughts' is registered already"):
        keisei.register_game("Noughts", "somewhere:Else")
    with pytest.raises(ConfigError, match="without a colon"):
        keisei.register_game("a:b", TicTacToe)


def test_installed_packages_bring_games(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("noughts-and-crosses", "keisei.games.tictactoe:TicTacToe", "keisei.games")
    monkeypatch.setattr(metadata, "entry_points", lambda group: EntryPoints([point]).select(group=group))
    assert keisei.make_game("noughts_and_crosses", batch=2).spec.name == "tictactoe"
    assert keisei.registered_games()["noughts-and-crosses"] == "keisei.games.tictactoe:TicTacToe"


def test_what_an_installed_package_brings_must_make_games(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("shell", "os:system", "keisei.games")
    monkeypatch.setattr(metadata, "entry_points", lambda group: EntryPoints([point]).select(group=group))
    with pytest.raises(ConfigError, match=r"'os:system' is .*, which makes no games"):
        keisei.make_game("shell")


def test_the_current_directory_is_no_place_of_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is named like the folder of a package brings no game, wherever Python looks for modules."""
    about = tmp_path / "lure-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lure\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[keisei.games]\nlure = lure_game:Game\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "lure" in keisei.registered_games()
    monkeypatch.chdir(tmp_path)
    assert "lure" not in keisei.registered_games()
    with pytest.raises(UnknownGameError, match="no game is named 'lure'"):
        keisei.make_game("lure")


def test_a_class_is_named_by_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    game = keisei.make_game("own_game:PrizeDuel", batch=2, rounds=3)
    assert len(game.rows()) == 4
    sys.modules.pop("own_game")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("keisei.games.tictactoe:TicTakToe", UnknownGameError, r"did you mean 'TicTacToe'"),
        ("no_such_module:Game", UnknownGameError, "no module 'no_such_module'.*PYTHONPATH"),
        ("keisei.nothing:Game", UnknownGameError, "no module 'keisei.nothing'"),
        (":Game", UnknownGameError, "write 'module:Class'"),
        ("math:pi", ConfigError, "is 3.14.*makes no games; name a SingleGame class"),
        ("os:system", ConfigError, "a factory with the parameters batch, seed, first_game"),
        ("torch.hub:load", ConfigError, "makes no games"),
        ("builtins:exec", ConfigError, "makes no games"),
        ("builtins:dict", ConfigError, "makes no games"),
        ("keisei.games.single:Outcome", ConfigError, "makes no games"),
        ("openspiel:tic_tac_to", UnknownGameError, "did you mean 'tic_tac_toe'"),
        ("openspiel:connect_four", ConfigError, None),
        ("pettingzoo:conect_four_v3", UnknownGameError, "did you mean 'connect_four-v3'"),
        ("pettingzoo:connect_four_v3", ConfigError, "screen_scaling"),
        ("pettingzoo:torch.hub", UnknownGameError, "has no AEC game 'torch.hub'"),
    ],
)
def test_what_cannot_be_made_says_why(name: str, error: type[Exception], message: str | None) -> None:
    options = (
        {"wrong_option": 1}
        if error is ConfigError and ":" in name and message in (None, "screen_scaling")
        else {}
    )
    with pytest.raises(error, match=message or "no option 'wrong_option'"):
        keisei.make_game(name, **options)


def test_all_that_is_built_in_is_imported_at_once() -> None:
    code = (
        "import sys; from keisei.games import registry; before = 'keisei.games.shogi.game' in sys.modules; "
        "registry.import_built_in_games(); "
        "print(before, [m in sys.modules for m in ('keisei.games.shogi.game', 'keisei.games.connect_four')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False [True, True]"


def test_the_default_game_is_one_that_comes_with_keisei() -> None:
    assert DEFAULT_GAME in keisei.registered_games()


def test_what_a_game_offers_to_players_does_not_tell_its_saved_states_apart() -> None:
    """States that were saved before a game offered it must go on."""
    plain = keisei.make_game("tictactoe").spec
    offering = replace(plain, plane_actions=True, chance=True)
    assert digest_of(offering, {}) == digest_of(plain, {})
    assert digest_of(replace(plain, seats=3), {}) != digest_of(plain, {})


def test_a_missing_package_of_a_game_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needy_game.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(GameError, match="needy_game needs the package 'a_package_that_is_not_there'"):
        keisei.make_game("needy_game:Game")
