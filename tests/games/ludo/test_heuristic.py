"""The heuristic player of Ludo: what it prefers, and how well it plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ludo_for_tests import RULES, dangers, is_safe, victim, walk

from keisei import make_game
from keisei.errors import ConfigError, PolicyError
from keisei.evaluation import play_match
from keisei.games.ludo import LudoBoard
from keisei.games.ludo.game import LudoGame
from keisei.games.randomness import keyed_word
from keisei.games.tictactoe import TicTacToe
from keisei.policies import Situation, build_policy
from keisei.policies.registry import check_player


def worth(board: LudoBoard, action: int) -> int:
    """What docs/games/ludo.md says of the heuristic, in sixths of a square."""
    seat, tokens = board.to_move, board.tokens
    before = tokens[seat][action % 4]
    after = walk(tokens, seat, action % 4, action // 4 + 1, board.blocks)
    assert after is not None
    sum_of_parts = 6 * (after - before)
    sum_of_parts += dangers(tokens, seat, before) * (before + 10) - dangers(tokens, seat, after) * (
        after + 10
    )
    sum_of_parts += 120 * (after == 56) + 120 * (before == -1)
    if before >= 0:
        sum_of_parts += before // 3 + 18 * is_safe(tokens, seat, after) - 18 * is_safe(tokens, seat, before)
    lost = victim(tokens, seat, after)
    if lost is not None:
        sum_of_parts += 120 + 6 * tokens[lost[0]][lost[1]]
    return sum_of_parts


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_it_plays_the_action_that_is_worth_the_most(rules: dict[str, Any]) -> None:
    game = make_game("ludo", batch=4, seed=5, **rules)
    assert isinstance(game, LudoGame)
    keys = np.arange(4, dtype=np.uint64) + np.uint64(2**63)
    for _ in range(150):
        actions = game.heuristic_actions(None, keys)
        for index in range(4):
            board = game.board(index)
            lots = {a: (worth(board, a), keyed_word(int(keys[index]), a)) for a in board.legal_actions()}
            assert actions[index] == max(lots, key=lots.__getitem__)
        game.step(actions if game.rows().ply[0] % 2 else game.random_actions())


def test_it_wins_at_least_nine_games_in_ten_against_random() -> None:
    match = play_match("ludo", None, "heuristic", "random", games=2000, seed=1)
    assert match.endings == {"all home": 2000}
    assert match.tally().score >= 0.9


def test_it_plays_by_name_and_the_same_for_some_rows() -> None:
    game = make_game("ludo", batch=6, seed=1, players=4)
    player = build_policy("heuristic", game.spec)
    situation = Situation(game, 7, 0)
    decision = player.act(situation)
    some = np.array([1, 4], np.int32)
    np.testing.assert_array_equal(player.act(situation, some).actions, decision.actions[some])
    assert not decision.log_probs.any()
    assert player.evaluate(game.observe(), game.legal()).shape == (6,)
    with pytest.raises(ConfigError, match="leave out temperature and epsilon"):
        build_policy({"policy": "heuristic", "epsilon": 0.1}, game.spec)


def test_games_without_a_heuristic_say_so() -> None:
    game = make_game("tictactoe")
    with pytest.raises(ConfigError, match="tictactoe has no heuristic of its own"):
        check_player("heuristic", game)
    player = build_policy("heuristic", make_game("ludo").spec)
    with pytest.raises(PolicyError, match="tictactoe has no heuristic of its own"):
        player.act(Situation(game, 1, 0))


@pytest.mark.parametrize("players", [2, 4])
def test_players_that_search_refuse_dice(players: int) -> None:
    game = make_game("ludo", players=players)
    with pytest.raises(
        ConfigError, match=r"search:2 searches games without chance, and ludo has dice.*'heuristic'"
    ):
        check_player("search:2", game)


def test_a_single_game_with_chance_is_not_searched_either() -> None:
    class Dicey(TicTacToe):
        chance = True

    with pytest.raises(ConfigError, match=r"tictactoe has dice or the like; 'random' plays it"):
        check_player("search:2", make_game(Dicey))
