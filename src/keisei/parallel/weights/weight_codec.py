"""Weights as bytes: the layout of tensors, and compression."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import WeightsError
from keisei.games.contract import ByteArray
from keisei.machine.shared_memory import aligned

Compression = Literal["none", "half", "lossless"]
Weights = nn.Module | Mapping[str, Tensor]
"""A model, or the result of its ``state_dict()``."""

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    )
}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}
"""Integer types by width, used to compare numbers bit by bit. Compared as bits, NaN equals itself, and -0 differs
from 0."""
HALF_LIMIT = 65520.0
"""From this value on, float16 rounds to infinity."""


@dataclass(frozen=True, slots=True)
class TensorField:
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """The tensors of a model in one block of bytes.

    Each tensor starts at a multiple of 64 bytes, as with torch's own allocator. The last bit of a matrix product may
    depend on alignment, and two workers must get the same result.
    """

    fields: tuple[TensorField, ...]
    nbytes: int

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> WeightLayout:
        return cls._lay(
            (name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
            for name, tensor in state.items()
        )

    @classmethod
    def _lay(cls, tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> WeightLayout:
        fields, end = [], 0
        for name, dtype, shape in tensors:
            if dtype not in DTYPES:
                raise WeightsError(f"tensor {name!r} is {dtype}; weights may be {', '.join(DTYPES)}")
            field = TensorField(name, dtype, shape, end)
            fields.append(field)
            end += aligned(field.nbytes)
        if not end:
            raise WeightsError("there are no weights: the model has no parameters and no buffers")
        return cls(tuple(fields), end)

    def stored(self, compression: Compression) -> WeightLayout:
        """Makes the layout under a compression. ``half`` stores single and double precision as float16."""
        if compression != "half":
            return self
        narrow = {"float32": "float16", "float64": "float16"}
        return self._lay((f.name, narrow.get(f.dtype, f.dtype), f.shape) for f in self.fields)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Makes views of the tensors in a flat tensor of bytes, without a copy."""
        return {
            f.name: flat[f.offset : f.offset + f.nbytes].view(DTYPES[f.dtype]).view(f.shape)
            for f in self.fields
        }

    def check(self, state: Mapping[str, Tensor], what: str) -> None:
        """Raises an error that names the first tensor that does not match this layout."""
        expected = {f.name: f for f in self.fields}
        for name in [*expected, *state]:
            if name not in state:
                raise WeightsError(f"{what} has no tensor {name!r}, which the weights have; {_SAME_MODEL}")
            if name not in expected:
                raise WeightsError(f"{what} has a tensor {name!r}, which the weights lack; {_SAME_MODEL}")
        for field in WeightLayout.of(state).fields:
            if str(field) != str(expected[field.name]):
                raise WeightsError(
                    f"tensor {field.name!r} is {field} in {what} and {expected[field.name]} in the weights; "
                    f"{_SAME_MODEL}"
                )


_SAME_MODEL = "build both models with the same settings"


def tensors_of(source: Weights) -> dict[str, Tensor]:
    """Lists parameters and buffers by name: the model's own tensors, not copies."""
    state = source.state_dict(keep_vars=True) if isinstance(source, nn.Module) else source
    for name, tensor in state.items():
        if not isinstance(tensor, Tensor):
            raise WeightsError(f"{name!r} is a {type(tensor).__name__}; weights are tensors by name")
    return dict(state)


def check_compression(compression: str) -> Compression:
    if compression not in get_args(Compression):
        raise WeightsError(f"compression is one of {', '.join(get_args(Compression))}, got {compression!r}")
    return cast(Compression, compression)


def check_half_range(state: Mapping[str, Tensor]) -> None:
    """Raises an error for weights beyond the range of float16. It ends at 65504; larger weights would silently become
    infinite."""
    for name, tensor in state.items():
        if tensor.dtype not in (torch.float32, torch.float64) or not tensor.numel():
            continue
        low, high = torch.aminmax(tensor.detach())
        for extreme in (float(low), float(high)):
            if HALF_LIMIT <= abs(extreme) < math.inf:
                raise WeightsError(
                    f"tensor {name!r} holds {extreme:g}, and half precision ends at 65504; "
                    "use compression none or lossless"
                )


@torch.no_grad()
def write_tensors(state: Mapping[str, Tensor], views: Mapping[str, Tensor]) -> None:
    """Copies tensors, and converts them if the views have another type. Tensors may be on any device."""
    for name, view in views.items():
        view.copy_(state[name])


@torch.no_grad()
def same_bits(state: Mapping[str, Tensor], views: Mapping[str, Tensor]) -> bool:
    """Checks if the views already hold these tensors. It stops at the first difference."""
    for name, view in views.items():
        bits = BITS[view.dtype.itemsize]
        new = state[name].detach().to("cpu", view.dtype).contiguous()
        if not torch.equal(new.view(-1).view(bits), view.reshape(-1).view(bits)):
            return False
    return True


def pack(plain: ByteArray) -> bytes:
    """Compresses without loss: zlib at its fastest level, over byte planes.

    Signs and exponents of weights are similar and compress well; mantissas are noise. Each of the four bytes of a
    number goes into its own plane. With planes, zlib saves 15 % instead of 8 %, in two thirds of the time.
    """
    return zlib.compress(np.ascontiguousarray(plain.reshape(-1, 4).T).data, level=1)


def unpack(packed: bytes, plain: ByteArray) -> None:
    unpacker = zlib.decompressobj()
    try:
        # Ask for one byte too many. This detects data that is too long, and stops decompression bombs.
        planes = unpacker.decompress(packed, plain.size + 1)
    except zlib.error as error:
        raise WeightsError(f"the compressed weights are damaged: {error}") from None
    if len(planes) != plain.size:
        raise WeightsError(f"the compressed weights are damaged: not {plain.size} bytes when unpacked")
    plain.reshape(-1, 4)[:] = np.frombuffer(planes, np.uint8).reshape(4, -1).T


@dataclass(frozen=True, slots=True)
class CompressionReport:
    """The size and error of each compression for given weights."""

    plain_bytes: int
    half_bytes: int
    lossless_bytes: int
    half_max_absolute_error: float
    """Infinite if a weight is beyond the range of float16."""
    half_max_relative_error: float
    """The largest relative error of weights that are not 0. It is at most 2^-11, except for weights below 6e-5, which
    have fewer bits in float16."""


@torch.no_grad()
def compression_report(source: Weights) -> CompressionReport:
    state = tensors_of(source)
    layout = WeightLayout.of(state)
    absolute = relative = 0.0
    for tensor in state.values():
        if tensor.dtype in (torch.float32, torch.float64) and tensor.numel():
            exact = tensor.detach().to("cpu", torch.float64)
            error = (exact.to(torch.float16).to(torch.float64) - exact).abs()
            absolute = max(absolute, float(error.max()))
            relative = max(relative, float((error / exact.abs())[exact != 0].amax()) if exact.any() else 0.0)
    return CompressionReport(
        plain_bytes=layout.nbytes,
        half_bytes=layout.stored("half").nbytes,
        lossless_bytes=len(pack(_flattened(state, layout))),
        half_max_absolute_error=absolute,
        half_max_relative_error=relative,
    )


def _flattened(state: Mapping[str, Tensor], layout: WeightLayout) -> ByteArray:
    flat = torch.zeros(layout.nbytes, dtype=torch.uint8)
    write_tensors(state, layout.views(flat))
    return cast(ByteArray, flat.numpy())
