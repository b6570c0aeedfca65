"""Collect experience from Shogi games that several processes play at once.

    python examples/parallel_collection.py

The network is untrained and small, so this takes seconds. ``train_model`` stands for a learner.
"""

from __future__ import annotations

import torch

from keisei.parallel import Experiences, ParallelManager

env_config = {"board_size": 9, "max_moves": 200}
# Both sizes may be left out: the game knows them. Shogi shows 54 planes of 81 squares.
model_config = {"input_dim": 81 * 54, "hidden_dim": 64, "action_dim": 2187}
parallel_config = {
    "num_workers": 2,
    "games_per_worker": 10,
    "max_game_length": 200,
    "experience_batch_size": 640,
    "model_sync_interval": 2,
    "timeout": 30.0,
}
MAX_TRAINING_STEPS = 6
WORKER_RESET_INTERVAL = 4


def train_model(model: torch.nn.Module, experiences: Experiences) -> float:
    """Changes the weights a little. A real learner would use the experience."""
    finished = experiences.column("terminated").mean()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.001)
    return float(finished)


def main() -> None:
    manager = ParallelManager(env_config, model_config, parallel_config)
    assert manager.model is not None
    manager.start_workers()
    try:
        for step in range(MAX_TRAINING_STEPS):
            experiences = manager.collect_experiences()
            finished = train_model(manager.model, experiences)
            manager.sync_model_to_workers(step=step)  # every second step, as model_sync_interval says
            if step and step % WORKER_RESET_INTERVAL == 0:
                manager.reset_workers()
            print(  # noqa: T201
                f"step {step}: {len(experiences)} transitions, weights {experiences.version}, {finished:.2%} end a game"
            )

        status = manager.get_status()
        print(f"Active workers: {status['active_workers']}")  # noqa: T201
        print(f"Queue sizes: {status['queue_info']}")  # noqa: T201

        manager.pause_workers([1])
        experiences = manager.collect_experiences(timeout=5.0)
        print(f"worker 0 alone: {len(experiences)} transitions")  # noqa: T201
        manager.resume_workers([1])
        experiences = manager.collect_experiences(target_steps=4000)
        print(f"both again: {len(experiences)} transitions")  # noqa: T201
    finally:
        manager.stop_workers()


if __name__ == "__main__":
    main()
