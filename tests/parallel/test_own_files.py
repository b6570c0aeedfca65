"""Workers play a game from its file, and refuse any other content of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from games_for_tests import digests, manager_of

from keisei.errors import KeiseiError
from keisei.games.env_config import EnvConfig

HEX = Path(__file__).parents[2] / "examples" / "hex.py"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(HEX, tmp_path / "hex.py"))


@pytest.mark.parametrize(
    "settings", [{"start_method": "forkserver"}, {"start_method": "spawn"}, {"backend": "thread"}]
)
def test_workers_import_the_file(
    file: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    expected = digests(manager_of("hex.py:Hex", "inline"))
    assert digests(manager_of("hex.py:Hex", **settings)) == expected


def test_a_file_that_has_changed_is_refused(file: Path) -> None:
    env = EnvConfig(game=f"{file}:Hex").located()
    with open(file, "a", encoding="utf-8") as more:
        more.write("# a change\n")
    manager = manager_of(env=env.model_dump())
    with pytest.raises(
        KeiseiError, match=r"hex\.py on .* is not the file that this run plays by \(its digest is "
    ):
        manager.start_workers()
    inline = manager_of(env=env.model_dump(), backend="inline")
    inline.start_workers()  # this process has imported the old content, and still plays by it
    inline.stop_workers()


def test_a_file_that_is_not_on_the_machine_of_the_worker_is_told(file: Path) -> None:
    env = EnvConfig(game=f"{file}:Hex").located()
    manager = manager_of(env=env.model_dump())
    file.unlink()
    with pytest.raises(KeiseiError, match=r"there is no file .*hex\.py on this machine"):
        manager.start_workers()


def test_settings_name_the_whole_path_and_the_digest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    env = EnvConfig(game="hex.py:Hex").located()
    assert env.game == f"{file}:Hex"
    assert env.source_digest is not None
    assert env.located() == env
    other = env.model_copy(update={"game": "tictactoe"}).located()
    assert (other.game, other.source_digest) == ("tictactoe", None)
