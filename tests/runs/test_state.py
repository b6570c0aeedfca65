"""What is saved of a part of a run is plain data, which waits for no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.state import State


def test_buffers_and_their_states_need_no_torch() -> None:
    modules = ("agents_buffer", "replay", "rollout", "contract")
    source = "".join(f"import keisei.experience.{name}\n" for name in modules)
    check = "import sys, keisei.runs.state\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", source + check], check=True)


def test_arrays_and_tensors_are_saved_alike(tmp_path: Path) -> None:
    numbers = np.arange(12, dtype=np.float64).reshape(3, 4)
    state = State({"mixed": {"array": numbers[:, ::2], "tensor": torch.from_numpy(numbers)[:, ::2]}})
    loaded = load_checkpoint(save_checkpoint(tmp_path, Checkpoint("x", {"update": 1}, state.tensors)))
    for tensor in loaded.tensors["mixed"].values():
        assert tensor.dtype == torch.float64
        np.testing.assert_array_equal(np.asarray(tensor), numbers[:, ::2])
