"""What is wrong with settings, in the words of the person who wrote them: one line for each problem."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import Discriminator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from keisei.config.settings import Settings, shown

__all__ = ["classes_of", "problem_report", "problems_in", "settings_within"]


def problem_report(where: str, problems: Sequence[str]) -> str:
    """Writes a message that lists all problems, one in each line."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"{count} in {where}:", *(f"  {problem}" for problem in problems)])


def problems_in(cls: type[Settings], mapping: Mapping[str, Any], errors: list[ErrorDetails]) -> list[str]:
    """Lists one line for each wrong key, in the order in which pydantic found them."""
    lines: dict[str, str] = {}
    for error in errors:
        keys = _keys(cls, mapping, error)
        path = ".".join(map(str, keys))
        # A rule for all settings together has no path; its message names the settings.
        lines.setdefault(path, f"{path}{_explain(cls, keys, error)}".removeprefix(": "))
    return list(lines.values())


def _keys(cls: type[Settings], mapping: Mapping[str, Any], error: ErrorDetails) -> list[int | str]:
    """Translates the path of an error into the user's own mapping. Pydantic's paths also name the members of unions,
    which the user did not write; they are left out."""
    others = [names for part in settings_within(cls) for names in part.other_names.items()]
    keys: list[int | str] = []
    place: Any = mapping
    for part in error["loc"]:
        written = [part, *(theirs for theirs, ours in others if ours == part)]
        key = next((name for name in written if _has(place, name)), None)
        if key is not None:
            place = place[key]
            keys.append(key)
    return [*keys, error["loc"][-1]] if error["type"] == "missing" else keys


def _has(place: object, part: int | str) -> bool:
    if isinstance(place, Mapping):
        return part in place
    return isinstance(place, (list, tuple)) and isinstance(part, int) and part < len(place)


def _explain(cls: type[Settings], keys: Sequence[int | str], error: ErrorDetails) -> str:
    owner, field = _find_field(cls, keys, error["loc"])
    if error["loc"][-1:] == ("[key]",):
        table = _find_field(cls, keys[:-1], error["loc"])[1]
        return f": this name must be {_kind(get_args(table.annotation)[0])}" if table else ": wrong name"
    if error["type"] == "union_tag_invalid" and field is not None:
        names = error["ctx"]["expected_tags"].replace("'", "")
        return f".{_tag_of(field)} = {error['ctx']['tag']!r}: must be one of {names}"
    if error["type"] in ("extra_forbidden", "invalid_key"):
        right = cls.elsewhere.get(".".join(map(str, keys)))
        place = f"; its place is {right}" if right else _suggestion(str(keys[-1]) if keys else "", owner)
        return f": unknown setting{place}"
    allowed = _allowed(field) if field is not None else ""
    if error["type"] == "finite_number":
        allowed = allowed.replace("a number", "a finite number")
    if error["type"] == "missing":
        return f": missing; it must be {allowed}" if allowed else ": missing"
    if error["type"] in ("value_error", "assertion_error") or not allowed:
        # A rule of the class itself, with its own message.
        message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        value = "" if isinstance(error["input"], Mapping) else f" = {shown(error['input'])}"
        return f"{value}: {message}"
    return f" = {shown(error['input'])}: must be {allowed}"


def _find_field(
    cls: type[Settings], keys: Sequence[int | str], place: Sequence[int | str]
) -> tuple[type[Settings], FieldInfo | None]:
    """Finds the class that a path ends in, and the field if the path names one. ``place`` is pydantic's own path, which
    also names the class that the user has chosen of several."""
    owner, field = cls, None
    for key in keys:
        if field is not None and (entry := _entry(field.annotation)) is not None:
            field = FieldInfo.from_annotation(entry)
            continue
        if field is not None:
            inner = _chosen_class(field, place)
            if inner is None:
                return owner, field
            owner = inner
        field = owner.model_fields.get(owner.other_names.get(str(key), str(key)))
        if field is None:
            break
    return owner, field


