"""The base of all settings, and the rules that a setting may declare."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

__all__ = ["AnySettings", "Rule", "Settings", "chosen_by", "shown"]

logger = logging.getLogger(__name__)


class Rule(Enum):
    """What may happen to a setting when a run is resumed."""

    FREE = "free"
    """It may change, and the experiment is the same: the placement, the length, evaluations, checkpoints."""
    ANNOUNCED = "announced"
    """It may change, since the checkpoint still fits. It changes what is learned, so the run tells and stores it."""
    NEVER = "never"
    """The checkpoint or its games would not fit any more."""


class Settings(BaseModel):
    """The base of all settings: frozen. Unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    on_change: ClassVar[Rule] = Rule.NEVER
    """What may happen to these settings when a run is resumed. A setting says it in its type if it differs."""
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

    @classmethod
    def rule_of(cls, name: str) -> Rule:
        """Gets what may happen to a setting when a run is resumed."""
        said = [mark for mark in cls.model_fields[name].metadata if isinstance(mark, Rule)]
        return said[-1] if said else cls.on_change

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
                    f"{name}: {shown(given[name])} is a setting of an earlier version, and does nothing now"
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
    """Translates a value that has another name in ``names`` to ours. Any other value stays as it is."""
    return names.get(value, value) if isinstance(value, str) else value


@cache
def _tell_once(text: str) -> None:
    logger.warning(text)


def chosen_by(name: str, default: str, earlier: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Makes a section with several classes of settings. The setting ``name`` chooses one: each class has it, with its
    own ``Tag`` as the only value. ``earlier`` maps tags of earlier versions to today's."""

    def tag(given: object) -> str:
        if isinstance(given, Settings):
            return str(getattr(given, name))
        return str(renamed(given.get(name, default), earlier)) if isinstance(given, Mapping) else default

    tag.__name__ = name  # errors name the setting by it
    return Field(discriminator=Discriminator(tag))


AnySettings = TypeVar("AnySettings", bound=Settings)


def _accepts_bool(annotation: Any) -> bool:
    """Checks if a type may accept true and false. Numbers, texts and choices do not."""
    if get_origin(annotation) is Annotated:
        return _accepts_bool(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return any(map(_accepts_bool, get_args(annotation)))
    if get_origin(annotation) is Literal:
        return any(isinstance(value, bool) for value in get_args(annotation))
    return annotation not in (int, float, str, Path, NoneType)


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
