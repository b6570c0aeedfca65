"""The commands ``keisei bench learning…`` train, play and count. Runs take a second, so figures mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.training.api import plan_run

CONFIG = """
env: {game: tictactoe}
model: {network: mlp, hidden_dim: 16}
parallel: {num_workers: 1, tables: 1, games: 16, horizon: 16}
learner: {minibatch_size: 128}
run: {steps: 1024}
evaluation: {games: 4}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return str(path)


def bench(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bench", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_preset_is_trained_and_held_against_its_goals() -> None:
    (run,) = bench("learning", "--preset", "tictactoe-ppo", "--minutes", "0.01", "--games", "20")["runs"]
    assert (run["name"], run["seed"]) == ("tictactoe-ppo", 0)
    assert run["transitions"] >= 8192
    random, perfect = run["matches"]
    assert (random["opponent"], random["reached"]) == ("random", None)
    assert (perfect["opponent"], perfect["goal"]) == ("search:9", "no loss")
    assert perfect["reached"] is (perfect["losses"] == 0)
    for match in (random, perfect):
        assert match["wins"] + match["draws"] + match["losses"] == 20
        assert match["low"] <= match["score"] <= match["high"]


def test_seeds_learn_something_else_and_their_runs_can_be_kept(config: str, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    first, second = bench(
        "learning", "--preset", config, "--seeds", "2", "--games", "40", "--keep", str(keep)
    )["runs"]
    assert [first["seed"], second["seed"]] == [0, 1]
    assert first["matches"] != second["matches"]
    assert sorted(run.name for run in keep.iterdir() if not run.name.startswith(".")) == ["small", "small.1"]


def test_goals() -> None:
    from benchmarks.learning import Goal, _verdict

    assert _verdict(Goal("random", 0.98), losses=3, score=0.98) == ("98%", True)
    assert _verdict(Goal("random", 0.98), losses=0, score=0.97) == ("98%", False)
    assert _verdict(Goal("search:9", unbeaten=True), losses=1, score=0.9) == ("no loss", False)
    assert _verdict(Goal("search:2"), losses=1, score=0.1) == ("", None)


def test_both_loops_learn_from_as_many_transitions(config: str) -> None:
    runs = bench("learning-modes", "--preset", config, "--steps", "1000", "--games", "4")["runs"]
    assert [(run["name"], run["transitions"]) for run in runs] == [("sync", 1024), ("async", 1024)]


def test_networks_learn_for_the_same_time(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import learning

    names = ("mlp 256", "slim 16x2")
    monkeypatch.setattr(learning, "NETWORKS", {name: learning.NETWORKS[name] for name in names})
    runs = bench("learning-networks", "--preset", config, "--minutes", "0.01", "--games", "4")["runs"]
    assert [run["name"] for run in runs] == list(names)
    assert [match["opponent"] for match in runs[0]["matches"]] == ["random", "greedy"]


def test_what_networks_take(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import networks

    monkeypatch.setattr(networks, "SECONDS", 0.001)
    report = bench("networks", "--game", "tictactoe", "--rounds", "1")
    times = report["microseconds_per_row"]
    assert set(times) == set(report["parameters"]) >= {"mlp 256", "gather 256", "slim 32x2", "residual 64x2"}
    for tasks in times.values():
        assert {"play 64", "play 256", "play 256, legal only", "learn, 1 thread"} <= set(tasks)
        assert all(time > 0 for time in tasks.values())


def test_agents_of_worlds_are_held_against_random_players_and_simple_rules() -> None:
    found = bench("learning", "--preset", "treasurehunt-independent", "--minutes", "0.01", "--games", "4")
    assert found["runs"] == []
    runs = found["worlds"]
    assert [run["mode"] for run in runs] == ["one after another", "parallel", "asynchronous"]
    for run in runs:
        assert run["transitions"] > 0
        assert run["low"] <= run["mean"] <= run["high"]
        assert run["random"] < run["rules"]
        assert run["reached"] is ((run["mean"] - run["random"]) >= 0.5 * (run["rules"] - run["random"]))


def test_verdicts_about_worlds() -> None:
    import numpy as np

    from benchmarks import learning_worlds as worlds

    def played(returns: list[float], rewards: Any = 0.0, actions: Any = 0) -> Any:
        shape = (2, len(returns), 2)
        return worlds.Played(
            np.array(returns), np.broadcast_to(rewards, shape), np.broadcast_to(actions, shape)
        )

    def verdict(preset: str, **found: Any) -> tuple[str, bool]:
        return worlds.GOALS[preset].verdict(worlds.Compared(**found))

    random, rules = played([9.0, 11.0]), played([29.0, 31.0])
    hunt = "treasurehunt-independent"
    assert verdict(hunt, learned=played([19.0, 21.0]), random=random, rules=rules)[1]
    assert not verdict(hunt, learned=played([18.0, 20.0]), random=random, rules=rules)[1]
    many = played([9.0, 11.0] * 50)
    assert verdict("cleanup-independent", learned=played([10.0, 12.0] * 50), random=many, rules=None)[1]
    assert not verdict("cleanup-independent", learned=played([9.1, 11.1] * 50), random=many, rules=None)[1]
    defecting = played([1.0, 1.0], actions=np.array([1, 1]))
    exploited = played([1.0, 1.0], actions=np.array([1, 0]))
    assert verdict("prisoners-dilemma-independent", learned=defecting, random=random, rules=None)[1]
    assert not verdict("prisoners-dilemma-independent", learned=exploited, random=random, rules=None)[1]


def test_the_verdict_about_stags_asks_for_an_equilibrium() -> None:
    import numpy as np
    from benchmarks.answers import Answer
    from benchmarks.learning_worlds import GOALS, Compared
    from benchmarks.worlds_played import Played

    from keisei.evaluation.statistics import Interval

    def verdict(rewards: list[list[float]], *after: float) -> tuple[str, bool]:
        played = Played(np.zeros(1), np.array([rewards], np.float32), np.zeros((1, 2, 2), np.int32))
        answers = [
            Answer(agent, *(Interval(mean, mean, mean) for mean in (20.0, value)))
            for agent, value in enumerate(after)
        ]
        return GOALS["stag-hunt-independent"].verdict(Compared(played, played, None, answers))

    text, reached = verdict([[5.0, 5.0], [-1.0, 0.0]], 21.9, 18.0)
    assert (reached, text) == (True, "stags together, 100% of rewards; the best answer gains +9% (goal 10%)")
    text, reached = verdict([[5.0, 5.0], [1.0, 4.0]], 20.0, 22.2)
    assert (reached, text) == (False, "stags together, 93% of rewards; the best answer gains +11% (goal 10%)")
    text, reached = verdict([[1.0, 1.0], [-1.0, 0.0]], 19.0, 18.0)
    assert (reached, text) == (True, "hares alone, 100% of rewards; the best answer gains -5% (goal 10%)")


def test_an_agent_finds_the_answer_to_one_that_cooperates_now_and_then(tmp_path: Path) -> None:
    """Two agents that have hardly learned play at random, so each can gain by always defecting: 3 instead of 2.25 on
    average. The run itself stays as it was."""
    from benchmarks.answers import best_answers, largest_gain

    settings = [
        "run.steps=2048",
        "parallel.backend=inline",
        "env.options.max_turns=20",
        "learner.ppo.learning_rate=1e-6",
        "evaluation={temperature: 1, gate: 1}",  # the answer never becomes the best, and is played all the same
    ]
    run = plan_run("prisoners-dilemma-independent", overrides=settings, root=tmp_path).trainer().train().run
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    told: list[str] = []
    found = best_answers(run, 50, told.append, share=0.5)
    assert largest_gain(found) < 0.1  # with such a rate nobody learns
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    config = run.path / "config.yaml"
    config.write_text(config.read_text().replace("learning_rate: 1.0e-06", "learning_rate: 0.01"))
    found = best_answers(run, 50, told.append, share=8)
    assert [answer.agent for answer in found] == [0, 1]
    assert min(answer.gain for answer in found) > 0.2
    assert told == ["agent 0 looks for an answer", "agent 1 looks for an answer"] * 2


def test_episodes_are_whole_and_counted_once() -> None:
    import numpy as np
    from benchmarks.worlds_played import play_episodes

    from keisei.policies.registry import named_player
    from keisei.training.settings import TrainConfig

    config = TrainConfig.model_validate({"env": {"game": "prisoners-dilemma", "options": {"max_turns": 7}}})
    policy = named_player("random", config.env.make(batch=1, seed=0).spec)
    assert policy is not None
    found = play_episodes(config, policy, games=3)
    assert found.rewards.shape == found.actions.shape == (7, 3, 2)
    payoffs = np.array([[3, 0], [5, 1]])
    own = payoffs[found.actions, found.actions[:, :, ::-1]]
    np.testing.assert_array_equal(found.rewards, own)
    np.testing.assert_allclose(found.returns, own.sum(axis=0).mean(axis=1))
