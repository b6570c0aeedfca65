"""Files of strangers: plain files of the folder are read, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keisei.errors import ForeignFileError
from keisei.runs.foreign_files import check_regular, read_foreign


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    (made / "games").mkdir(parents=True)
    (made / "games" / "first.json").write_bytes(b"{}")
    (tmp_path / "secret").write_bytes(b"secret")
    return made


def test_plain_files_are_read(folder: Path) -> None:
    assert read_foreign(folder, "games/first.json", 2) == b"{}"
    assert check_regular(folder / "games" / "first.json", 2)
    assert not check_regular(folder / "nothing", 2)
    with pytest.raises(FileNotFoundError):
        read_foreign(folder, "nothing", 2)


def test_a_folder_that_the_reader_names_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(folder)
    assert read_foreign(tmp_path / "other", "games/first.json", 2) == b"{}"


@pytest.mark.parametrize("name", ["", ".", "../secret", "games/../../secret", "/etc/passwd"])
def test_names_stay_inside(folder: Path, name: str) -> None:
    with pytest.raises(ForeignFileError, match="only files of the folder itself"):
        read_foreign(folder, name, 100)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    for name in ("link", "out/secret"):
        with pytest.raises(ForeignFileError, match="is a link"):
            read_foreign(folder, name, 100)
    with pytest.raises(ForeignFileError, match="not a plain file"):
        check_regular(folder / "link", 100)


def test_no_other_kind_of_file_is_opened(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    for name in ("fifo", "games"):
        with pytest.raises(ForeignFileError, match="not a plain file"):
            read_foreign(folder, name, 100)


def test_large_files_are_refused_before_they_are_read(folder: Path) -> None:
    with open(folder / "sparse", "wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(ForeignFileError, match="at most 100"):
        read_foreign(folder, "sparse", 100)
    assert read_foreign(folder, "games/first.json", 2)
    with pytest.raises(ForeignFileError):
        read_foreign(folder, "games/first.json", 1)
