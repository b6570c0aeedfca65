"""``keisei config``: all settings of a preset, a file, a run or a game, with explanations."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keisei.config import Settings

WIDTH = 110


def config(
    target: Annotated[str | None, typer.Argument(help="A preset, a settings file, a run or a game.")] = None,
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
    from keisei.cli.views.terminal import visible
    from keisei.training.presets import find_source, load_preset, preset_names

    if schema:
        typer.echo(_schema())
    elif target is None:
        names = preset_names()
        width = max(map(len, names))
        for name in names:
            typer.echo(f"{name:{width}} {load_preset(name).about}")
    else:
        source = find_source(target, root)
        resolved = source.config(set_ or []).resolved()
        lines = _explained(resolved) if explain else [_yaml(resolved.model_dump(mode="json"))]
        typer.echo(visible("\n".join([*_comment(source.chosen, ""), *lines])))


def _schema() -> str:
    from keisei.config import described_schema
    from keisei.training.settings import TrainConfig

    return json.dumps(described_schema(TrainConfig), indent=2)


def _explained(settings: Settings, indent: str = "") -> Iterator[str]:
    """Writes YAML with the description of each setting as a comment above it."""
    from keisei.config import Settings, descriptions

    texts = descriptions(type(settings))
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from _comment(type(value).__doc__ or "", indent)
            yield f"{indent}{name}:"
            yield from _explained(value, indent + "  ")
            continue
        yield from _comment(texts.get(name, ""), indent)
        dumped = settings.model_dump(mode="json", include={name})
        yield textwrap.indent(_yaml(dumped), indent)


def _comment(text: str, indent: str) -> Iterator[str]:
    words = " ".join(text.split())
    yield from textwrap.wrap(words, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _yaml(plain: dict[str, Any]) -> str:
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=WIDTH).rstrip("\n")
