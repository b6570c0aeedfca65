"""Typed settings: one small class for each part, and errors that list all problems at once.

A part declares its settings as a ``Settings`` class with a text below each field. ``parse_settings`` fills it from a
mapping (a YAML file, or keywords). ``apply_overrides`` changes the mapping first, as ``--set`` asks. ``descriptions``
reads the texts. This module imports neither torch nor any part, so every module may import it.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import logging
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from keisei.errors import ConfigError

__all__ = [
    "Settings",
    "apply_overrides",
    "chosen_by",
    "described_schema",
    "descriptions",
    "parse_settings",
    "problem_report",
]

logger = logging.getLogger(__name__)


class Settings(BaseModel):
    """The base of all settings: frozen. Unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Settings that people look for in the wrong place: the path that they write, and the right one."""
    other_names: ClassVar[Mapping[str, str]] = {}
    """Names of settings in other systems, and ours."""
    other_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {}
    """By setting: values that earlier versions wrote, and ours."""
    gone: ClassVar[Mapping[str, Any]] = {}
    """Settings of earlier versions, and the value with which they did nothing. Runs that have them go on."""
    text_is: ClassVar[str] = ""
    """The setting that a text stands for where a table is expected; empty if a text is refused there."""

    @model_validator(mode="before")
    @classmethod
    def _in_our_names(cls, given: Any) -> Any:
        if isinstance(given, str) and cls.text_is:
            return {cls.text_is: given}
        if not isinstance(given, Mapping) or not (cls.other_names or cls.other_values or cls.gone):
            return given
        for name in cls.gone.keys() & given.keys():
            if given[name] != cls.gone[name]:
                _tell_once(
                    f"{name}: {_shown(given[name])} is a setting of an earlier version, and does nothing now"
                )
        for theirs, ours in cls.other_names.items():
            if theirs in given and ours in given:
                raise ValueError(f"{theirs} and {ours} are two ways to say one thing; leave out {theirs}")
        kept = {name: value for name, value in given.items() if name not in cls.gone}
        for name in cls.other_values.keys() & kept.keys():
            kept[name] = renamed(kept[name], cls.other_values[name])
        return {cls.other_names.get(name, name): value for name, value in kept.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _keep_booleans_apart(cls, value: object, info: ValidationInfo) -> object:
        """Refuses true and false for numbers: ``batch: true`` is a mistake, and Python would read it as
        ``batch: 1``."""
        if isinstance(value, bool) and not _accepts_bool(cls.model_fields[str(info.field_name)].annotation):
            raise PydanticCustomError("not_a_boolean", "true and false are not values of this setting")
        return value


def renamed(value: Any, names: Mapping[Any, Any]) -> Any:
    """Gives our name of a value that has another one in ``names``, and any other value as it is."""
    return names.get(value, value) if isinstance(value, str) else value


@cache
def _tell_once(text: str) -> None:
    logger.warning(text)


def chosen_by(name: str, default: str, earlier: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Makes a section with several classes of settings. The setting ``name`` chooses one: each class has it, with its
    own ``Tag`` as the only value. ``earlier`` are tags of earlier versions, and ours."""

    def tag(given: object) -> str:
        if isinstance(given, Settings):
            return str(getattr(given, name))
        return str(renamed(given.get(name, default), earlier)) if isinstance(given, Mapping) else default

    tag.__name__ = name  # errors name the setting by it
    return Field(discriminator=Discriminator(tag))


AnySettings = TypeVar("AnySettings", bound=Settings)


def parse_settings(
    cls: type[AnySettings], mapping: Mapping[str, Any] | None, where: str = "settings"
) -> AnySettings:
    """Builds ``cls`` from a mapping, or raises one ``ConfigError`` that lists all problems.

    ``where`` names the source in the message, such as the path of a file. None stands for an empty file.
    """
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where} must hold a table of settings (key: value), got {_shown(mapping)}")
    try:
        return cls.model_validate(dict(mapping))
    except ValidationError as error:
        problems = _problems(cls, mapping, error.errors(include_url=False))
    raise ConfigError(problem_report(where, problems)) from None


