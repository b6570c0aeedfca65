"""Replays of strangers: a game, or words that say why there is none."""

from __future__ import annotations

import json
import math
import os
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from runs_for_tests import make_run

from keisei.errors import GameError, KeiseiError, RunError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.replays import GameReplay, read_replay, write_replay
from keisei.runs.rows import GameRow
from keisei.web.catalogue import NotFoundError
from keisei.web.records import record_text, replay_frame

RECORD = "games/game.replay.json"
WON = GameReplay("tictactoe", (0, 3, 1, 4, 2), names=("a", "b"), scores=(1.0, -1.0), ending="three_in_a_row")
MUTATIONS = 1000
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3, 9, 2**31, 2**63, 2**64, 10**30, 0.5, 1e300, math.nan, math.inf, "", "x", "\ud800", "a\0b",
    [], [[]], [None], [0, "x"], {}, {"x": 1}, {"batch": 2}, {"seed": []},
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = make_run(tmp_path, "run", updates=())
    write_replay(WON, run.path / RECORD)
    with RunDatabase(run.database) as database:
        for record in (RECORD, "games/passwd", "games/../../secret", "secret", "games/link", "games/fifo"):
            database.add_games([GameRow(1, 1.0, "a", "b", 1.0, 5, "three_in_a_row", record)])
    return run


def mutated(document: dict[str, Any], draw: random.Random) -> Any:
    """Changes one to three places of a document."""
    whole = {"": deepcopy(document)}
    for _ in range(draw.randint(1, 3)):
        at: Any = whole
        key: Any = ""
        while isinstance(at[key], dict | list) and at[key] and draw.random() < 0.8:
            at = at[key]
            key = draw.choice([*at] if isinstance(at, dict) else [*range(len(at))])
        if draw.random() < 0.15 and key != "":
            del at[key]
        else:
            at[key] = deepcopy(draw.choice(VALUES))
        if not isinstance(whole[""], dict | list):
            break
    return whole[""]


def test_mutations_of_a_replay_give_a_frame_or_words(run: RunDirectory) -> None:
    document, draw = json.loads((run.path / RECORD).read_text()), random.Random(5)
    shown = 0
    for _ in range(MUTATIONS):
        wrong = mutated(document, draw)
        (run.path / RECORD).write_bytes(json.dumps(wrong).encode("utf-8", "surrogatepass"))
        try:
            read = read_replay(run.path / RECORD)
        except RunError:
            continue
        assert all(type(action) is int for action in read.actions)
        try:
            frame = replay_frame(None, run, RECORD, 2, 0)
        except KeiseiError:
            continue
        json.dumps(frame, allow_nan=False).encode()
        shown += 1
    assert 0 < shown < MUTATIONS


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"9" * 9999, b'{"format": NaN}'])
def test_no_document_at_all(run: RunDirectory, content: bytes) -> None:
    (run.path / RECORD).write_bytes(content)
    with pytest.raises(RunError, match="is not a game that can be replayed"):
        read_replay(run.path / RECORD)


def test_a_replay_of_another_game_is_not_played(run: RunDirectory) -> None:
    """Who looks at a run agrees to its game, and to no other that a file may name."""
    write_replay(GameReplay("connect-four", (0, 1)), run.path / RECORD)
    with pytest.raises(GameError, match="a game of 'connect-four', and run plays tictactoe"):
        replay_frame(None, run, RECORD, 0, 0)


def test_a_record_is_a_file_of_the_games_folder(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    (run.path / "secret").write_text("SECRET")
    (run.games / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(run.games / "fifo")
    for record in ("games/../../secret", "secret", "games/link", "games/fifo", "games/passwd"):
        for ask in (lambda: record_text(run, record), lambda: replay_frame(None, run, record, 0, 0)):  # noqa: B023
            with pytest.raises(NotFoundError, match="has no file"):
                ask()
    assert record_text(run, RECORD)[0] == "game.replay.json"


def test_a_link_in_place_of_the_games_shows_no_other_folder(run: RunDirectory) -> None:
    run.games.rename(run.path / "old")
    run.games.symlink_to("/etc")
    assert (run.games / "passwd").exists()
    with pytest.raises(NotFoundError, match="has no file"):
        record_text(run, "games/passwd")


def test_a_replay_is_not_written_through_a_link(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (run.path / RECORD).unlink()
    (run.path / RECORD).symlink_to(tmp_path / "mine")
    write_replay(WON, run.path / RECORD)
    assert (tmp_path / "mine").read_text() == "mine"
    assert read_replay(run.path / RECORD) == WON
