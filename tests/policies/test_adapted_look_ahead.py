"""Players look ahead in games of other libraries: on copies, or by playing the actions again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv
from pettingzoo.utils.agent_selector import AgentSelector

import keisei
from keisei.errors import ConfigError, GameError, KeiseiError
from keisei.evaluation import play_match
from keisei.games.adapters.from_pettingzoo import PettingZooGame, pettingzoo_game
from keisei.games.contract import Game
from keisei.games.randomness import KeyedRandom
from keisei.games.tictactoe import TicTacToe
from keisei.policies import GreedyPlayer, SearchPlayer, Situation
from keisei.policies.registry import check_player, players_of


class Nim(AECEnv):  # type: ignore[misc]
    """Take 1 to 3 of a heap; who takes the last one wins. A heap that is ``dealt`` is drawn by reset(seed)."""

    metadata = {"name": "nim", "render_modes": []}  # noqa: RUF012

    def __init__(self, heap: int = 7, dealt: bool = False) -> None:
        super().__init__()
        self.size, self.dealt = heap, dealt
        self.possible_agents = ["a", "b"]
        box = spaces.Dict(
            {"observation": spaces.Box(0, 99, (1,), np.int8), "action_mask": spaces.Box(0, 1, (3,), np.int8)}
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, box)
        self.action_spaces = dict.fromkeys(self.possible_agents, spaces.Discrete(3))

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.heap = int(self.rng.integers(4, 9)) if self.dealt else self.size
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.turns = AgentSelector(self.agents)
        self.agent_selection = self.turns.reset()

    def observe(self, agent: str) -> Any:
        mask = np.array([number <= self.heap for number in (1, 2, 3)], np.int8)
        return {"observation": np.array([self.heap], np.int8), "action_mask": mask}

    def step(self, action: int | None) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.heap -= 1 + int(action or 0)
        mover, self.agent_selection = self.agent_selection, self.turns.next()
        if self.heap == 0:
            self.rewards = {mover: 1.0, self.agent_selection: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)


class Handled(Nim):
    """Holds on to something that cannot be copied, as windows and libraries are."""

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed, options)
        self.handle = (number for number in range(3))


class Fresh(EzPickle):
    """A heap whose copy is a new one."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Same(Fresh):
    """A heap whose copy is the heap itself."""

    def __deepcopy__(self, memo: Any) -> Same:
        return self


class Nested(Nim):
    """Its heap is an object of its own."""

    kind = Fresh

    @property
    def heap(self) -> int:
        return self._heap.size

    @heap.setter
    def heap(self, size: int) -> None:
        self._heap.size = size

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self._heap = self.kind(self.size)
        super().reset(seed, options)


class Entangled(Nested):
    """A move in a copy changes the game."""

    kind = Same


class Moody(Handled):
    """Cannot be copied, and is not the same twice."""

    moods = 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed, options)
        Moody.moods += 1
        self.heap = 5 + Moody.moods % 3


class Tossing(Nim):
    """Taking 3 throws a coin: heads wins at once, tails loses."""

    def step(self, action: int | None) -> None:
        if action == 2 and not self.terminations[self.agent_selection]:
            mover, other = self.agent_selection, self.turns.next()
            sign = 1.0 if self.rng.integers(2) else -1.0
            self.rewards = {mover: sign, other: -sign}
            self.terminations = dict.fromkeys(self.agents, True)
            return
        super().step(action)


def game_of(env: type[Nim], batch: int = 8, seed: int = 1, **options: Any) -> Game:
    return pettingzoo_game(env, batch=batch, seed=seed, zero_sum=True, **options)


def actions_of(game: Game, player: Any, seed: int = 7) -> list[int]:
    actions: list[int] = player.act(Situation(game, seed, 0)).actions.tolist()
    return actions


def moved(game: Game, plies: int) -> Game:
    for _ in range(plies):
        game.step(game.random_actions())
    return game


ADAPTED = [
    "pettingzoo:tictactoe_v3",
    "pettingzoo:connect_four_v3",
    "pettingzoo:leduc_holdem_v4",
    "openspiel:tic_tac_toe",
    "openspiel:connect_four",
    "openspiel:leduc_poker",
]


@pytest.mark.parametrize("name", ADAPTED)
@pytest.mark.parametrize("player", ["greedy", "search:2"])
def test_matches_are_played_and_games_stay_as_they_are(name: str, player: str) -> None:
    game = moved(keisei.make_game(name, batch=3, seed=2), 2)
    before, seen = game.save(), game.observe()
    policy = check_player(player, keisei.make_game(name))
    assert policy is not None
    actions = policy.act(Situation(game, 3, 0)).actions
    assert game.legal()[np.arange(3), actions].all()
    assert game.save() == before
    np.testing.assert_array_equal(game.observe(), seen)
    game.step(actions)
    match = play_match(name, None, player, "random", 4, opening_plies=1)
    assert match.tally().games == 4


