"""Matches with engines of other programs: crashes, delays and illegal moves lose a game, and never the match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines_for_tests import bad_engine, keisei_usi

from keisei import make_game
from keisei.errors import ConfigError, EngineError, EngineTimeoutError
from keisei.evaluation import recorded_game, write_record
from keisei.games.shogi import Board, csa
from keisei.interfaces.usi.client import UsiClient
from keisei.interfaces.usi.clocks import Clock, TimeControl
from keisei.interfaces.usi.engine_match import EngineContestant, MatchSettings, MindContestant, play_engines
from keisei.interfaces.usi.protocol import EngineOptions
from keisei.interfaces.usi.thinkers import mind_of
from keisei.policies import named_player

FAST, SLOW = TimeControl(byoyomi=0.7), TimeControl(byoyomi=60)


def ours(name: str = "greedy") -> MindContestant:
    policy = named_player(name, make_game("shogi").spec)
    assert policy is not None
    return MindContestant(name, mind_of(policy), EngineOptions(delay=0))


@pytest.fixture
def contestant(tmp_path: Path) -> Iterator[Callable[[str, str], EngineContestant]]:
    """Makes engines that answer by a line of Python, and ends them."""
    clients: list[UsiClient] = []

    def make(name: str, answer: str) -> EngineContestant:
        clients.append(UsiClient([str(bad_engine(tmp_path, name, answer))]))
        return EngineContestant(name, clients[-1])

    yield make
    for client in clients:
        client.end()


@pytest.mark.parametrize(
    ("name", "answer", "ending"),
    [
        ("crashes", "sys.exit(3)", "crashed"),
        ("sleeps", "pass", "time_up"),
        ("cheats", "print('bestmove 1a1b', flush=True)", "illegal_move"),
        ("babbles", "print('bestmove', flush=True)", "illegal_move"),
        ("boasts", "print('bestmove win', flush=True)", "illegal_move"),
        ("resigns", "print('bestmove resign', flush=True)", "resignation"),
    ],
)
def test_what_an_engine_does_wrong_loses_its_game(
    contestant: Callable[[str, str], EngineContestant], tmp_path: Path, name: str, answer: str, ending: str
) -> None:
    control = FAST if ending == "time_up" else SLOW  # the others never wait
    settings = MatchSettings(games=2, opening_plies=2, control=control)
    match = play_engines(contestant(name, answer), ours(), settings)
    assert [game.ending for game in match.games] == [ending] * 2
    assert match.tally().losses == 2
    for number in range(2):
        path = write_record(match, number, tmp_path / f"game-{number}", ".csa")
        record = csa.load(path)
        assert record.outcome is not None
        assert record.outcome.winner is not None
        assert record.names[int(record.outcome.winner)] == "greedy"


def test_a_late_answer_is_not_taken_for_the_next(tmp_path: Path) -> None:
    """The first answer comes after its time, the others at once."""
    answer = "time.sleep(0.3 if moves == 1 else 0); print('bestmove', 'resign' if moves == 1 else 'win', flush=True)"
    client = UsiClient([str(bad_engine(tmp_path, "dawdles", answer))])
    try:
        client.new_game()
        with pytest.raises(EngineTimeoutError, match="did not say bestmove in time"):
            client.go("startpos", "byoyomi 10", 0.05)
        client.new_game()
        assert client.go("startpos", "byoyomi 10", 10) == "win"
    finally:
        client.end()


def test_an_engine_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"nothing-here cannot be started: No such file"):
        play_engines(
            EngineContestant("none", UsiClient([str(tmp_path / "nothing-here")])), ours(), MatchSettings(2)
        )
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho that is all >&2\nexit 7\n")
    silent.chmod(0o755)
    with pytest.raises(EngineError, match=r"has ended with code 7: that is all"):
        UsiClient([str(silent)]).start()


def test_our_engine_plays_for_others(tmp_path: Path) -> None:
    client = UsiClient([str(keisei_usi(tmp_path))], {"Run": "search:1"})
    try:
        settings = MatchSettings(games=2, seed=3, max_plies=60, control=SLOW)
        match = play_engines(EngineContestant("engine", client), ours("random"), settings)
    finally:
        client.end()
    assert match.players == ("engine", "random")
    first, second = (recorded_game(match, number) for number in range(2))
    assert first.actions[:4] == second.actions[:4]
    assert first.names == second.names[::-1]
    assert all(game.ending in ("max_plies", "no_legal_moves", "repetition") for game in match.games)


def test_ours_play_each_other_to_the_end() -> None:
    settings = MatchSettings(games=2, max_plies=200, control=TimeControl(time=60, byoyomi=0))
    match = play_engines(ours("search:2"), ours("random"), settings)
    assert match.tally().wins == 2
    for game in match.games:
        board = Board()
        for action in game.actions:
            board.push(board.move_from_action(action))
        assert board.is_game_over()


def test_a_match_has_pairs() -> None:
    with pytest.raises(ConfigError, match="games come in pairs"):
        play_engines(ours(), ours(), MatchSettings(3))


def test_clocks() -> None:
    clock = Clock(TimeControl(time=10, byoyomi=2))
    assert clock.words() == "btime 10000 wtime 10000 byoyomi 2000"
    assert clock.take(0, 4)
    assert clock.words() == "btime 6000 wtime 10000 byoyomi 2000"
    assert clock.take(0, 7)
    assert clock.left == [0, 10]
    assert clock.take(0, 2)
    assert not clock.take(0, 3)
    assert clock.take(1, 12)
    fischer = Clock(TimeControl(time=10, byoyomi=0, increment=1))
    assert fischer.words() == "btime 11000 wtime 11000 binc 1000 winc 1000"
    assert fischer.take(1, 5)
    assert fischer.left == [11, 7]
