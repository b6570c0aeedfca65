"""``keisei.PPO`` and ``keisei.DQN``: agents in five lines, with an ordinary run behind them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_for_tests import Recorder
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.errors import ConfigError, RunError, RunExistsError
from keisei.games.tictactoe import TicTacToe
from keisei.runs.directory import RunDirectory, RunState
from keisei.training.agent import Score
from keisei.training.named_game import named_game

HEX = Path(__file__).parents[2] / "examples" / "hex.py"
ROLLOUT = 4 * 8 * 8
QUICK: dict[str, Any] = {
    "parallel": {"backend": "inline", "games": 8, "horizon": 8},
    "model": {"channels": 8, "blocks": 1},
    "minibatch_size": 64,
}
QUICK_DQN = QUICK | {"replay": {"capacity": 4096, "learning_starts": 64}}


def ppo(root: Path, **settings: Any) -> keisei.PPO:
    return keisei.PPO("tictactoe", root=root, **QUICK | settings)


def test_five_lines(tmp_path: Path) -> None:
    agent = ppo(tmp_path).learn(steps=2 * ROLLOUT)
    score = agent.evaluate("random", games=10)
    assert 0 <= score.low <= score.score <= score.high <= 1
    assert str(score).startswith(f"tictactoe-ppo against random: {score.score:.1%} (")
    assert " in 10 games of tictactoe, " in str(score)
    path = agent.save(tmp_path / "saved" / "mine")
    player = keisei.load(path)
    game = player.game(batch=4)
    moves = agent.predict(game.observe(), game.legal())
    assert np.array_equal(moves, player.predict(game.observe(), game.legal()))
    assert repr(agent) == f"<keisei.PPO of tictactoe: 512 transitions, {tmp_path}/tictactoe-ppo>"


def test_lengths_add_up(tmp_path: Path) -> None:
    recorder = Recorder()
    agent = ppo(tmp_path).learn(steps=2 * ROLLOUT).learn(steps=ROLLOUT, callbacks=[recorder])
    assert recorder.updates[-1].counters.transitions == 3 * ROLLOUT
    assert len(recorder.updates) == 1
    assert agent.run is not None
    before = agent.run.status().seconds
    agent.learn(minutes=0.02)
    assert agent.config.run.minutes == pytest.approx(before / 60 + 0.02)
    assert agent.run.status().seconds >= before + 1.2
    assert agent.run.status().state is RunState.FINISHED


def test_what_is_learned_is_what_a_run_of_the_same_settings_learns(tmp_path: Path) -> None:
    agent = ppo(tmp_path, seed=3).learn(steps=2 * ROLLOUT)
    result = keisei.train(agent.config, root=tmp_path, name="other", steps=2 * ROLLOUT)
    game = agent.player.game(batch=8)
    mine, others = (
        player.probabilities(game.observe(), game.legal())
        for player in (agent.player, keisei.load(result.run.path))
    )
    assert np.array_equal(mine, others)


def test_dqn(tmp_path: Path) -> None:
    agent = keisei.DQN("tictactoe", root=tmp_path, **QUICK_DQN)
    assert agent.learn(steps=4 * ROLLOUT).evaluate(games=4).match.players == ("tictactoe-dqn", "random")
    again = keisei.DQN.load(agent.save(tmp_path / "copy")).learn(steps=ROLLOUT)
    assert "1,280 transitions" in repr(again)
    with pytest.raises(ConfigError, match=r"learns in regime dqn, and keisei\.PPO in ppo"):
        keisei.PPO.load(tmp_path / "copy")


def test_settings_are_those_of_the_learner_or_of_sections(tmp_path: Path) -> None:
    agent = ppo(tmp_path, learning_rate=0.01, run={"seed": 7}, evaluation={"opponents": ["random"]})
    assert agent.config.learner.learning_rate == 0.01
    assert (agent.config.run.seed, agent.config.evaluation.opponents) == (7, ("random",))
    assert agent.config.model.channels == 8
    assert agent.config.parallel.seating.opening_plies == 6, "what is not given stays as it was chosen"
    with pytest.raises(
        ConfigError, match=r"settings of keisei\.PPO:\n.*learning_rat: .*did you mean learning_rate"
    ):
        ppo(tmp_path, learning_rat=0.01)
    with pytest.raises(ConfigError, match="model"):
        ppo(tmp_path, model=3)
    assert not any(tmp_path.iterdir()), "a run is made by learning"


def test_an_agent_that_has_not_learned_says_so(tmp_path: Path) -> None:
    agent = ppo(tmp_path)
    assert repr(agent) == "<keisei.PPO of tictactoe: has not learned yet>"
    for use in (agent.evaluate, lambda: agent.save(tmp_path / "x"), lambda: agent.player):
        with pytest.raises(RunError, match="has not learned yet; call learn"):
            use()


def test_no_run_is_touched_that_is_there(tmp_path: Path) -> None:
    first, second = (ppo(tmp_path).learn(steps=ROLLOUT) for _ in range(2))
    assert (first.run, second.run) == (
        RunDirectory(tmp_path / "tictactoe-ppo"),
        RunDirectory(tmp_path / "tictactoe-ppo-2"),
    )
    with pytest.raises(RunExistsError, match=r"go on with it: keisei\.PPO\.load\('.*tictactoe-ppo-2'\)"):
        ppo(tmp_path, name="tictactoe-ppo-2").learn(steps=ROLLOUT)
    with pytest.raises(RunExistsError):
        first.save(tmp_path / "tictactoe-ppo-2")
    assert "256 transitions" in repr(second)


def test_a_start_that_fails_leaves_the_agent_as_it_was(tmp_path: Path) -> None:
    agent = ppo(tmp_path, evaluation={"opponents": ["nobody"]})
    with pytest.raises(ConfigError, match="nobody"):
        agent.learn(steps=ROLLOUT)
    assert agent.run is None
    assert not any(tmp_path.iterdir())


def test_agents_meet_each_other(tmp_path: Path) -> None:
    first, second = (ppo(tmp_path, seed=seed).learn(steps=ROLLOUT) for seed in range(2))
    assert first.evaluate(second, games=4).match.players == ("tictactoe-ppo", "tictactoe-ppo-2")
    by_name = first.evaluate("tictactoe-ppo-2", games=4)
    assert by_name.score == first.evaluate(second.player, games=4).score


def test_a_world_is_judged_by_returns(tmp_path: Path) -> None:
    agent = keisei.PPO(
        "treasurehunt",
        root=tmp_path,
        options={"max_turns": 10},
        **QUICK | {"parallel": {"games": 4, "horizon": 8, "backend": "inline"}},
    )
    score = agent.learn(steps=200).evaluate(games=4)
    assert isinstance(score, Score)
    assert "; return " in str(score)
    assert ", theirs " in str(score)


def test_what_is_saved_is_a_run_of_its_own(tmp_path: Path) -> None:
    agent = ppo(tmp_path).learn(steps=ROLLOUT)
    copy = RunDirectory(agent.save(tmp_path / "copy"))
    assert agent.run is not None
    assert copy.id() not in ("", agent.run.id())
    assert copy.status().state is RunState.FINISHED
    listed = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["runs", "copy", "--root", str(tmp_path)])
    assert listed.exit_code == 0, listed.output
    assert "256" in listed.output
    played = CliRunner().invoke(
        app, ["play", "copy", "--root", str(tmp_path), "--seat", "1"], input="resign\n"
    )
    assert played.exit_code == 0, played.output
    agent.learn(steps=ROLLOUT)
    assert "256 transitions" in repr(keisei.PPO.load(copy.path)), "the copy stays as it was"
    assert "512 transitions" in repr(keisei.PPO.load(copy.path).learn(steps=ROLLOUT))


def test_a_class_is_named_by_its_module() -> None:
    assert named_game(TicTacToe).name == "keisei.games.tictactoe:TicTacToe"
    assert named_game(keisei.batched(TicTacToe)).name == "keisei.games.tictactoe:TicTacToe"
    assert named_game("tictactoe").name == "tictactoe"
    assert named_game(str(HEX)).name == f"{HEX}:Hex"

    class Inside(TicTacToe):
        pass

    with pytest.raises(ConfigError, match=r"Inside is not found by its name.*top level of a file"):
        keisei.PPO(Inside)


PROGRAM = """
agent = keisei.PPO(Hex, name="mine", model={"channels": 8}, parallel={"games": 8, "horizon": 8, "num_workers": 1})
agent.learn(steps=300)
print(agent.config.parallel.backend, agent.config.env.game, keisei.load("runs/mine").spec.name)
"""


def program(guarded: bool) -> str:
    game = HEX.read_text()
    if not guarded:
        return game + PROGRAM
    body = "\n".join(f"    {line}" for line in PROGRAM.splitlines())
    return f"{game}\n\ndef main():\n{body}\n\nif __name__ == '__main__':\n    main()\n"


def run_program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_a_class_of_a_program_is_played_in_processes(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program(guarded=True))
    done = run_program(tmp_path, "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["process", f"{tmp_path}/program.py:Hex", "hex"]
    assert "threads" not in done.stderr
    code = "import keisei; print(keisei.load('runs/mine').spec.name)"
    assert run_program(tmp_path, "-c", code).stdout == "hex\n", "and found by later programs"


def test_a_program_that_would_train_again_is_played_in_threads(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program(guarded=False))
    done = run_program(tmp_path, "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["thread", f"{tmp_path}/program.py:Hex", "hex"]
    assert (
        "Hex is defined in program.py, which would train again in every process that imports it"
        in done.stderr
    )
    later = run_program(tmp_path, "-c", "import keisei; keisei.load('runs/mine')")
    assert "put the training below if __name__ == '__main__'" in later.stderr
    assert [run.name for run in (tmp_path / "runs").iterdir()] == ["mine"]


def test_a_class_of_a_session_is_played_in_threads(tmp_path: Path) -> None:
    done = run_program(tmp_path, "-c", program(guarded=False))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["thread", "__main__:Hex", "hex"]
    assert "Hex is defined in this session" in done.stderr


def test_ctrl_c_saves_and_ends_the_program(tmp_path: Path) -> None:
    code = "import keisei; keisei.PPO('tictactoe', name='mine').learn(minutes=30); print('went on')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    run = RunDirectory(tmp_path / "runs" / "mine")
    deadline = time.monotonic() + 120
    while not (run.path / "live.json").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in err
    assert out == ""
    assert run.status().state is RunState.INTERRUPTED
    assert keisei.PPO.load(run.path).config.env.game == "tictactoe"