def apply_overrides(mapping: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Applies assignments such as ``learner.clip=0.1`` to a copy of a mapping and returns the copy.

    Values are read as YAML, so ``a=3`` is a number, ``a=[1, 2]`` a list and ``a=null`` None.
    """
    result = deepcopy(dict(mapping))
    problems = []
    for override in overrides:
        try:
            _assign(result, override)
        except ValueError as error:
            problems.append(f"{override}: {error}")
    if problems:
        raise ConfigError(problem_report("--set", problems))
    return result


def descriptions(cls: type[Settings]) -> dict[str, str]:
    """Gives the text below each setting of a class. It is read from the source when it is asked for. Pydantic can
    do the same for every class, but then each start of a command takes a third longer."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Settings):
            found |= _texts_below_fields(base)
    return {name: found[name] for name in cls.model_fields if name in found}


def described_schema(cls: type[Settings]) -> dict[str, Any]:
    """Gives the JSON schema of a class, with the descriptions."""
    schema = cls.model_json_schema()
    for part in _settings_within(cls):
        properties = (schema if part is cls else schema["$defs"][part.__name__])["properties"]
        for name, text in descriptions(part).items():
            properties[name]["description"] = text
    return schema


def _texts_below_fields(cls: type[Settings]) -> dict[str, str]:
    (source,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(source, ast.ClassDef)
    found = {}
    for field, below in pairwise(source.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def _settings_within(annotation: Any) -> Iterator[type[Settings]]:
    """Gives all settings classes in a type, and in their fields."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _settings_within(field.annotation)
    for argument in get_args(annotation):
        yield from _settings_within(argument)


def _assign(mapping: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals:
        raise ValueError("write it as key=value")
    if not all(parts):
        raise ValueError(f"{key!r} is not a key; write it as part.setting=value")
    import yaml  # `keisei games` needs settings and no YAML

    try:
        value = _number_or_itself(yaml.safe_load(text))
    except yaml.YAMLError:
        raise ValueError(f"{text!r} is not valid YAML; put quotes around a text with special signs") from None
    table = mapping
    for depth, part in enumerate(parts[:-1], start=1):
        child = table.get(part)
        if child is None:
            child = table[part] = {}
        if not isinstance(child, dict):
            raise ValueError(f"{'.'.join(parts[:depth])} is {_shown(child)} and has no settings below it")
        table = child
    table[parts[-1]] = value


def _number_or_itself(value: object) -> object:
    """Reads ``1e-3`` as a number, which YAML 1.1 reads as text."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)
    return value


def problem_report(where: str, problems: Sequence[str]) -> str:
    """Gives a message that lists all problems, one in each line."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"{count} in {where}:", *(f"  {problem}" for problem in problems)])


def _problems(cls: type[Settings], mapping: Mapping[str, Any], errors: list[ErrorDetails]) -> list[str]:
    """Gives one line for each wrong key, in the order in which pydantic found them."""
    lines: dict[str, str] = {}
    for error in errors:
        keys = _keys(cls, mapping, error)
        path = ".".join(map(str, keys))
        # A rule for all settings together has no path; its message names the settings.
        lines.setdefault(path, f"{path}{_explain(cls, keys, error)}".removeprefix(": "))
    return list(lines.values())


def _keys(cls: type[Settings], mapping: Mapping[str, Any], error: ErrorDetails) -> list[int | str]:
    """Gives the path of an error in the user's own mapping, with the names that the user wrote. Pydantic's paths also
    name the members of unions, which the user did not write; they are left out."""
    others = [names for part in _settings_within(cls) for names in part.other_names.items()]
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
        shown = "" if isinstance(error["input"], Mapping) else f" = {_shown(error['input'])}"
        return f"{shown}: {message}"
    return f" = {_shown(error['input'])}: must be {allowed}"


def _find_field(
    cls: type[Settings], keys: Sequence[int | str], place: Sequence[int | str]
) -> tuple[type[Settings], FieldInfo | None]:
    """Gives the class that a path ends in, and the field if the path names one. ``place`` is pydantic's own path,
    which also names the class that the user has chosen of several."""
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
    """Gives the type of the entries of a list or a table; None for other types."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return next(filter(None, map(_entry, arguments)), None)
    if origin in (list, tuple, Sequence, dict, Mapping) and arguments:
        return arguments[1 if origin in (dict, Mapping) else 0]
    return None


def _chosen_class(field: FieldInfo, place: Sequence[int | str]) -> type[Settings] | None:
    """Gives the class of a section. Of several, it is the one whose tag is in the path."""
    tag = _tag_of(field)
    if tag is None:
        return _settings_class(field.annotation)
    classes = map(_settings_class, get_args(field.annotation))
    return next((cls for cls in classes if cls and cls.model_fields[tag].default in place), None)


def _tag_of(field: FieldInfo) -> str | None:
    """Gives the setting by which the user chooses among several classes; None if there is one class."""
    chosen = field.discriminator
    return getattr(chosen.discriminator, "__name__", None) if isinstance(chosen, Discriminator) else None


def _settings_class(annotation: Any) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    if get_origin(annotation) is Annotated:
        return _settings_class(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_settings_class, get_args(annotation))), None)
    return None


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
    table = _settings_class(annotation)
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


def _accepts_bool(annotation: Any) -> bool:
    """Whether a type may accept true and false. Numbers, texts and choices do not."""
    if get_origin(annotation) is Annotated:
        return _accepts_bool(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return any(map(_accepts_bool, get_args(annotation)))
    if get_origin(annotation) is Literal:
        return any(isinstance(value, bool) for value in get_args(annotation))
    return annotation not in (int, float, str, Path, NoneType)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
