"""``keisei games`` lists every game, also those that cannot be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.games import make_game, register_game, registered_games
from keisei.games.registry import _REGISTERED

WIDE = CliRunner(env={"COLUMNS": "250"})


def rows_of_the_table() -> dict[str, list[str]]:
    result = WIDE.invoke(app, ["games"])
    assert result.exit_code == 0
    return {words[0]: words[1:] for line in result.stdout.splitlines() if (words := line.split())}


def test_every_registered_game_is_listed_with_its_spec() -> None:
    table = rows_of_the_table()
    for name in registered_games():
        spec = make_game(name).spec
        shape = "×".join(map(str, spec.observation.shape))
        plies = "none" if spec.max_plies is None else str(spec.max_plies)
        expected = [spec.seats, spec.num_actions, shape, spec.observation.dtype, spec.packed_bytes, plies]
        assert table[name][:6] == list(map(str, expected))


@pytest.fixture
def game_without_its_package() -> Iterator[str]:
    name = "needs-a-package"
    register_game(name, "no_such_package_anywhere:Game", "A game that cannot be made here.")
    yield name
    del _REGISTERED["needsapackage"]


def test_a_game_that_cannot_be_made_is_shown_with_the_reason(game_without_its_package: str) -> None:
    result = WIDE.invoke(app, ["games"])
    assert result.exit_code == 0
    assert "unavailable" in result.stdout
    assert f"{game_without_its_package} is unavailable: there is no module" in result.stdout
    assert "tictactoe" in result.stdout


@pytest.mark.parametrize("columns", [60, 80, 120, 160])
def test_descriptions_are_whole_however_wide_the_terminal_is(columns: int) -> None:
    shown = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["games"]).stdout.splitlines()
    descriptions = registered_games()
    beside = len(shown) == 1 + len(descriptions)
    assert beside or len(shown) == 2 * (1 + len(descriptions))
    assert beside == (columns > 150)
    for name, description in descriptions.items():
        place = next(place for place, line in enumerate(shown) if line.split()[0] == name)
        assert shown[place if beside else place + 1].endswith("  " + description)
