"""``keisei config``: all settings of a preset, a file or a run, with explanations."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 110


def config(
    target: Annotated[str | None, typer.Argument(help="A preset, a settings file or a run.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting, as in keisei train.")
    ] = None,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
    explain: Annotated[bool, typer.Option("--explain", help="Explain each setting in a comment.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of all settings instead.")
    ] = False,
) -> None:
    """Print all settings of a run, defaults included, as YAML that `keisei train` reads. Without a target, list the
    presets."""
    from keisei.training.presets import find_source, load_preset, preset_names
    from keisei.training.settings import TrainConfig

    if schema:
        typer.echo(json.dumps(TrainConfig.model_json_schema(), indent=2))
    elif target is None:
        for name in preset_names():
            typer.echo(f"{name:20} {load_preset(name).about}")
    else:
        resolved = find_source(target, root).config(set_ or []).resolved()
        lines = _explained(resolved) if explain else [_yaml(resolved.model_dump(mode="json"))]
        typer.echo("\n".join(lines))


def _explained(settings: BaseModel, indent: str = "") -> Iterator[str]:
    """Writes YAML with the description of each setting as a comment above it."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        about = " ".join((field.description or type(value).__doc__ or "").split())
        if isinstance(value, BaseModel):
            yield from _comment(" ".join((type(value).__doc__ or about).split()), indent)
            yield f"{indent}{name}:"
            yield from _explained(value, indent + "  ")
            continue
        if field.description:
            yield from _comment(about, indent)
        dumped = settings.model_dump(mode="json", include={name})
        yield textwrap.indent(_yaml(dumped), indent)


def _comment(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _yaml(plain: dict[str, Any]) -> str:
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=WIDTH).rstrip("\n")
