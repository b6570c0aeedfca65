"""The state of optimisers and random generators as named tensors and JSON, without pickle.

``torch`` keeps an optimiser's state in nested dicts with numbers for keys, tuples, tensors and plain values.
``flatten`` takes the tensors out, under names such as ``state.0.exp_avg``, and leaves a document that JSON can
hold. ``unflatten`` joins the two again, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from keisei.errors import CheckpointError
from keisei.runs.json_values import Json

_OF_ADAM = {"step", "exp_avg", "exp_avg_sq"}
_LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class FlatState:
    """A nested state, separated into tensors and a document."""

    tensors: Mapping[str, Tensor]
    document: Json
    """Values that JSON does not have become ``{"tensor": name}``, ``{"tuple": […]}``, ``{"table": [[key, value], …]}``
    and ``{"float": "nan"}``."""


def flatten(state: object) -> FlatState:
    """Separates a nested state. The tensors are copies, so training may continue while they are written."""
    tensors: dict[str, Tensor] = {}
    return FlatState(tensors, _document(state, "", tensors))


def unflatten(flat: FlatState) -> object:
    """Joins a state again. The tensors share no memory with ``flat``."""
    return _value(flat.document, flat.tensors)


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Copies all parameters and buffers to main memory."""
    return {name: _copy(tensor) for name, tensor in model.state_dict().items()}


def load_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Loads weights into a model. Raises ``CheckpointError`` if they are those of another one, and then changes
    nothing."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise CheckpointError(
                f"{name} is of type {type(tensor).__name__}, and weights are tensors: torch.as_tensor makes one"
            )
    if difference := weights_difference(model.state_dict(), tensors):
        raise CheckpointError(
            f"these are the weights of another network: {difference}. Use the configuration of their own run"
        )
    model.load_state_dict(dict(tensors))


