"""The texts below the settings of a class, and its JSON schema with them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from keisei.config.problems import settings_within
from keisei.config.settings import Settings

__all__ = ["described_schema", "descriptions"]


def descriptions(cls: type[Settings]) -> dict[str, str]:
    """Reads the text below each setting of a class from its source. Pydantic can do this for every class when it is
    defined, but then each start of a command takes a third longer."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Settings):
            found |= _texts_below_fields(base)
    return {name: found[name] for name in cls.model_fields if name in found}


def described_schema(cls: type[Settings]) -> dict[str, Any]:
    """Makes the JSON schema of a class, with the descriptions."""
    schema = cls.model_json_schema()
    for part in settings_within(cls):
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