@pytest.mark.parametrize(
    ("ours", "theirs", "number"),
    [
        # PettingZoo numbers the squares of tic-tac-toe by columns.
        ("tictactoe", "pettingzoo:tictactoe_v3", lambda action: 3 * (action % 3) + action // 3),
        ("connect-four", "pettingzoo:connect_four_v3", lambda action: action),
    ],
)
def test_decisions_are_as_good_as_in_our_own_game(ours: str, theirs: str, number: Any) -> None:
    """The same positions: where only one action is best in ours, it is chosen in theirs."""
    mine, yours = keisei.make_game(ours, batch=6, seed=4), keisei.make_game(theirs, batch=6, seed=4)
    settled = 0
    for ply in range(13):
        for player in (SearchPlayer(2), GreedyPlayer()) if ply > 3 else ():
            drawn = [actions_of(mine, player, seed) for seed in range(6)]
            theirs_chose = [number(action) for action in actions_of(yours, player)]
            for choices, action in zip(map(set, zip(*drawn, strict=True)), theirs_chose, strict=True):
                if len(choices) == 1:
                    settled += 1
                    assert choices == {action}
        actions = mine.random_actions()
        mine.step(actions)
        yours.step(np.array([number(action) for action in actions.tolist()]))
    assert settled > 5


def test_a_perfect_player_of_their_game_never_loses() -> None:
    tally = play_match("pettingzoo:tictactoe_v3", None, "search:5", "random", 6, opening_plies=4).tally()
    assert tally.losses <= tally.wins


@pytest.mark.parametrize("env", [Nim, Handled, Entangled, Nested])
def test_environments_of_all_kinds_are_searched(env: type[Nim]) -> None:
    """In Nim a heap of 4 is lost, and search finds what leaves one."""
    for heap, action in ((5, 0), (6, 1), (7, 2)):
        game = game_of(env, heap=heap)
        assert set(actions_of(game, SearchPlayer(8))) == {action}
        game.step(np.full(8, action))
        assert set(game.observe()[:, 0].tolist()) == {4}


@pytest.mark.parametrize("env", [Nim, Handled, Entangled, Nested])
def test_copies_are_equal_and_leave_the_game_alone(env: type[Nim]) -> None:
    game = moved(game_of(env, dealt=True), 1)
    for index in range(8):
        copied = game.peek(index)  # type: ignore[attr-defined]
        heap = int(game.observe()[index, 0])
        assert copied.observe(copied.to_move)[0] == heap
        copied.play(0, KeyedRandom(0, 0, 0))
        again = copied.copy()
        assert again.observe(again.to_move)[0] == heap - 1
        assert game.peek(index).observe(0)[0] == heap  # type: ignore[attr-defined]


def test_what_can_be_copied_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaying takes longer the longer a game lasts."""
    copied = [game_of(Nim), *map(keisei.make_game, ADAPTED[:3])]
    replayed = [game_of(env) for env in (Handled, Nested, Entangled)]
    singles = [game.peek(0) for game in (*copied, *replayed)]  # type: ignore[attr-defined]

    def refuse(self: PettingZooGame) -> PettingZooGame:
        raise AssertionError("replayed")

    monkeypatch.setattr(PettingZooGame, "_replayed", refuse)
    for single in singles[: len(copied)]:
        single.copy()
    for single in singles[len(copied) :]:
        with pytest.raises(AssertionError, match="replayed"):
            single.copy()


def test_a_look_ahead_does_not_see_the_coin() -> None:
    game = game_of(Tossing, batch=60, heap=9)
    won = tossed = 0
    for _ in range(8):
        actions = np.array(actions_of(game, GreedyPlayer()))
        seat = game.rows().seat
        step = game.step(actions)
        coins = (actions == 2) & step.done
        tossed += int(coins.sum())
        won += int((step.scores[np.arange(60), seat][coins] > 0).sum())
    assert tossed > 60
    assert 0.3 < won / tossed < 0.7


def test_what_can_neither_be_copied_nor_repeated_is_refused() -> None:
    with pytest.raises(GameError, match=r"pettingzoo:nim cannot be looked ahead in: .*reset\(seed\)"):
        actions_of(game_of(Moody), GreedyPlayer())
    with pytest.raises(KeiseiError, match="cannot be looked ahead in"):
        check_player("search:1", game_of(Moody, batch=1))
    assert players_of(game_of(Moody, batch=1)) == ["random"]
    assert players_of(game_of(Handled, batch=1)) == ["random", "greedy", "search:DEPTH"]


def test_a_copy_that_shares_its_state_is_refused() -> None:
    class Shared(TicTacToe):
        name = "shared"

        def copy(self) -> Shared:
            return self

    with pytest.raises(ConfigError, match=r"greedy cannot look ahead in shared: its copy\(\) shares state"):
        check_player("greedy", keisei.make_game(Shared))


def test_their_environments_are_not_reset_by_a_copy() -> None:
    """What copy.deepcopy gives of an EzPickle: the reason why copies are made by hand."""
    from copy import deepcopy

    env = pettingzoo.make("aec", "classic/tictactoe-v3")
    env.reset(seed=1)
    env.step(4)
    assert deepcopy(env.unwrapped).board.squares != env.unwrapped.board.squares
