"""A manager that is stopped and made anew goes on as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest

from keisei.errors import ParallelError
from keisei.parallel import ParallelManager

MODEL = {"hidden_dim": 16, "num_layers": 1}
SETTINGS: dict[str, Any] = {"num_workers": 2, "games_per_worker": 4, "experience_batch_size": 64, "seed": 5}


def digests(manager: ParallelManager, rounds: int) -> list[str]:
    return [manager.collect_experiences().digest() for _ in range(rounds)]


@pytest.mark.parametrize("game", ["shogi", "connect-four"])
@pytest.mark.parametrize("reset", [False, True])
def test_a_resumed_manager_gives_the_same_bits(game: str, reset: bool) -> None:
    with ParallelManager({"game": game}, MODEL, SETTINGS | {"enabled": False}) as whole:
        first = digests(whole, 3)
        if reset:
            whole.reset_workers()
            first += digests(whole, 1)
        rest = digests(whole, 2)
    with ParallelManager({"game": game}, MODEL, SETTINGS) as broken:
        assert digests(broken, 3) == first[:3]
        if reset:
            broken.reset_workers()
            digests(broken, 1)
        snapshots = broken.snapshot()
    resumed = ParallelManager({"game": game}, MODEL, SETTINGS)
    resumed.start_workers(snapshots)
    try:
        assert digests(resumed, 2) == rest
    finally:
        resumed.stop_workers()


def test_a_snapshot_wants_a_manager_that_runs() -> None:
    manager = ParallelManager({"game": "tictactoe"}, None, SETTINGS)
    with pytest.raises(ParallelError, match="has not been started"):
        manager.snapshot()
