"""Our engine as another program sees it: cshogi is the client, and the judge of every move."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cshogi
import pytest
from cshogi.usi import Engine
from engines_for_tests import keisei_usi
from runs_for_tests import make_run

import keisei

MOST_PLIES = 160
LIGHT = ("numpy", "torch", "typer", "rich", "pydantic", "yaml", "keisei.games", "keisei.native")


@contextmanager
def engine(folder: Path, **options: str | int) -> Iterator[Engine]:
    """An engine that is ready. A client that is left alone would wait for ever, so it is ended at last."""
    client = Engine(str(keisei_usi(folder)))
    process = client.proc
    try:
        for name, value in options.items():
            client.setoption(name, value)
        client.isready()
        yield client
        client.quit()
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def play(black: Engine, white: Engine) -> tuple[cshogi.Board, list[str], str]:
    """One game. Every move must be legal by cshogi's rules."""
    board, moves = cshogi.Board(), list[str]()
    for client in (black, white):
        client.usinewgame()
    while not board.is_game_over() and len(moves) < MOST_PLIES:
        if board.is_draw() == cshogi.REPETITION_DRAW:
            return board, moves, "repetition"
        client = (black, white)[board.turn]
        client.position(moves)
        answer, _ = client.go(btime=0, wtime=0, byoyomi=2000)
        if answer in ("resign", "win"):
            return board, moves, answer
        move = board.move_from_usi(answer)
        assert board.is_legal(move), f"{answer} after {' '.join(moves)}"
        board.push(move)
        moves.append(answer)
    return board, moves, "mated" if board.is_game_over() else "long"


def test_a_network_and_a_search_play_whole_games(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    make_run(root, "tiny", game="shogi")
    with (
        engine(tmp_path, Run="tiny@10", Root=str(root), Temperature="1") as network,
        engine(tmp_path, Run="search:1") as search,
    ):
        assert network.name == "Keisei"
        for black, white in ((network, search), (search, network)):
            board, moves, end = play(black, white)
            # A network that has learned nothing may be mated in a dozen plies. That both play is all that is sure.
            assert end in ("mated", "repetition", "long")
            assert len(moves) >= 2
            assert board.is_ok()


def test_information_is_understood(tmp_path: Path) -> None:
    listener = cshogi.usi.InfoListener()
    several = cshogi.usi.MultiPVListener()
    with engine(tmp_path, Run="search:3", MultiPV=3) as client:
        client.position(["7g7f", "3c3d", "8h3c"])
        best, ponder = client.go(btime=0, wtime=0, byoyomi=3000, listener=listener.listen())
        assert best in ("2b3c", "2a3c", "2b3c+")
        assert listener.pv[:2] == [best, ponder]
        assert listener.score == listener.info["cp"]
        assert listener.info["nodes"] > 0
        client.go(btime=0, wtime=0, byoyomi=3000, listener=several.listen())
        assert [info["multipv"] for info in several.info] == [1, 2, 3]
        assert client.go_mate(1000) == "nomate"


def test_a_win_is_declared_where_cshogi_says_so(tmp_path: Path) -> None:
    sfen = "4K4/PPPPPPPPP/+R+R+B+B5/9/9/9/9/9/4k4 b GSNL3g3s3n3l9p 1"
    assert cshogi.Board(sfen).is_nyugyoku()
    with engine(tmp_path, Run="random") as client:
        client.position(sfen="sfen " + sfen)
        assert client.go(byoyomi=1000)[0] == "win"
        client.position(sfen="sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1")
        assert client.go(byoyomi=1000)[0] == "resign"


def conversation(lines: str, *arguments: str) -> tuple[int, bytes]:
    """The exit code and all that an engine writes. The pipe to it stays open until it ends."""
    code = "from keisei.cli.usi import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=-1, stdout=-1, stderr=subprocess.STDOUT
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(lines.encode())
        engine.stdin.flush()
        written = engine.stdout.read()
        return engine.wait(), written


def test_garbage_on_the_pipe_is_survived() -> None:
    code, written = conversation("\x00\xff\nusi\nposition x\n\ngo go\nsetoption\nisready\nquit\n")
    assert code == 0
    assert b"usiok" in written


def test_a_run_that_is_not_there_is_told() -> None:
    code, written = conversation("isready\nstop\n" * 2, "--run", "nobody", "--root=nowhere")
    assert code == 2
    assert b"info string error: no run is named 'nobody'" in written
    assert b"readyok" not in written


def test_a_run_of_another_game_is_told(tmp_path: Path) -> None:
    make_run(tmp_path, "other")
    written = conversation("isready\nstop\n", "--run", "other", "--root", str(tmp_path))[1]
    assert b"other plays tictactoe, and USI is for Shogi" in written


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--nonsense"], 2), (["--run"], 2)])
def test_arguments(arguments: list[str], code: int) -> None:
    found, written = conversation("", *arguments)
    assert found == code
    assert b"--run RUN" in written


@pytest.mark.parametrize("start", ["cli.usi", "cli.entry"])
def test_the_first_answer_needs_nothing_heavy(start: str) -> None:
    """What takes time to import is imported at isready."""
    code = (
        f"import io, sys; sys.argv = ['keisei', 'usi'][:{1 + (start == 'cli.entry')}]\n"
        f"from keisei.{start} import main\n"
        "import keisei.cli.usi, os\n"
        "os._exit = lambda code: sys.stderr.write(' '.join(sys.modules))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"usi\n", capture_output=True, check=True)
    assert done.stdout.endswith(b"usiok\n")
    loaded = done.stderr.decode().split()
    assert "keisei.interfaces.usi.engine" in loaded
    assert [name for name in LIGHT if name in loaded] == []


def test_other_commands_start_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry: Callable[[], None] = __import__("keisei.cli.entry", fromlist=["main"]).main
    monkeypatch.setattr(sys, "argv", ["keisei", "--version"])
    with pytest.raises(SystemExit):
        entry()
    assert capsys.readouterr().out == f"keisei {keisei.__version__}\n"