def weights_difference(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str:
    """Says how weights differ from those of a network in names, types and shapes; empty if they do not."""
    here, there = _kinds(wanted), _kinds(found)
    differing = sorted({name for name, _ in here.items() ^ there.items()}, key=str)
    if not differing:
        return ""
    name, more = differing[0], f" (and {len(differing) - 1} others differ)" if len(differing) > 1 else ""
    return f"{name} is {there.get(name, 'not there')} and must be {here.get(name, 'left out')}{more}"


def weights_digest(weights: nn.Module | Mapping[str, Tensor]) -> str:
    """Computes a digest of weights: equal bits, equal digest."""
    tensors = model_tensors(weights) if isinstance(weights, nn.Module) else weights
    total = sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def flatten_optimizer(optimizer: Optimizer) -> FlatState:
    return flatten(optimizer.state_dict())


def load_optimizer(optimizer: Optimizer, flat: FlatState) -> None:
    """Restores the state of an optimiser. It also compares shapes, which torch does not."""
    state = unflatten(flat)
    if not isinstance(state, dict) or not {"state", "param_groups"} <= state.keys():
        raise CheckpointError(
            f"this is not the state of an optimiser: it has {_keys(state)}, not state and param_groups"
        )
    _check_groups(optimizer, state["param_groups"])
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not isinstance(state["state"], dict):
        raise CheckpointError("the optimiser's state is no table of its parameters")
    for index, entries in state["state"].items():
        if type(index) is not int or not 0 <= index < len(parameters) or not isinstance(entries, dict):
            raise CheckpointError(
                f"the optimiser's state is of a parameter {index!r:.40}, which is not there"
            )
        _check_entries(optimizer, index, entries, parameters[index])
    try:
        optimizer.load_state_dict(state)
    except (ValueError, KeyError, IndexError) as error:
        raise CheckpointError(
            f"the optimiser of the checkpoint is not the one configured: {error}"
        ) from error


def _check_groups(optimizer: Optimizer, groups: object) -> None:
    """Checks the settings of an optimiser. Numbers such as rates may differ from the current ones, but switches must be
    equal: torch itself accepts any. Settings that a later version of torch has added may be missing."""
    own = optimizer.state_dict()["param_groups"]
    if not isinstance(groups, list) or len(groups) != len(own):
        raise CheckpointError("the optimiser of the checkpoint has other groups of parameters")
    for group, wanted in zip(groups, own, strict=True):
        if not isinstance(group, dict) or group.get("params") != wanted["params"]:
            raise CheckpointError(
                "the optimiser of the checkpoint is of other parameters, and does not fit this network"
            )
        for name, value in wanted.items():
            if name in group or not _is_switch(value):
                _check_setting(name, group.get(name), value)


def _check_setting(name: str, found: object, wanted: object) -> None:
    fits = _same_kind(found, wanted)
    if name != "fused" and _is_switch(
        wanted
    ):  # earlier versions of Keisei had another; it is a matter of speed
        fits = found == wanted
    if not fits:
        raise CheckpointError(
            f"the optimiser's {name} is {found!r:.60} in the checkpoint, and {wanted!r} here"
        )


def _is_switch(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _same_kind(found: object, wanted: object) -> bool:
    if _is_switch(wanted):
        return _is_switch(found)
    if isinstance(wanted, int | float):
        return isinstance(found, int | float) and not isinstance(found, bool) and _is_finite(found)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(map(_same_kind, found, wanted))
        )
    return type(found) is type(wanted)


def _is_finite(number: float) -> bool:
    return -_LARGEST < number < _LARGEST


def _check_entries(
    optimizer: Optimizer, index: int, entries: Mapping[str, object], parameter: Tensor
) -> None:
    """Checks the state of one parameter. Torch does not: it reads and writes moments as far as the parameter goes, and
    so past the end of shorter ones."""
    if isinstance(optimizer, torch.optim.Adam) and entries:
        names = _OF_ADAM | ({"max_exp_avg_sq"} if optimizer.param_groups[0]["amsgrad"] else set())
        if entries.keys() != names or not all(isinstance(value, Tensor) for value in entries.values()):
            raise CheckpointError(
                f"the optimiser has {_keys(entries)} of parameter {index}, and Adam has others"
            )
    for name, value in entries.items():
        if not _fits(name, value, parameter):
            raise CheckpointError(
                f"the optimiser's {name} of parameter {index} does not fit the network; use the run's own "
                f"configuration"
            )


def random_tensors() -> dict[str, Tensor]:
    """Gets the state of torch's generators. Games and sampling do not use them; their randomness is counter-based."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states.update({f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())})
    return states


def load_random(states: Mapping[str, Tensor]) -> None:
    """Restores the generators of the devices on this machine; those of other devices are ignored."""
    if "torch" in states:
        torch.set_rng_state(states["torch"])
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if f"cuda.{index}" in states:
            torch.cuda.set_rng_state(states[f"cuda.{index}"], index)


def _kinds(weights: Mapping[str, Tensor]) -> dict[str, str]:
    return {
        name: f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        for name, tensor in weights.items()
    }


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu").clone()


def _fits(name: str, value: object, parameter: Tensor) -> bool:
    """Checks if a state has the shape of its parameter. The state ``step`` is a count of steps instead."""
    if name == "step":
        is_count = value.numel() == 1 if isinstance(value, Tensor) else isinstance(value, int | float)
        return is_count and math.isfinite(float(value))  # type: ignore[arg-type]
    return not isinstance(value, Tensor) or (value.shape == parameter.shape and value.is_floating_point())


def _keys(state: object) -> str:
    return ", ".join(map(str, state)) if isinstance(state, dict) else type(state).__name__


def _document(value: object, path: str, tensors: dict[str, Tensor]) -> Json:
    if isinstance(value, Tensor):
        tensors[path] = _copy(value)
        return {"tensor": path}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        items = [_document(item, _join(path, index), tensors) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, Mapping) and all(isinstance(key, str | int) for key in value):
        return {"table": [[key, _document(item, _join(path, key), tensors)] for key, item in value.items()]}
    raise CheckpointError(
        f"{path or 'the state'} is {value!r}; only tensors, numbers, texts, lists, tuples and tables of them can be "
        f"saved without pickle"
    )


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _value(document: Json, tensors: Mapping[str, Tensor]) -> object:
    if isinstance(document, list):
        return [_value(item, tensors) for item in document]
    if not isinstance(document, dict):
        return document
    try:
        ((kind, content),) = document.items()
        if kind == "tensor":
            return tensors[content].clone()
        if kind == "float":
            return float(content)
        if kind == "tuple":
            return tuple(_value(item, tensors) for item in content)
        if kind == "table":
            return {key: _value(item, tensors) for key, item in content}
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{document!r} does not describe a state: {error!r}") from error
    raise CheckpointError(f"{kind!r} is not a kind of value in a saved state; it was not written by Keisei")
