"""Others ask a trainer through files in the run's directory, and read what it does from ``live.json``."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

import pytest
from runs_for_tests import make_run

from keisei.errors import RunError
from keisei.runs.control import MOST_WAITING, Action, Requests, ask
from keisei.runs.directory import RunDirectory
from keisei.runs.live import Answer, Glimpse, LiveStatus, LiveWorker, read_live, write_live
from keisei.runs.replays import GameReplay, read_replay, write_replay


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path, "run", updates=())


def test_requests_arrive_in_order_and_once(run: RunDirectory) -> None:
    with run.lock():
        requests = Requests(run.control)
        asked = [ask(run, Action.PAUSE), ask(run, Action.REMOVE_WORKER, 3), ask(run, Action.STOP)]
    assert requests.take() == asked
    assert requests.take() == []
    assert list(run.control.iterdir()) == []


def test_nobody_is_asked_where_nobody_trains(run: RunDirectory) -> None:
    with pytest.raises(RunError, match=r"nobody trains run now.*keisei train"):
        ask(run, Action.PAUSE)
    assert not run.control.exists()


def test_what_was_asked_of_an_earlier_trainer_is_dropped(run: RunDirectory) -> None:
    with run.lock():
        ask(run, Action.STOP)
        assert Requests(run.control).take() == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "9" * 9999,
        '{"action": "stop"}',
        '{"id": "1", "action": "format-disk", "worker": null}',
        '{"id": "1", "action": "remove-worker", "worker": "x"}',
        '{"id": "1", "action": "stop", "worker": -1}',
    ],
)
def test_a_file_that_is_no_request_is_set_aside(run: RunDirectory, content: str) -> None:
    requests = Requests(run.control)
    run.control.mkdir()
    (run.control / "1.request.json").write_text(content)
    assert requests.take() == []
    assert requests.refused == 1
    assert [path.name for path in run.control.iterdir()] == ["set-aside"]
    (kept,) = (run.control / "set-aside").iterdir()
    assert kept.read_text() == content


def test_what_is_no_file_never_holds_a_trainer_up(run: RunDirectory, tmp_path: Path) -> None:
    """A FIFO would block, a folder cannot be unlinked, a link leads elsewhere, and a huge file fills the memory."""
    requests = Requests(run.control)
    (run.control / "1.request.json").mkdir(parents=True)
    (run.control / "1.request.json" / "inside").touch()
    os.mkfifo(run.control / "2.request.json")
    (tmp_path / "elsewhere").write_text('{"id": "1", "action": "stop", "worker": null}')
    (run.control / "3.request.json").symlink_to(tmp_path / "elsewhere")
    with open(run.control / "4.request.json", "wb") as file:
        file.truncate(20 << 30)
    os.mknod(run.control / "5.request.json", stat.S_IFSOCK | 0o600)
    (run.control / "6.request.json").write_text("[" * 4000)
    with run.lock():
        asked = ask(run, Action.PAUSE)
        assert requests.take() == [asked]
        assert requests.take() == []
    assert requests.refused == 6
    assert len(list((run.control / "set-aside").iterdir())) == 6
    assert (tmp_path / "elsewhere").exists()


def test_what_cannot_be_moved_is_met_once(run: RunDirectory, tmp_path: Path) -> None:
    requests = Requests(run.control)
    (run.control / "1.request.json").mkdir(parents=True)
    (run.control / "set-aside").symlink_to(tmp_path)
    for _ in range(3):
        assert requests.take() == []
    assert requests.refused == 1
    assert (run.control / "1.request.json").is_dir()


def test_requests_are_not_written_through_a_link(run: RunDirectory, tmp_path: Path) -> None:
    with run.lock():
        run.control.symlink_to(tmp_path)
        with pytest.raises(RunError, match="is not a folder"):
            ask(run, Action.STOP)
    with pytest.raises(RunError, match="is not a folder"):
        run.lock()


def test_a_trainer_that_answers_nothing_is_not_asked_for_ever(run: RunDirectory) -> None:
    with run.lock():
        for _ in range(MOST_WAITING):
            ask(run, Action.RESET)
        with pytest.raises(RunError, match="requests wait for run already"):
            ask(run, Action.RESET)


def test_live_status_comes_back_as_it_was(run: RunDirectory) -> None:
    worker = LiveWorker(0, "running", 17, (0, 2), 512, 100.5, 0.25, 0.5, 0.125, 1, 4096, "it fell")
    status = LiveStatus(
        time=1.5,
        update=7,
        queue={"filled": 2},
        workers=(worker,),
        answers=(Answer("1", "pause", True, "the run pauses", 2.0),),
        board=Glimpse(0, ("00ff",), (1,), (4,), (2,), (-0.5,)),
    )
    write_live(run, status)
    assert read_live(run) == status


@pytest.mark.parametrize("content", ["", "{}", '{"workers": 3}', "[]"])
def test_a_damaged_live_status_is_none(run: RunDirectory, content: str) -> None:
    assert read_live(run) is None
    run.live.write_text(content)
    assert read_live(run) is None


def test_numbers_that_json_lacks_are_no_numbers(run: RunDirectory) -> None:
    board = Glimpse(0, ("00",), (0,), (0,), (0,), (math.nan,))
    write_live(run, LiveStatus(time=1.0, speed=math.inf, board=board))
    read = read_live(run)
    assert read is not None
    assert math.isnan(read.speed)
    assert read.board is not None
    assert read.board.values == (None,)


def test_a_replay_comes_back_as_it_was(tmp_path: Path) -> None:
    replay = GameReplay("ludo", (1, 2, 3), {"players": 3}, 5, 2, ("a", "b", "b"), (1.0, -0.5, -0.5), "home")
    path = tmp_path / "game.replay.json"
    write_replay(replay, path)
    assert read_replay(path) == replay


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": "other"}', '{"format": "keisei-replay", "version": 1}']
)
def test_other_files_are_no_replays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "game.replay.json"
    path.write_text(content)
    with pytest.raises(RunError, match="is not a game that can be replayed"):
        read_replay(path)
