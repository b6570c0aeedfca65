"""Checkpoints whose checksums are right and whose content is wrong: each differs from a real one in a single value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

VALUES: tuple[Any, ...] = (None, -1, 10**30, 2**52, 1.5, 1e300, "x", "", True, [], {}, [[]], {"tensor": "x"})
"""Stand-ins for a value of a document."""
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Forgery:
    """One change of a checkpoint."""

    what: str
    apply: Callable[[Path], None]


def forgeries(checkpoint: Path) -> list[Forgery]:
    """Lists all changes of a checkpoint that are known here."""
    return [*_of_manifest(checkpoint), *_of_tensors(checkpoint), *_of_pieces(checkpoint)]


def sealed(path: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest with its own digest, as a checkpoint has it."""
    manifest.pop("sha256", None)
    digest = sha256(_text(manifest)).hexdigest()
    (path / "manifest.json").write_bytes(_text({**manifest, "sha256": digest}))


def manifest_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "manifest.json").read_bytes())
    return found


def _text(document: Any) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _of_manifest(checkpoint: Path) -> Iterator[Forgery]:
    manifest = manifest_of(checkpoint)
    for part in ("game", "counters", "documents", "config_digest", "files", "pieces"):
        for place in _places(manifest[part], (part,)):
            old = _at(manifest, place)
            for value in VALUES:
                if value != old or type(value) is not type(old):
                    yield Forgery(f"{place} = {value!r}", _setting(place, value))
            if len(place) > 1:
                yield Forgery(f"no {place}", _dropping(place))


def _places(value: Any, here: Place) -> Iterator[Place]:
    """Yields all places of a document; of a list, its first and last entry."""
    yield here
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*here, key))
    elif isinstance(value, list) and value:
        for index in sorted({0, len(value) - 1}):
            yield from _places(value[index], (*here, index))


def _at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def _setting(place: Place, value: Any) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        manifest = manifest_of(path)
        _at(manifest, place[:-1])[place[-1]] = deepcopy(value)
        sealed(path, manifest)

    return apply


def _dropping(place: Place) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        manifest = manifest_of(path)
        del _at(manifest, place[:-1])[place[-1]]
        sealed(path, manifest)

    return apply


CHANGES: dict[str, Callable[[Tensor], Tensor | None]] = {
    "gone": lambda tensor: None,
    "of another type": lambda tensor: (
        tensor.to(torch.int16) if tensor.is_floating_point() else tensor.to(torch.float32)
    ),
    "of another shape": lambda tensor: tensor[None],
    "shorter": lambda tensor: tensor.reshape(-1)[: tensor.numel() // 2].clone(),
    "empty": lambda tensor: tensor.reshape(-1)[:0].clone(),
    "as large as can be": lambda tensor: torch.full_like(tensor, _largest(tensor.dtype)),
    "other bits": lambda tensor: _inverted(tensor),
}


def _largest(dtype: torch.dtype) -> float | int:
    if dtype is torch.bool:
        return 1
    return torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max


def _inverted(tensor: Tensor) -> Tensor:
    bits = tensor.contiguous().reshape(-1).view(torch.uint8).clone()
    return (
        (255 - bits if tensor.dtype is not torch.bool else 1 - bits).view(tensor.dtype).reshape(tensor.shape)
    )


def _of_tensors(checkpoint: Path) -> Iterator[Forgery]:
    for file in sorted(checkpoint.glob("*.safetensors")):
        yield Forgery(f"no {file.name}", _dropping(("files", file.name)))
        yield Forgery(f"nothing in {file.name}", _rewriting(file.name, lambda tensors: {}))
        for name in safetensors.torch.load_file(file):
            for label, change in CHANGES.items():
                yield Forgery(f"{file.name}: {name} {label}", _rewriting(file.name, _changing(name, change)))


def _changing(
    name: str, change: Callable[[Tensor], Tensor | None]
) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    def changed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        made = change(tensors.pop(name))
        return tensors if made is None else {**tensors, name: made.contiguous()}

    return changed


def _rewriting(file: str, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        _replace(
            path,
            "files",
            file,
            file,
            safetensors.torch.save(change(safetensors.torch.load_file(path / file))),
        )

    return apply


def _of_pieces(checkpoint: Path) -> Iterator[Forgery]:
    for file in sorted(checkpoint.glob("*.piece"))[:2]:
        size = file.stat().st_size
        for label, content in {"empty": b"", "zeros": bytes(size), "ones": b"\xff" * size}.items():
            yield Forgery(f"{file.name} {label}", _with_piece(file.name, content))


def _with_piece(file: str, content: bytes) -> Callable[[Path], None]:
    return lambda path: _replace(path, "pieces", file.removesuffix(".piece"), file, content)


def _replace(path: Path, part: str, entry: str, file: str, content: bytes) -> None:
    (path / file).unlink()  # other checkpoints may share it
    (path / file).write_bytes(content)
    manifest = manifest_of(path)
    manifest[part][entry] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    sealed(path, manifest)
