"""Missing features of the device are skipped, with a warning."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from keisei.games import make_game
from keisei.learners.acceleration import compiled, half_precision
from keisei.policies.networks import ActorCritic, build_network


def network() -> ActorCritic:
    return build_network({"hidden_dim": 8}, make_game("tictactoe").spec, seed=0)


def test_nothing_is_done_unasked() -> None:
    plain = network()
    assert compiled(plain, False, (2, 3, 3)) is plain
    assert isinstance(half_precision(False, torch.device("cpu")), nullcontext)


def test_a_processor_keeps_to_full_precision_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert isinstance(half_precision(True, torch.device("cpu")), nullcontext)
    assert "run.mixed_precision needs a CUDA device" in caplog.text


def test_a_compiler_that_fails_leaves_the_network_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(model: Any, **options: Any) -> Any:
        raise RuntimeError("no compiler\nand more")

    monkeypatch.setattr(torch, "compile", broken)
    plain = network()
    with caplog.at_level(logging.WARNING):
        assert compiled(plain, True, (2, 3, 3)) is plain
    assert "torch.compile does not work here" in caplog.text
    assert "no compiler" in caplog.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # what torch itself still uses
def test_a_compiled_network_gives_the_same_numbers() -> None:
    plain = network()
    faster = compiled(plain, True, (2, 3, 3))
    assert faster is not plain
    rows, listed = torch.rand(5, 2, 3, 3), torch.arange(5, dtype=torch.int32)[:, None]
    for ours, theirs in zip(faster(rows, listed), plain(rows, listed), strict=True):
        torch.testing.assert_close(ours, theirs)
