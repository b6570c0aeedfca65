"""The player that looks ahead: mates, the same worth as a search without cuts, perfect small games."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Protocol, TypeAlias, cast

import numpy as np
import pytest

import keisei
from keisei.errors import ConfigError
from keisei.games.contract import Array, Game, IntArray
from keisei.games.randomness import KeyedRandom
from keisei.games.shogi import Board, Color, Outcome, Termination
from keisei.games.single import SingleGame
from keisei.native import core, load_core, usable_builds
from keisei.policies import NeuralPolicy, SearchPlayer, Situation, build_network, build_policy
from keisei.policies.players.search_player import TreeSearch
from keisei.policies.registry import check_player

Material: TypeAlias = Callable[[Board], int]

MATES_IN_ONE = [
    "4k4/9/4P4/9/9/9/9/9/4K4 b G 1",  # a drop
    "9/4k4/9/9/9/9/4p4/9/4K4 w g 1",  # white's drop
    "8k/9/7+P1/9/9/9/9/9/4K4 b GL 1",  # several, a lance among them; without check they win too
    "k8/9/KP7/9/9/9/9/9/9 b P 1",  # a pawn may mate by moving, not by dropping
    "k8/9/K1G6/9/9/9/9/9/9 b - 1",
    "lnsgk1snl/7b1/1p1pppgp1/p6r1/5r2p/2s3P2/PPPPP2PP/3SG1+b1L/LNG1K4 w Pn2p 36",
    "1n3k3/lsrgg2+B1/ppp1pp1p1/3p2p2/8B/4l1N2/PP3PPPL/4GK1R1/LNSG1S1N1 b SP4p 39",
    "+P1R3bn1/2+L1ksg1l/n3pp3/pp2g1spp/3P5/1P2P1PPP/P2+p1SGRL/9/+b1+n1K1GN1 b L3Ps 77",
    "1n4bnl/rsbkgg3/2pp2s2/1p2pp1pp/3SP4/3P1P2P/+l1P3PPL/L1G3R2/KNSG3N1 w 2P2p 66",
]
MATES_IN_TWO = [
    "1nsk1g1+R1/l1g2s2+P/pppp4p/4p1p2/3P1r3/3b2P2/PPP1PP2P/1BS1K3S/LNLG1G2L b N2Pn 39",
    "lng1+BS2g/rrs6/1p3p2p/p1pkp2p1/6p2/PP1pP2P1/2LPSPP1P/2SG3+nL/LN2K1GN1 b BP 51",
    "1n1k1b1nl/1rs4g1/lppg3pp/p2sppp2/6P2/PPPK3P1/2NGPPS1P/1B1S1R2L/L4G1N1 w Pp 54",
    "1n1k2gnl/l1sg1s2g/2p2p2p/p2pp1K1B/1r7/1pPPSPPPP/P7N/L5G1L/B1SrP4 w 3Pn 70",
    "1bsgk4/l7l/3pr4/2p1pp1s1/p3PN3/P1PPR1Pp1/L2GSP1+p1/3SK1NNp/1P1GB1N+l1 b G2Pp 99",
]
FEW_MOVES = [
    "4k4/4p4/9/9/9/9/9/4P4/4K4 b - 1",
    "4k4/2r1p4/9/9/9/5b3/9/4P2R1/4K4 w - 1",
    "k8/9/K1G6/9/9/9/9/9/9 w - 1",
    "8k/7pp/9/9/9/9/9/7R1/4K4 b - 1",
    "4k4/9/3+P5/4P4/9/9/4p4/9/3GK4 w p 1",
]


class Build(Protocol):
    def search(
        self, packed: Array, depth: int, keys: Array, actions: Array, scores: Array, nodes: Array
    ) -> int: ...


def choose(packed: bytes, depth: int, key: int = 1, build: Build = core) -> tuple[int, int]:
    """The action and the score of one packed position."""
    actions, scores = np.full(1, -1, np.int32), np.zeros(1, np.int32)
    rows, keys = np.frombuffer(packed, np.uint8)[None].copy(), np.array([key], np.uint64)
    assert build.search(rows, depth, keys, actions, scores, np.zeros(1, np.uint64)) == -1
    return int(actions[0]), int(scores[0])


def plain_negamax(board: Board, depth: int, material: Material, ply: int = 0) -> int:
    """The worth of a position by looking at everything."""
    moves = list(board.legal_moves)
    if not moves:
        return ply - core.MATE
    if depth == 0:
        return material(board) if board.turn is Color.BLACK else -material(board)
    best = -core.MATE
    for move in moves:
        board.push(move)
        best = max(best, -plain_negamax(board, depth - 1, material, ply + 1))
        board.pop()
    return best


def worths(board: Board, depth: int, material: Material) -> dict[int, int]:
    """What each action is worth."""
    found = {}
    for move in list(board.legal_moves):
        action = board.action(move)
        board.push(move)
        found[action] = -plain_negamax(board, depth - 1, material, 1)
        board.pop()
    return found


@pytest.mark.parametrize("sfen", MATES_IN_ONE)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_mate_in_one_is_played(sfen: str, depth: int) -> None:
    board = Board(sfen)
    action, score = choose(board.pack(), depth)
    mover = board.turn
    board.push(board.move_from_action(action))
    assert board.outcome() == Outcome(Termination.NO_LEGAL_MOVES, mover)
    assert score == core.MATE - 1


@pytest.mark.parametrize("sfen", MATES_IN_TWO)
def test_a_mate_in_two_is_found_with_three_plies_and_not_with_two(sfen: str) -> None:
    board = Board(sfen)
    assert choose(board.pack(), 2)[1] < core.MATE // 2
    action, score = choose(board.pack(), 3)
    assert score == core.MATE - 3
    board.push(board.move_from_action(action))
    assert board.legal_moves
    for reply in list(board.legal_moves):
        board.push(reply)
        last = board.move_from_action(choose(board.pack(), 1)[0])
        board.push(last)
        assert board.is_game_over()
        board.pop()
        board.pop()


@pytest.mark.parametrize(("sfen", "depth"), [(sfen, depth) for sfen in FEW_MOVES for depth in (1, 2, 3)])
def test_cuts_change_nothing_where_moves_are_few(sfen: str, depth: int, material: Material) -> None:
    board = Board(sfen)
    expected = worths(board, depth, material)
    best = {action for action, worth in expected.items() if worth == max(expected.values())}
    chosen = set()
    for key in range(60):
        action, score = choose(board.pack(), depth, key)
        assert score == max(expected.values())
        chosen.add(action)
    assert chosen <= best
    assert len(chosen) >= min(len(best), 3)  # lots are drawn among all of them


def test_cuts_change_nothing_in_games(material: Material) -> None:
    game = keisei.make_game("shogi", batch=2, seed=8)
    for ply in range(60):
        if ply % 6 == 0:
            for packed in game.pack():
                depth = 2 if ply == 30 else 1
                expected = worths(Board.from_packed(packed.tobytes()), depth, material)
                action, score = choose(packed.tobytes(), depth)
                assert expected[action] == score == max(expected.values())
        game.step(game.random_actions())


def test_moves_of_equal_worth_are_drawn_alike() -> None:
    board = Board("4k4/9/9/9/9/9/9/9/4K4 b - 1")
    counts = np.unique([choose(board.pack(), 2, key)[0] for key in range(1000)], return_counts=True)[1]
    assert len(counts) == 5
    assert counts.min() > 140


def test_both_builds_choose_alike() -> None:
    game = keisei.make_game("shogi", batch=16, seed=5)
    builds = [cast(Build, load_core(name)) for name in usable_builds()]
    for _ in range(30):
        game.step(game.random_actions())
    for key, packed in enumerate(game.pack()):
        assert len({choose(packed.tobytes(), 2, key, build) for build in builds}) == 1


@pytest.mark.parametrize("depth", [1, 2])
def test_no_illegal_move_in_hundreds_of_positions(depth: int) -> None:
    game = keisei.make_game("shogi", batch=32, seed=depth)
    player, situation = SearchPlayer(depth), Situation(game, 3, 0)
    for ply in range(60):
        actions = player.act(situation).actions
        assert game.legal()[np.arange(32), actions].all()
        game.step(actions if ply % 3 == 0 else game.random_actions())
        situation.advance()


def test_rows_without_a_choice_are_named() -> None:
    mated = Board("4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1").pack()
    rows = np.frombuffer(Board().pack() + mated + bytes(64), np.uint8).reshape(3, 64)
    outputs = np.zeros(3, np.int32), np.zeros(3, np.int32), np.zeros(3, np.uint64)
    keys = np.zeros(3, np.uint64)
    assert core.search(rows, 1, keys, *outputs) == 1
    assert core.grab(rows, keys, *outputs) == 1
    assert core.search(rows[2:].copy(), 1, keys[:1], *(out[:1] for out in outputs)) == 0
    for depth in (0, 33):
        with pytest.raises(ValueError, match="depth"):
            core.search(rows, depth, keys, *outputs)
    with pytest.raises(ValueError, match="scores has 2 elements"):
        core.search(rows, 1, keys, outputs[0], outputs[1][:2], outputs[2])


@pytest.mark.parametrize("name", ["shogi", "connect-four", "tictactoe"])
def test_a_decision_depends_on_its_keys_alone(name: str) -> None:
    def position(first_game: int, batch: int) -> Game:
        game = keisei.make_game(name, batch=batch, seed=9, first_game=first_game)
        for _ in range(3):
            game.step(game.random_actions())
        return game

    used, whole = SearchPlayer(2), position(0, 12)
    used.act(Situation(position(50, 4), 1, 50))
    actions = used.act(Situation(whole, 7, 0)).actions
    fresh = SearchPlayer(2)
    np.testing.assert_array_equal(fresh.act(Situation(position(8, 4), 7, 8)).actions, actions[8:])
    selected: IntArray = np.array([1, 4, 11], np.int32)
    np.testing.assert_array_equal(fresh.act(Situation(whole, 7, 0), selected).actions, actions[selected])
    assert len(fresh.act(Situation(whole, 7, 0), selected[:0]).actions) == 0
    others = [fresh.act(Situation(whole, seed, 0)).actions for seed in range(5)]
    assert any((other != actions).any() for other in others)


def best_worth(game: SingleGame, depth: int) -> float:
    """The worth of a small game's position to the seat to move, by looking at everything."""
    best = -np.inf
    for action in game.legal(game.to_move):
        after = game.copy()
        after.play(action, KeyedRandom(0, 0, 0))
        outcome = after.outcome()
        if outcome is not None:
            best = max(best, outcome.scores[game.to_move] * (1 + depth * TreeSearch.HASTE))
        else:
            best = max(best, 0.0 if depth == 1 else -best_worth(after, depth - 1))
    return best