def _entry(annotation: Any) -> Any:
    """Gets the type of the entries of a list or a table; None for other types."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return next(filter(None, map(_entry, arguments)), None)
    if origin in (list, tuple, Sequence, dict, Mapping) and arguments:
        return arguments[1 if origin in (dict, Mapping) else 0]
    return None


def _chosen_class(field: FieldInfo, place: Sequence[int | str]) -> type[Settings] | None:
    """Finds the class of a section. If there are several, the tag in the path decides."""
    tag = _tag_of(field)
    if tag is None:
        return next(classes_of(field.annotation), None)
    classes = classes_of(field.annotation)
    return next((cls for cls in classes if cls.model_fields[tag].default in place), None)


def _tag_of(field: FieldInfo) -> str | None:
    """Finds the setting by which the user chooses among several classes; None if there is one class."""
    chosen = field.discriminator
    return getattr(chosen.discriminator, "__name__", None) if isinstance(chosen, Discriminator) else None


def classes_of(annotation: Any) -> Iterator[type[Settings]]:
    """Yields the classes of settings that a value of this type may have."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from classes_of(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from classes_of(member)


def _suggestion(name: str, owner: type[Settings]) -> str:
    known = list(owner.model_fields)
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known settings are {', '.join(known) or 'none'}"


def _allowed(field: FieldInfo) -> str:
    """Describes what a field accepts, such as ``a whole number from 1 to 9 or null``; empty for an unusual type."""
    members = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else ()
    kinds = dict.fromkeys(
        _kind(member) for member in members or (field.annotation,) if member is not NoneType
    )
    if not all(kinds):
        return ""
    return f"{' or '.join(kinds)}{_bounds(field.metadata)}{' or null' if NoneType in members else ''}"


_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    NoneType: "null",
}


def _kind(annotation: Any) -> str:
    if annotation in _KINDS:
        return _KINDS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        rules = [rule for field in arguments[1:] for rule in getattr(field, "metadata", [field])]
        return f"{_kind(arguments[0])}{_bounds(rules)}" if _kind(arguments[0]) else ""
    if origin is Literal:
        return _one_of(arguments)
    if origin in (Union, UnionType):
        members = [_kind(member) for member in arguments]
        return " or ".join(members) if all(members) else ""
    if origin in (list, tuple, Sequence):
        kind = _kind(arguments[0]) if arguments else ""
        many = re.sub(r"\ba (table) of settings|\ba (whole number|number|text|path)\b", r"\1\2s", kind)
        return f"a list of {many}" if many != kind else "a list"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of([member.value for member in annotation])
    table = next(classes_of(annotation), None)
    if table is not None or origin in (dict, Mapping):
        return "a text or a table of settings" if table and table.text_is else "a table of settings"
    return ""


def _one_of(values: Iterable[object]) -> str:
    return f"one of {', '.join(map(str, values))}"


def _bounds(metadata: Sequence[object]) -> str:
    """Describes the range of a number or of a length: ``from 1 to 9``, ``at least 1``, ``above 0 and below 1``."""
    low, high, rest = "", "", ""
    for rule in metadata:
        if isinstance(rule, annotated_types.Ge):
            low = f"at least {_written(rule.ge)}"
        elif isinstance(rule, annotated_types.Gt):
            low = f"above {_written(rule.gt)}"
        elif isinstance(rule, annotated_types.Le):
            high = f"at most {_written(rule.le)}"
        elif isinstance(rule, annotated_types.Lt):
            high = f"below {_written(rule.lt)}"
        elif isinstance(rule, annotated_types.MultipleOf):
            rest += f", a multiple of {rule.multiple_of}"
        elif isinstance(rule, annotated_types.MinLen):
            rest += f", of length {rule.min_length} or more"
        elif isinstance(rule, annotated_types.MaxLen):
            rest += f", of length {rule.max_length} or less"
    if low.startswith("at least ") and high.startswith("at most "):
        return f" from {low.removeprefix('at least ')} to {high.removeprefix('at most ')}{rest}"
    bounds = " and ".join(filter(None, [low, high]))
    return f" {bounds}{rest}" if bounds else rest


def _written(bound: object) -> str:
    """Writes 1e12 as it is, and not with twelve zeros."""
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def settings_within(annotation: Any) -> Iterator[type[Settings]]:
    """Yields all settings classes in a type, and in their fields."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        yield annotation
        for field in annotation.model_fields.values():
            yield from settings_within(field.annotation)
    for argument in get_args(annotation):
        yield from settings_within(argument)
