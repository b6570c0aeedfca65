"""Networks as ONNX, for programs without Python, with a JSON file that says what the numbers mean."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import ConfigError, KeiseiError
from keisei.games.contract import Array, BoolArray, Game
from keisei.games.naming import action_meaning, observation_meaning
from keisei.policies.networks import ActorCritic
from keisei.runs.durable_files import replace_file

__all__ = ["Exported", "describe", "export_onnx"]

ILLEGAL = -1e9
"""The logit of an action that is not legal."""
TOLERANCE = 1e-3
OPSET = 17
PROBE_GAMES = 16
"""Games side by side on whose positions an exported network is checked."""
_PROBE_PLIES = 6


@dataclass(frozen=True)
class Exported:
    """What was written."""

    model: Path
    meaning: Path
    largest_difference: float
    """Between the outputs of ONNX Runtime and torch, on positions of random games."""


class _Masked(nn.Module):
    """Observations and legal actions in; logits, with those of other actions very low, and values out."""

    def __init__(self, network: ActorCritic) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        if self.network.meaning == "q":  # the mean of a dueling network is that of the legal actions
            numbers = torch.arange(legal.shape[1], device=legal.device).expand_as(legal)
            logits, values = self.network(observations, torch.where(legal, numbers, -1))
        else:
            logits, values = self.network(observations)
        return logits.masked_fill(~legal, ILLEGAL), values


def export_onnx(network: ActorCritic, game: Game, path: Path, about: Mapping[str, Any]) -> Exported:
    """Writes a network to ``path``, and the meaning of its numbers beside it, as JSON. Both are checked with ONNX
    Runtime before anything is written. The game is a new one; ``about`` is added to the JSON."""
    model = _Masked(network.eval().cpu())
    observations, legal = _positions(game)
    content = _converted(model, observations[:2], legal[:2])
    difference = _difference(model, content, observations, legal)
    if not difference <= TOLERANCE:
        raise KeiseiError(
            f"the exported network does not give the numbers of torch: they differ by {difference:g}; nothing was "
            f"written"
        )
    beside = path.with_suffix(".json")
    meaning = json.dumps({**about, **describe(network, game)}, indent=1, ensure_ascii=False) + "\n"
    replace_file(path, content)
    replace_file(beside, meaning.encode())
    return Exported(path, beside, difference)


def describe(network: ActorCritic, game: Game) -> dict[str, Any]:
    """Says what the inputs and outputs of the exported network mean."""
    spec, seen = game.spec, game.spec.observation
    values = network.meaning == "q"
    return {
        "game": spec.name,
        "inputs": {
            "observations": {
                "shape": ["rows", *seen.shape],
                "type": str(seen.dtype),
                "about": "as the seat that acts sees the game; the network scales them itself",
            },
            "legal": {
                "shape": ["rows", spec.num_actions],
                "type": "bool",
                "about": "true for each legal action",
            },
        },
        "outputs": {
            "logits": {
                "shape": ["rows", spec.num_actions],
                "about": (
                    "the value of each action" if values else "softmax gives the probability of each action"
                )
                + f"; {ILLEGAL:g} if it is not legal",
            },
            "values": {"shape": ["rows"], "about": "the return that the seat that acts expects"},
        },
        "observation": observation_meaning(game),
        "actions": action_meaning(game),
    }


def _positions(game: Game) -> tuple[Array, BoolArray]:
    """Plays random games and collects their positions."""
    observations, masks = [], []
    for _ in range(_PROBE_PLIES):
        observations.append(game.observe())
        masks.append(game.legal())
        game.step(game.random_actions())
    return np.concatenate(observations), np.concatenate(masks)


def _converted(model: nn.Module, observations: Array, legal: BoolArray) -> bytes:
    try:
        import onnx
    except ImportError as error:
        raise _missing("onnx") from error
    file = io.BytesIO()
    rows = {0: "rows"}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the exporter without further packages is called old
        torch.onnx.export(
            model,
            (torch.from_numpy(observations), torch.from_numpy(legal)),
            file,  # type: ignore[arg-type]  # it takes files too
            input_names=["observations", "legal"],
            output_names=["logits", "values"],
            dynamic_axes={"observations": rows, "legal": rows, "logits": rows, "values": rows},
            opset_version=OPSET,
            dynamo=False,
        )
    content = file.getvalue()
    onnx.checker.check_model(onnx.load_model_from_string(content))
    return content


def _difference(model: nn.Module, content: bytes, observations: Array, legal: BoolArray) -> float:
    """Computes the largest difference between the outputs of ONNX Runtime and torch."""
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime") from error
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = session.run(["logits", "values"], {"observations": observations, "legal": legal})
    with torch.inference_mode():
        wanted = model(torch.from_numpy(observations), torch.from_numpy(legal))
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(ours - theirs.numpy()).max()) for ours, theirs in pairs)


def _missing(package: str) -> ConfigError:
    return ConfigError(f"ONNX needs the package {package}; install it: pip install 'keisei[onnx]'")
