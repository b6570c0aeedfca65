"""What arrives is what was played: slabs are held against fresh games that play the same actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from games_for_tests import RELAY, manager_of, nudge

from keisei.experience.slab import Slab
from keisei.games.contract import Game, Rows, Step
from keisei.parallel import CollectedSlab, ParallelManager
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.seating import CHANCE

GAMES = ["tictactoe", "connect-four", RELAY, "ludo", "shogi"]


def slots_of(slab: Slab, rows: Rows) -> np.ndarray[Any, Any]:
    return rows.game * slab.shape.seats + rows.seat if slab.shape.simultaneous else rows.game


def check_step(item: CollectedSlab, step: int, game: Game) -> Step:
    """One step of a slab against the same step of a fresh game."""
    slab, rows = item.slab, game.rows()
    slots = slots_of(slab, rows)
    acting = np.zeros(slab.shape.slots, bool)
    acting[slots] = True
    assert (slab.acting[step] == acting).all()
    for name, expected in [("seat", rows.seat), ("episode", rows.episode), ("ply", rows.ply)]:
        assert (getattr(slab, name)[step, slots] == expected).all(), name
    assert (slab.packed[step, slots] == game.pack()).all()
    legal = game.unpack(slab.packed[step, slots])[1]
    actions = slab.action[step, slots]
    assert legal[np.arange(len(slots)), actions].all()
    outcome = game.step(actions)
    assert (slab.reward[step] == outcome.rewards).all()
    assert (slab.terminated[step] == outcome.terminated).all()
    assert (slab.truncated[step] == outcome.truncated).all()
    assert (slab.ending[step] == outcome.ending).all()
    assert (slab.score[step, outcome.done] == outcome.scores[outcome.done]).all()
    return outcome


def check_finals(slab: Slab, step: int, outcome: Step) -> int:
    """The last positions of games that were cut off; gives how many."""
    final = outcome.final
    cut = outcome.truncated[final.game]
    slots = slots_of(slab, Rows(final.game[cut], final.seat[cut], final.game[cut], final.game[cut]))
    assert (slab.final_packed[step, slots] == final.packed[cut]).all()
    assert (slab.final_seat[step, slots] == final.seat[cut]).all()
    unwritten = slab.finished("final_seat")[step].copy()
    unwritten[slots] = False
    assert (slab.final_seat[step, unwritten] == -1).all()
    return len(slots)


@pytest.mark.parametrize("model", [None, {"hidden_dim": 8}], ids=["random", "network"])
@pytest.mark.parametrize("game", GAMES)
def test_a_fresh_game_plays_the_same(game: str, model: dict[str, Any] | None) -> None:
    env = {"max_moves": 9} if game in ("shogi", "connect-four", "ludo") else {}
    cut, finished, fresh = 0, 0, {}
    with manager_of(game, model=model, env=env, seed=5) as manager:
        for _ in range(4):
            for item in manager.collect_experiences():
                if item.first_game not in fresh:
                    fresh[item.first_game] = manager.env.make(
                        batch=item.slab.shape.games, seed=5, first_game=item.first_game
                    )
                replayed = fresh[item.first_game]
                for step in range(item.slab.shape.steps):
                    outcome = check_step(item, step, replayed)
                    cut += check_finals(item.slab, step, outcome)
                    finished += int(outcome.done.sum())
                end, slots = item.slab.shape.steps, slots_of(item.slab, replayed.rows())
                assert (item.slab.packed[end, slots] == replayed.pack()).all()
                assert item.slab.acting[end].sum() == len(slots)
                assert (item.slab.seat[end, slots] == replayed.rows().seat).all()
    assert finished > 5
    assert cut > 0 or game == "tictactoe"


def values_of(network: ActorCritic, game: Game, packed: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with torch.inference_mode():
        return network(torch.from_numpy(game.unpack(packed)[0]))[1].numpy()


def check_network_numbers(manager: ParallelManager, network: ActorCritic, item: CollectedSlab) -> None:
    slab, game = item.slab, manager.env.make(batch=1, seed=0)
    steps = slab.shape.steps
    acting = slab.acting[:steps]
    observations, legal = game.unpack(slab.packed[:steps][acting])
    with torch.inference_mode():
        logits, values = network(torch.from_numpy(observations))
    log_probs = torch.log_softmax(logits.masked_fill(~torch.from_numpy(legal), -torch.inf), dim=1).numpy()
    chosen = log_probs[np.arange(len(log_probs)), slab.action[acting]]
    np.testing.assert_allclose(slab.log_prob[acting], chosen, atol=1e-5)
    np.testing.assert_allclose(slab.value[:steps][acting], values, atol=1e-5)
    end = slab.acting[steps]
    np.testing.assert_allclose(
        slab.value[steps, end], values_of(network, game, slab.packed[steps, end]), atol=1e-5
    )
    cut = slab.finished("final_value") & (slab.final_seat >= 0)
    if cut.any():
        expected = values_of(network, game, slab.final_packed[cut])
        np.testing.assert_allclose(slab.final_value[cut], expected, atol=1e-5)


@pytest.mark.parametrize("inference", ["worker", "central"])
@pytest.mark.parametrize("game", [RELAY, "shogi"])
def test_log_probabilities_and_values_are_those_of_the_version_that_played(game: str, inference: str) -> None:
    env = {"max_moves": 5} if game == "shogi" else {}
    with manager_of(game, model={"hidden_dim": 8}, env=env, inference=inference) as manager:
        assert manager.model_config is not None
        assert manager.model is not None
        twin = build_network(manager.model_config, manager.spec, manager.seed)
        for expected_version in (1, 2, 3):
            experiences = manager.collect_experiences(target_steps=100)
            assert experiences.version == expected_version
            assert set(experiences.column("version").tolist()) == {expected_version}
            for item in experiences:
                assert item.record.version == expected_version
                check_network_numbers(manager, twin, item)
            nudge(manager)
            twin.load_state_dict(manager.model.state_dict())
            assert manager.sync_model_to_workers() == expected_version + 1


def test_random_play_tells_its_log_probabilities_when_it_has_a_network_beside_it() -> None:
    seating = {"opponents": [{"policy": "random", "share": 1.0}]}
    with manager_of("connect-four", model={"hidden_dim": 8}, seating=seating) as manager:
        experiences = manager.collect_experiences()
        policy, seat = experiences.column("policy"), experiences.column("seat")
        assert set(policy.tolist()) == {0, 1}
        assert set(seat[policy == 0].tolist()) == {0, 1}, "the learner changes seats from game to game"
        legal = manager.env.make(batch=1, seed=0).unpack(experiences.column("packed"))[1]
        uniform = -np.log(legal.sum(axis=1))
        np.testing.assert_allclose(
            experiences.column("log_prob")[policy == 1], uniform[policy == 1], atol=1e-5
        )
        assert (experiences.column("value")[policy == 1] == 0).all()


def test_openings_belong_to_chance_and_what_follows_to_the_learner() -> None:
    with manager_of("connect-four", model={"hidden_dim": 8}, seating={"opening_plies": 4}) as manager:
        experiences = manager.collect_experiences(2000)
        policy, ply = experiences.column("policy"), experiences.column("ply")
        assert set(policy[ply < 4].tolist()) == {0, CHANCE}
        assert (policy[ply >= 4] == 0).all()
        assert set(experiences.column("action")[ply == 0].tolist()) == set(range(7))


@pytest.mark.parametrize("game", [RELAY, "connect-four"])
def test_columns_hold_one_entry_for_each_transition(game: str) -> None:
    with manager_of(game, backend="inline") as manager:
        experiences = manager.collect_experiences()
        assert len(experiences) == sum(item.record.transitions for item in experiences) > 0
        for name in ("packed", "action", "reward", "terminated", "policy", "version", "ply"):
            assert len(experiences.column(name)) == len(experiences)
        seats = manager.spec.seats
        assert experiences.column("reward").shape == (len(experiences), seats)
        if game == RELAY:
            assert len(experiences) < 2 * 8 * 12, "some seats rested"


def test_views_change_with_the_next_collection_and_copies_stay() -> None:
    for shared in (True, False):
        with manager_of(use_shared_memory=shared, queue_maxsize=1) as manager:
            first = manager.collect_experiences()
            before, played = first.digest(), first.column("action").copy()
            manager.collect_experiences()
            assert (first.digest() == before) is (not shared)
            if not shared:
                assert (first.column("action") == played).all()
    assert (first.column("action") == played).all(), "copies outlive the manager"


def test_a_round_larger_than_the_queue_is_the_same_as_one_that_fits() -> None:
    found = []
    for size, shared in ((1, True), (2, False), (16, True)):
        with manager_of(RELAY, queue_maxsize=size, use_shared_memory=shared) as manager:
            experiences = manager.collect_experiences(target_steps=500)
            assert len(experiences) >= 350
            found.append(experiences.digest())
            assert [item.record.sequence for item in experiences if item.record.table == 1] == list(
                range(len(experiences.slabs) // 2)
            )
    assert len(set(found)) == 1
