"""All numbers among the settings of a run, with their ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from keisei.config import Settings

Place: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Number:
    """A setting that is a number, or a number within one."""

    place: Place
    """The names that lead to it. ``[]`` is an entry of a list or table, and ``[key]`` a key."""
    kind: type
    rules: tuple[object, ...]

    @property
    def path(self) -> str:
        return ".".join(self.place)

    @property
    def lowest(self) -> float | None:
        """The smallest value; None without one."""
        return self._bound(annotated_types.Ge, annotated_types.Gt, 1)

    @property
    def highest(self) -> float | None:
        return self._bound(annotated_types.Le, annotated_types.Lt, -1)

    def _bound(self, closed: Any, open_: Any, inwards: int) -> float | None:
        for rule in self.rules:
            if isinstance(rule, closed):
                found: float = getattr(rule, closed.__name__.lower())
                return found
            if isinstance(rule, open_):
                found = getattr(rule, open_.__name__.lower())
                return found + inwards * (1 if self.kind is int else 1e-12)
        return None


def numbers_of(cls: type[Settings], place: Place = ()) -> Iterator[Number]:
    for name, field in cls.model_fields.items():
        yield from _numbers_in(field.annotation, field.metadata, (*place, name))


def _numbers_in(annotation: Any, rules: list[Any], place: Place) -> Iterator[Number]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *more = arguments
        yield from _numbers_in(inner, [*rules, *_flat(more)], place)
    elif origin in (Union, UnionType):
        for argument in arguments:
            yield from _numbers_in(argument, rules, place)
    elif origin in (list, tuple, dict, Mapping):
        for step, argument in zip(("[key]", "[]")[-len(arguments) :], arguments, strict=False):
            yield from _numbers_in(argument, [], (*place, step if origin in (dict, Mapping) else "[]"))
    elif isinstance(annotation, type) and issubclass(annotation, Settings):
        yield from numbers_of(annotation, place)
    elif annotation in (int, float):
        yield Number(place, annotation, tuple(rules))
    else:
        assert origin is Literal or annotation in (str, bool, Any, NoneType, Ellipsis), annotation


def _flat(rules: list[Any]) -> list[Any]:
    return [each for rule in rules for each in (rule.metadata if isinstance(rule, FieldInfo) else [rule])]
