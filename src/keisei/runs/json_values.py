"""Values that JSON can hold, and checks for those that it would change silently."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from keisei.errors import CheckpointError

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def check_json(what: str, value: Json, where: str = "") -> None:
    """Refuses values that JSON would change, such as tuples, keys that are numbers, and NaN."""
    if (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            check_json(what, item, f"{where}[{index}]")
    elif isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for key, item in value.items():
            check_json(what, item, f"{where}[{key!r}]")
    else:
        raise CheckpointError(
            f"{what}{where} is {value!r}, which JSON cannot give back as it was; use tables, lists, texts and finite "
            f"numbers"
        )


def finite(value: Json) -> Json:
    """Replaces NaN and infinity by null, since JSON does not have them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
