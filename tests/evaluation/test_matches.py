"""Matches: who sat where, which games count, which openings they had, and who is stronger."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from runs_for_tests import make_run

import keisei
from keisei.errors import ConfigError, RunError
from keisei.evaluation import (
    MatchResult,
    PlayedGame,
    Player,
    Tally,
    as_player,
    play_match,
    recorded_game,
    score_interval,
    write_record,
)
from keisei.evaluation.matches import usual_opening
from keisei.games.contract import Array, BoolArray, FloatArray, IntArray, ObservationSpec
from keisei.games.randomness import KeyedRandom
from keisei.games.shogi import Board, csa, kif, record_of
from keisei.games.single import Outcome, SingleGame
from keisei.policies import Decision, NeuralPolicy, RandomPolicy, Situation
from keisei.policies.players.finding import RUNS


class Long(SingleGame):
    """A game with two actions: 0 goes on, 1 ends it in favour of whoever plays it. Cut off after 12 plies."""

    name = "long"
    num_actions = 2
    observation = ObservationSpec((1,), np.dtype(np.uint8))
    zero_sum = True
    max_plies = 12

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move, self.over = 0, False

    def legal(self, seat: int) -> list[int]:
        return [0, 1]

    def play(self, action: int, rng: KeyedRandom) -> None:
        self.over = action == 1
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        return np.zeros(1, np.uint8)

    def outcome(self) -> Outcome | None:
        return Outcome.win(1 - self.to_move) if self.over else None


class Scripted:
    """Ends the game at a ply that the number of the game gives, or never; and keeps a note of what it was asked."""

    def __init__(self, ends_at: dict[int, int]) -> None:
        self.ends_at = ends_at
        self.asked: list[tuple[int, int, int, int]] = []

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        assert selected is not None
        rows = situation.rows
        games = rows.game[selected] + situation.first_game
        keys = zip(games, rows.episode[selected], rows.ply[selected], rows.seat[selected], strict=True)
        self.asked += [tuple(map(int, key)) for key in keys]  # type: ignore[misc]
        actions = [
            int(self.ends_at.get(int(g), 99) <= p) for g, p in zip(games, rows.ply[selected], strict=True)
        ]
        empty = np.zeros(len(actions), np.float32)
        return Decision(np.array(actions, np.int32), empty, empty)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return np.zeros(len(observations), np.float32)


def results(match: MatchResult) -> list[tuple[int, int, int, int, bool]]:
    return [(game.round, game.seat, result(game), game.plies, game.truncated) for game in match.games]


def result(game: PlayedGame) -> int:
    """1 for a win of the first player, 0 for a draw, -1 for a loss."""
    return game.tally.wins - game.tally.losses


@pytest.mark.parametrize("batch", [8, 3, 1])
def test_every_game_counts_once_with_the_right_winner(batch: int) -> None:
    """Game 0 is won at ply 0 by the first player, who begins it; and so on. Short games restart and are not
    counted again; games that are cut off are draws."""
    first, second = Scripted({0: 0, 1: 5, 4: 4}), Scripted({2: 3, 3: 2})
    match = play_match(Long, None, Player("a", first), Player("b", second), 8, opening_plies=0, batch=batch)
    assert results(match) == [
        (0, 0, 1, 1, False),
        (0, 1, 1, 6, False),
        (1, 0, -1, 4, False),
        (1, 1, -1, 3, False),
        (2, 0, 1, 5, False),
        (2, 1, 0, 12, True),
        (3, 0, 0, 12, True),
        (3, 1, 0, 12, True),
    ]
    assert match.tally() == Tally(3, 3, 2)
    assert match.tally(0) == Tally(2, 1, 1)
    assert match.tally(1) == Tally(1, 2, 1)
    assert match.endings == {"finished": 5, "truncated": 3}
    assert match.lengths == (1, 6, 4, 3, 5, 12, 12, 12)
    assert match.mean_length == np.mean(match.lengths)
    for player, own_seat in ((first, 0), (second, 1)):
        assert all(episode == 0 for _, episode, _, _ in player.asked)  # nobody decides after the end
        assert all(seat == (game + own_seat) % 2 for game, _, _, seat in player.asked)
        assert len(player.asked) == len(set(player.asked))


def test_pairs_have_one_opening_and_openings_differ() -> None:
    match = play_match("shogi", {"max_plies": 12}, "random", "random", 40, 3, opening_plies=4, record=True)
    openings = [game.actions[:4] for game in match.games]
    for number, (game, opening) in enumerate(zip(match.games, openings, strict=True)):
        assert (game.round, game.seat) == divmod(number, 2)
        assert opening == openings[2 * game.round]
        assert len(game.actions) == game.plies
    assert len(set(openings)) == 20
    assert all(a.actions != b.actions for a, b in pairwise(match.games))


def test_openings_are_drawn_alike_from_all_legal_actions() -> None:
    match = play_match(
        "tictactoe", None, "random", "random", 3600, 5, opening_plies=1, record=True, batch=900
    )
    counts = Counter(game.actions[0] for game in match.games[::2])
    assert sorted(counts) == list(range(9))
    assert min(counts.values()) > 150
    assert max(counts.values()) < 255


def test_a_game_that_ends_in_its_opening_is_played_anew() -> None:
    match = play_match(Long, {"max_plies": 30}, "random", "random", 400, 2, opening_plies=4, record=True)
    assert min(match.lengths) == 5
    assert all(len(game.actions) == game.plies and not any(game.actions[:4]) for game in match.games)
    with pytest.raises(
        ConfigError, match="end within the 9 random plies of their opening; lower opening_plies"
    ):
        play_match("tictactoe", None, "random", "random", 2, opening_plies=9)


def test_the_usual_opening_decides_no_short_game() -> None:
    assert [usual_opening(name, {}) for name in ("tictactoe", "connect-four", "shogi")] == [1, 4, 4]
    assert usual_opening(Long, {}) == 0
    assert play_match("tictactoe", None, "search:9", "random", 40).tally().losses == 0


def test_the_same_arguments_give_the_same_games() -> None:
    def match(seed: int, batch: int = 256) -> MatchResult:
        return play_match("tictactoe", None, "greedy", "random", 30, seed, batch=batch, record=True)

    assert match(1) == match(1)
    assert match(1) == match(1, batch=7)
    assert match(1).games != match(2).games


@pytest.mark.parametrize(
    ("game", "stronger", "weaker", "games", "least"),
    [
        ("shogi", "greedy", "random", 40, 0.85),
        ("shogi", "search:1", "random", 40, 0.9),
        ("shogi", "search:2", "greedy", 24, 0.85),
        ("connect-four", "search:2", "random", 40, 0.8),
    ],
)
def test_players_are_as_strong_as_their_names(
    game: str, stronger: str, weaker: str, games: int, least: float
) -> None:
    tally = play_match(game, None, stronger, weaker, games, 1).tally()
    assert tally.games == games
    assert score_interval(tally).low > 0.7
    assert tally.score > least


def test_a_policy_against_itself_is_even() -> None:
    tally = play_match("connect-four", None, RandomPolicy(), RandomPolicy(), 1000, 4).tally()
    interval = score_interval(tally, 0.999)
    assert interval.low < 0.5 < interval.high


def test_players_by_text_and_policy(tmp_path: Path) -> None:
    game = keisei.make_game("tictactoe")
    policy = RandomPolicy()
    run = make_run(tmp_path, "a", (5,))
    assert as_player("search:2", game).name == "search:2"
    assert as_player(policy, game) == Player("RandomPolicy", policy)
    for text, root in (("a@5", tmp_path), (f"{run.path}@latest", RUNS)):
        player = as_player(text, game, root)
        assert player.name == text
        assert isinstance(player.policy, NeuralPolicy)
    assert play_match("tictactoe", None, "a@5", "greedy", 4, root=tmp_path).players == ("a@5", "greedy")
    with pytest.raises(RunError, match=r"no run is named 'b'.*Runs in .*: a\..*search:DEPTH"):
        as_player("b", game, tmp_path)
    with pytest.raises(ConfigError, match="tictactoe has no heuristic of its own"):
        as_player("heuristic", game)
    with pytest.raises(ConfigError, match="search:2 searches games without chance"):
        as_player("search:2", keisei.make_game("treasurehunt", turns="one-by-one"))


def test_records_of_shogi_games() -> None:
    match = play_match("shogi", {"max_plies": 200}, "search:1", "random", 4, 6, record=True)
    for number, game in enumerate(match.games):
        record = record_of(recorded_game(match, number))
        assert len(record.moves) == game.plies
        assert record.outcome is not None
        assert record.outcome.termination.value == game.ending
        black_won = (result(game) > 0) == (game.seat == 0)
        assert (record.outcome.winner is None) == (result(game) == 0)
        assert record.outcome.winner is None or (record.outcome.winner.name == "BLACK") == black_won
        assert record.names[game.seat] == "search:1"
        assert csa.loads(csa.dumps(record)).moves == record.moves
        assert kif.loads(kif.dumps(record)).moves == record.moves
    assert {game.ending for game in match.games} == {"no_legal_moves"}


def test_records_know_the_start_and_the_cut() -> None:
    start = "4k4/9/9/9/9/9/PPPPPPPPP/9/4K4 w - 1"
    match = play_match("shogi", {"start": start, "max_plies": 9}, "random", "greedy", 2, record=True)
    record = record_of(recorded_game(match, 1))
    assert record.start == Board(start).sfen()
    assert record.outcome is not None
    assert (record.outcome.termination.value, record.outcome.winner) == ("max_plies", None)
    silent = play_match("shogi", {"max_plies": 9}, "random", "greedy", 2)
    with pytest.raises(ConfigError, match="record=True"):
        recorded_game(silent, 0)


def test_records_are_written_in_the_format_of_the_game(tmp_path: Path) -> None:
    match = play_match("shogi", {"max_plies": 9}, "random", "greedy", 2, record=True)
    path = write_record(match, 1, tmp_path / "of.1st")
    assert path == tmp_path / "of.1st.kif"
    assert kif.load(path) == record_of(recorded_game(match, 1))
    assert kif.load(path).names == ("greedy", "random")
    other = play_match("tictactoe", None, "random", "greedy", 2, record=True)
    assert recorded_game(other, 0).actions == other.games[0].actions
    with pytest.raises(ConfigError, match="tictactoe has no format for records"):
        write_record(other, 0, tmp_path / "none")
    assert [file.name for file in tmp_path.iterdir()] == ["of.1st.kif"]


def test_what_cannot_be_played() -> None:
    with pytest.raises(ConfigError, match=r"games come in pairs.*play 8, not 7"):
        play_match("tictactoe", None, "random", "random", 7)
    with pytest.raises(ConfigError, match="games must be a whole number in 2"):
        play_match("tictactoe", None, "random", "random", 0)
    with pytest.raises(ConfigError, match="opening_plies must be a whole number"):
        play_match("tictactoe", None, "random", "random", 2, opening_plies=-1)
