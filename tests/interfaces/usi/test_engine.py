"""The engine's loop with a player that does what a test tells it: answers come in time, once, and for the last go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei import make_game
from keisei.errors import InvalidPositionError
from keisei.interfaces.usi.engine import Engine, Task
from keisei.interfaces.usi.protocol import EngineOptions, Insight, Line
from keisei.interfaces.usi.thinkers import mind_of
from keisei.policies import named_player

LONG = 30.0


class SlowMind:
    """Studies that tell nothing before the test lets them."""

    def __init__(self) -> None:
        self.studies: SimpleQueue[SlowStudy] = SimpleQueue()
        self.verdict: str | None = None

    def study(self, position: str) -> SlowStudy:
        if "garbage" in position:
            raise InvalidPositionError("no such\nposition")
        study = SlowStudy(position, self.verdict)
        self.studies.put(study)
        return study


class SlowStudy:
    turn = 0

    def __init__(self, position: str, verdict: str | None) -> None:
        self.position, self.verdict = position, verdict
        self.allowed, self.told, self.failing = Event(), Event(), False
        self.stopped: Callable[[], bool] = lambda: False
        self.insight = Insight(1, 1, (Line(("7g7f", "3c3d"), "cp 10", 0.6),))

    def settled(self) -> str | None:
        return self.verdict

    def any_move(self) -> str:
        return "9g9f"

    def think(self, task: Task) -> None:
        self.stopped = task.stopped
        self.allowed.wait(LONG)
        if self.failing:
            raise RuntimeError("it broke")
        task.tell(self.insight)
        self.told.set()

    def mate(self, stopped: Callable[[], bool]) -> str:
        self.allowed.wait(LONG)
        return "nomate"


class Talk:
    """A GUI: says lines, and hears the answers."""

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.mind = SlowMind()
        self.heard: SimpleQueue[str] = SimpleQueue()
        self.loads: list[EngineOptions] = []
        self.let_load = Event()
        self.let_load.set()
        self.engine = Engine(self.heard.put, self._load, options or EngineOptions())
        self.code: list[int] = []
        self.thread = Thread(target=lambda: self.code.append(self.engine.run()), daemon=True)
        self.thread.start()

    def _load(self, options: EngineOptions) -> SlowMind:
        self.loads.append(options)
        self.let_load.wait(LONG)
        if options.run == "nobody":
            raise ValueError("no run is named nobody")
        return self.mind

    def say(self, *lines: str) -> None:
        for line in lines:
            self.engine.hear(line)

    def next(self) -> str:
        return self.heard.get(timeout=LONG)

    def answer(self) -> str:
        """The next line that is no information."""
        while (line := self.next()).startswith("info"):
            pass
        return line

    def study(self) -> SlowStudy:
        return self.mind.studies.get(timeout=LONG)

    def sync(self) -> list[str]:
        """All lines up to now. The engine answers in order, so ``readyok`` is the last one."""
        self.say("isready")
        lines = []
        while (line := self.next()) != "readyok":
            lines.append(line)
        return lines


@pytest.fixture
def talk() -> Iterator[Talk]:
    talk = Talk()
    yield talk
    talk.say("quit")
    talk.thread.join(LONG)
    assert talk.code == [0]


def test_usi_is_answered_while_nothing_is_loaded(talk: Talk) -> None:
    talk.say("usi")
    lines = []
    while (line := talk.next()) != "usiok":
        lines.append(line)
    assert lines[0] == "id name Keisei"
    assert any(line.startswith("option name Run ") for line in lines)
    assert talk.loads == []


def test_isready_loads_the_player_once_and_again_if_it_changes(talk: Talk) -> None:
    talk.say("setoption name Run value first", "isready")
    assert talk.next() == "readyok"
    talk.say("setoption name MultiPV value 2", "isready")
    assert talk.next() == "readyok"
    talk.say("setoption name Run value second", "isready")
    assert talk.next() == "readyok"
    assert [options.run for options in talk.loads] == ["first", "second"]


def test_commands_of_a_game_wait_for_the_player(talk: Talk) -> None:
    talk.let_load.clear()
    talk.say("position startpos moves 7g7f", "go", "setoption name Run value other")
    talk.let_load.set()
    study = talk.study()
    study.allowed.set()
    assert talk.answer() == "bestmove 7g7f ponder 3c3d"
    assert study.position == "startpos moves 7g7f"
    assert [options.run for options in talk.loads] == ["search:4", "other"]


def test_an_answer_comes_when_time_is_up_whatever_the_player_does(talk: Talk) -> None:
    talk.say("isready", "go btime 0 wtime 0 byoyomi 20")
    assert talk.next() == "readyok"
    assert talk.answer() == "bestmove 9g9f"


def test_stop_brings_what_is_known(talk: Talk) -> None:
    talk.say("go infinite")
    study = talk.study()
    study.allowed.set()
    assert study.told.wait(LONG)
    assert talk.next().startswith("info depth 1 ")
    assert talk.sync() == []
    talk.say("stop")
    assert talk.next() == "bestmove 7g7f ponder 3c3d"
    assert study.stopped()


def test_stop_is_answered_while_another_player_is_loaded(talk: Talk) -> None:
    talk.say("go infinite")
    talk.study()
    talk.let_load.clear()
    talk.say("setoption name Run value other", "isready", "stop")
    assert talk.next() == "bestmove 9g9f"
    talk.let_load.set()
    assert talk.next() == "readyok"


def test_options_hold_for_the_next_search(talk: Talk) -> None:
    talk.say("isready", "setoption name MultiPV value 2", "go infinite")
    assert talk.next() == "readyok"
    talk.study().allowed.set()
    assert "multipv 1 score" in talk.next()


def test_stop_without_a_search_says_nothing(talk: Talk) -> None:
    talk.say("stop", "ponderhit", "gameover win", "usinewgame", "stop")
    assert talk.sync() == []


def test_what_an_old_search_finds_is_never_told(talk: Talk) -> None:
    talk.say("go infinite")
    old = talk.study()
    talk.say("stop")
    assert talk.next() == "bestmove 9g9f"
    talk.say("position startpos moves 2g2f", "go infinite")
    new = talk.study()
    old.insight = Insight(9, 9, (Line(("1g1f",)),))
    old.allowed.set()
    assert old.told.wait(LONG)
    assert talk.sync() == []
    new.allowed.set()
    assert talk.next().endswith("pv 7g7f 3c3d")
    talk.say("stop")
    assert talk.next() == "bestmove 7g7f ponder 3c3d"


@pytest.mark.parametrize("end", ["gameover lose", "usinewgame"])
def test_the_end_of_a_game_stops_a_search_silently(talk: Talk, end: str) -> None:
    talk.say("go infinite")
    study = talk.study()
    talk.say(end)
    study.allowed.set()
    assert talk.sync() == []


def test_pondering_is_answered_after_the_expected_move(talk: Talk) -> None:
    talk.say("go ponder btime 0 wtime 0 byoyomi 60000")
    talk.study().allowed.set()
    assert talk.next().startswith("info")
    assert talk.sync() == []
    talk.say("ponderhit")
    assert talk.next() == "bestmove 7g7f ponder 3c3d"


def test_pondering_on_the_wrong_move_is_stopped(talk: Talk) -> None:
    talk.say("go ponder btime 0 wtime 0 byoyomi 10", "stop")
    assert talk.answer() == "bestmove 9g9f"


@pytest.mark.parametrize("verdict", ["win", "resign"])
def test_a_win_is_declared_and_a_lost_game_resigned(talk: Talk, verdict: str) -> None:
    talk.mind.verdict = verdict
    talk.say("go btime 1000 wtime 1000")
    assert talk.answer() == f"bestmove {verdict}"
    talk.say("go ponder")
    assert talk.sync() == []
    talk.say("ponderhit")
    assert talk.next() == f"bestmove {verdict}"


def test_resigns_below_the_chance_that_was_set(talk: Talk) -> None:
    talk.say("setoption name ResignBelow value 20", "go")
    study = talk.study()
    study.insight = Insight(1, 1, (Line(("7g7f",), "cp -900", 0.19),))
    study.allowed.set()
    assert talk.answer() == "bestmove resign"


def test_a_player_that_fails_resigns_and_says_why(talk: Talk) -> None:
    talk.say("go")
    study = talk.study()
    study.failing = True
    study.allowed.set()
    assert talk.next() == "info string error: RuntimeError: it broke"
    assert talk.next() == "bestmove resign"


def test_mates_are_answered_too(talk: Talk) -> None:
    talk.say("go mate infinite")
    talk.study().allowed.set()
    assert talk.answer() == "checkmate nomate"
    talk.say("go mate 10")
    assert talk.answer() == "checkmate timeout"


def test_a_wrong_position_is_told_and_never_played(talk: Talk) -> None:
    talk.say("position garbage", "go btime 10")
    assert talk.next() == "info string error: no such position"
    assert talk.next() == "bestmove resign"
    talk.say("go mate 10")
    assert talk.answer() == "checkmate notimplemented"


GARBAGE = (
    "",
    " ",
    "\t\r",
    "xyzzy",
    "GO",
    "position",
    "setoption",
    "go btime",
    "\x00\ufffd",
    "go " + "x " * 1000,
)


def test_garbage_is_survived(talk: Talk) -> None:
    for line in GARBAGE:
        talk.say(line, "stop")
    talk.sync()


LINES = st.sampled_from(
    [
        "go depth 1",
        "go mate 50",
        "go ponder btime 10 wtime 10",
        "go infinite",
        "position startpos moves 7g7f",
        "position sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1",
        "position sfen x",
        "position startpos moves 7g7f 7g7f",
        "ponderhit",
        "usinewgame",
        "gameover",
        "setoption name MultiPV value 3",
        "isready",
    ]
)


@settings(max_examples=40)
@given(
    lines=st.lists(LINES | st.text() | st.text().map("position {}".format) | st.text().map("go {}".format))
)
def test_any_lines_leave_an_engine_that_answers(lines: list[str]) -> None:
    player = named_player("search:1", make_game("shogi").spec)
    assert player is not None
    heard: SimpleQueue[str] = SimpleQueue()
    engine = Engine(heard.put, lambda options: mind_of(player), EngineOptions())
    thread = Thread(target=engine.run, daemon=True)
    thread.start()
    for ask, answer in (("go depth 1", "bestmove"), ("isready", "readyok")):
        for line in (*lines, "usinewgame", "position startpos", ask):
            engine.hear(line)
        while not heard.get(timeout=LONG).startswith(answer):
            pass
    engine.hear("quit")
    thread.join(LONG)
    assert not thread.is_alive()


def test_a_player_that_cannot_be_loaded_ends_the_engine_with_its_reason() -> None:
    talk = Talk(EngineOptions(run="nobody"))
    talk.say("isready")
    assert talk.next() == "info string error: ValueError: no run is named nobody"
    talk.thread.join(LONG)
    assert talk.code == [2]


def test_the_end_of_the_pipe_is_the_end() -> None:
    talk = Talk()
    talk.engine.listen(["isready\n"])
    talk.thread.join(LONG)
    assert talk.code == [0]