@pytest.mark.parametrize(("rows", "connect", "depth"), list(product([3, 4], [3, 4], [1, 2, 4])))
def test_cuts_and_memory_change_nothing_in_other_games(rows: int, connect: int, depth: int) -> None:
    game = keisei.make_game("connect-four", batch=6, seed=3, rows=rows, columns=4, connect=connect)
    tree = TreeSearch()
    for _ in range(6):
        for index in range(6):
            single = game.peek(index)  # type: ignore[attr-defined]
            assert tree.value(single, depth) == best_worth(single, depth)
        game.step(game.random_actions())


def outcomes(first: str, second: str, games: int) -> list[float]:
    """Scores of the first player in tic-tac-toe, from both seats."""
    scores: list[float] = []
    for seat in (0, 1):
        game = keisei.make_game("tictactoe", batch=games // 2, seed=11 + seat)
        players = [build_policy(name, game.spec) for name in (first, second)]
        situation, open_games = Situation(game, 5, 0), np.ones(games // 2, np.bool_)
        for ply in range(9):
            step = game.step(players[(ply + seat) % 2].act(situation).actions)
            scores += step.scores[step.done & open_games, seat].tolist()
            open_games &= ~step.done
            situation.advance()
            if not (game.rows().ply[open_games] == ply + 1).all() or not open_games.any():
                break
        assert not open_games.any()
    return scores


@pytest.mark.parametrize("opponent", ["random", "greedy", "search:1", "search:3", "search:9"])
def test_perfect_tic_tac_toe_never_loses(opponent: str) -> None:
    scores = outcomes("search:9", opponent, 100)
    assert len(scores) == 100
    assert min(scores) >= 0
    assert (max(scores) > 0) == (opponent != "search:9")


def test_a_perfect_player_never_loses_to_a_network() -> None:
    game = keisei.make_game("tictactoe", batch=60, seed=1)
    network = NeuralPolicy(build_network({"hidden_dim": 16}, game.spec, seed=1), game.spec)
    situation, perfect = Situation(game, 2, 0), SearchPlayer(9)
    finished = 0
    for _ in range(30):
        rows = game.rows()
        mine = np.flatnonzero(rows.seat == rows.game % 2).astype(np.int32)
        actions = network.act(situation).actions
        actions[mine] = perfect.act(situation, mine).actions
        step = game.step(actions)
        assert (step.scores[np.arange(60), np.arange(60) % 2] >= 0).all()
        finished += int(step.done.sum())
        situation.advance()
    assert finished > 100


def test_games_of_other_libraries_are_searched() -> None:
    ours, theirs = keisei.make_game("tictactoe", batch=4), keisei.make_game("openspiel:tic_tac_toe", batch=4)
    for action in (0, 4, 8, 1):
        ours.step(np.full(4, action))
        theirs.step(np.full(4, action))
    decisions = [SearchPlayer(9).act(Situation(game, 7, 0)).actions for game in (ours, theirs)]
    np.testing.assert_array_equal(*decisions)
    assert set(decisions[0].tolist()) == {7}


def test_a_game_that_is_about_to_be_cut_off_is_drawn() -> None:
    """With one ply left only a win now counts, and there is none: all actions are equal."""
    game = keisei.make_game("tictactoe", batch=200, max_plies=4)
    for action in (0, 4, 8):
        game.step(np.full(200, action))
    actions = SearchPlayer(9).act(Situation(game, 7, 0)).actions
    assert len(set(actions.tolist())) == 6


def test_searches_by_name() -> None:
    shogi, small = keisei.make_game("shogi").spec, keisei.make_game("tictactoe").spec
    shaped = keisei.make_game("shogi", ply_cost=0.01).spec
    for spec in (shogi, small, shaped):
        player = build_policy("search:3", spec)
        assert isinstance(player, SearchPlayer)
        assert (player.depth, player.name) == (3, "search:3")
    for name in (
        "search",
        "search:",
        "search:0",
        "search:33",
        "search:2.5",
        "search:-1",
        "search:two",
        "search:²",
    ):
        with pytest.raises(ConfigError, match=r"search:DEPTH looks a whole number of plies ahead, 1 … 32"):
            build_policy(name, shogi)
    with pytest.raises(ConfigError, match="leave out temperature and epsilon"):
        build_policy({"policy": "search:2", "epsilon": 0.1}, shogi)
    with pytest.raises(ConfigError, match="one wins what the other loses"):
        check_player("search:2", keisei.make_game("dummy"))
    with pytest.raises(ConfigError, match="did you mean 'greedy'"):
        build_policy("greed", shogi)
    with pytest.raises(ConfigError, match="depth must be a whole number"):
        SearchPlayer(0)
