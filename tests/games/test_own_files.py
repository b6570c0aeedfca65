"""Games in files: ``path.py:Class`` is imported from its path, once, by the content that it has now."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keisei
from keisei.errors import GameError, UnknownGameError
from keisei.games import own_files
from keisei.games.importing import name_of, origin_of
from keisei.games.own_files import absolute_name, file_of, loaded_digest
from keisei.games.registry import games_in, names_code, source_digest

GAME = """
from keisei.games.tictactoe import TicTacToe

class Mine(TicTacToe):
    name = "{name}"
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Writes a file below a folder; what tests import from there is forgotten."""
    path, modules = list(sys.path), set(sys.modules)

    def write(name: str, content: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


Write = Callable[[str, str], Path]


def made(file: Path | str) -> str:
    return keisei.make_game(f"{file}:Mine").spec.name


def test_a_game_is_made_from_its_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write("some folder/game.py", GAME.format(name="mine"))
    assert made(file) == "mine"
    monkeypatch.chdir(file.parent)
    assert made("game.py") == "mine"
    monkeypatch.setenv("HOME", str(file.parent))
    assert made("~/game.py") == "mine"
    assert absolute_name("game.py:Mine") == absolute_name("~/game.py:Mine") == f"{file}:Mine"
    assert absolute_name("some.module:Mine") == "some.module:Mine"
    assert file_of("some.module:Mine") is file_of("tictactoe") is file_of("game.py") is None


def test_files_of_one_name_are_different_modules(write: Write) -> None:
    first, second = (write(f"{name}/game.py", GAME.format(name=name)) for name in ("a", "b"))
    assert [made(first), made(second), made(first)] == ["a", "b", "a"]


def test_a_file_is_run_once(write: Write) -> None:
    file = write("game.py", GAME.format(name="mine") + "\nprint('imported')\n")
    code = f"import keisei\nfor _ in range(3): keisei.make_game({f'{file}:Mine'!r})"
    assert output_of("-c", code) == "imported\n"


def test_neighbours_are_found_as_by_python_itself(write: Write) -> None:
    write("board_beside.py", "NAME = 'beside'\n")
    lazy = "import board_beside\n        self.said = board_beside.NAME\n        super().reset(rng)\n"
    lazy = f"\n    def reset(self, rng):\n        {lazy}"
    file = write("game.py", "import board_beside\n" + GAME.format(name="mine") + lazy)
    assert made(file) == "mine"


def test_what_is_pickled_is_found_again_in_another_process(write: Write, tmp_path: Path) -> None:
    file = write("a.b%2Ec/game.py", GAME.format(name="mine"))
    game = type(keisei.make_game(f"{file}:Mine").peek(0))  # type: ignore[attr-defined]
    (tmp_path / "pickled").write_bytes(pickle.dumps(keisei.batched(game)))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))().spec.name)"
    assert output_of("-c", code, str(tmp_path / "pickled")) == "mine\n"


def test_the_digest_is_that_of_the_content_which_runs(write: Write) -> None:
    """Python's own cache goes by size and date, and both can stay when the content changes."""
    file = write("game.py", GAME.format(name="one"))
    told = (
        "import sys, keisei; from keisei.games.registry import source_digest; name = sys.argv[1] + ':Mine'; "
    )
    told += "print(source_digest(name), keisei.make_game(name).spec.name)"
    stat = file.stat()
    before = output_of("-c", told, str(file)).split()
    file.write_text(GAME.format(name="two"))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = output_of("-c", told, str(file)).split()
    assert (before[1], after[1]) == ("one", "two")
    assert before[0] != after[0]
    file.write_text(GAME.format(name="one"))
    assert output_of("-c", told, str(file)).split() == before


def test_an_imported_file_keeps_its_digest(write: Write) -> None:
    file = write("game.py", GAME.format(name="one"))
    digest = loaded_digest(file)
    file.write_text(GAME.format(name="another"))
    assert source_digest(f"{file}:Mine") == digest
    assert made(file) == "one"
    file.unlink()
    assert made(file) == "one"
    assert source_digest("tictactoe") is source_digest("keisei.games.tictactoe:TicTacToe") is None


def test_a_program_is_not_run_again_for_its_own_game(write: Write) -> None:
    program = (
        GAME.format(name="mine") + "\nimport keisei\nprint(keisei.make_game(__file__ + ':Mine').spec.name)\n"
    )
    assert output_of(str(write("program.py", program))) == "mine\n"


def test_a_file_names_code_that_comes_from_it(write: Write) -> None:
    file = write("game.py", "raise SystemExit('it ran')")
    assert names_code(f"{file}:Mine")
    assert origin_of(f"{file}:Mine") == str(file)
    assert origin_of(f"{file.with_name('other.py')}:Mine") == ""


def test_a_class_of_a_file_has_a_name(write: Write) -> None:
    file = write("game.py", GAME.format(name="mine"))
    game = type(keisei.make_game(f"{file}:Mine").peek(0))  # type: ignore[attr-defined]
    assert name_of(game) == f"{file}:Mine"
    assert name_of(keisei.SingleGame) == "keisei.games.single:SingleGame"

    class Inside(keisei.SingleGame):
        pass

    assert name_of(Inside) == ""


def test_the_games_of_a_file_are_listed(write: Write) -> None:
    several = GAME.format(name="mine") + (
        "\nimport keisei\nfrom keisei.games.connect_four import ConnectFour\n"
        "class Half(keisei.SingleGame):\n    pass\n"
        "class Other(Mine):\n    pass\n"
        "Batch = keisei.batched(Other)\n"
        "NUMBER = 3\n"
    )
    assert games_in(str(write("several.py", several))) == ["Mine", "Other", "Batch"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("class Mine(\n", GameError, r"cannot be imported: SyntaxError: .*game\.py, line 1"),
        ("1 / 0\n", GameError, r"ZeroDivisionError: division by zero \(.*game\.py:1\)"),
        ("import not_there\n", GameError, "needs the package 'not_there', which is not installed"),
        ("from .board import x\n", GameError, r"write 'import board' for a file beside it, without the dot"),
        ("class Mines:\n    pass\n", UnknownGameError, r"has no 'Mine' \(did you mean 'Mines'\?\)"),
    ],
)
def test_a_file_that_is_wrong_is_told_in_one_line(
    write: Write, content: str, error: type[Exception], message: str
) -> None:
    file = write("game.py", content)
    with pytest.raises(error, match=message) as caught:
        made(file)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told_with_the_nearest(write: Write, tmp_path: Path) -> None:
    write("game.py", "")
    with pytest.raises(
        UnknownGameError, match=r"there is no file .*games\.py on this machine \(did you mean 'game"
    ):
        made(tmp_path / "games.py")


def test_it_is_known_what_is_being_imported(write: Write) -> None:
    asks = "from keisei.games import own_files\nfound = own_files.imported_now()\n"
    file = write("game.py", asks + GAME.format(name="mine"))
    made(file)
    assert own_files.import_file(file).found == file
    assert own_files.imported_now() is None
    with pytest.raises(GameError):
        made(write("broken.py", "1 / 0"))
    assert own_files.imported_now() is None


@given(st.text())
def test_any_path_can_be_written_as_the_name_of_a_module(path: str) -> None:
    name = own_files._encoded(path)
    assert "." not in name
    assert own_files._decoded(name) == path


def output_of(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
