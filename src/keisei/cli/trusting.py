"""``--trust RUN``, an option of every command that reads runs: the run may import the code that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from keisei.cli.views.terminal import Terminal

__all__ = ["taking_trust", "trust_runs"]

_HELP = "Trust a run, by its name or its path: it may import the code that it names. This is remembered."
_OPTION = Annotated[list[str] | None, typer.Option("--trust", metavar="RUN", help=_HELP)]
_ROOTS = ("root", "runs_dir")
"""The parameters of commands that name the folder of all runs."""


def taking_trust(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option to the function of a command that reads runs. It is obeyed before the command begins."""
    parameters = signature(command, eval_str=True).parameters
    roots = [name for name in _ROOTS if name in parameters]
    if not roots:
        return command

    def trusting(*, trust: Sequence[str] | None, **given: Any) -> Any:
        trust_runs(trust or (), Path(next((given[name] for name in roots if given[name]), "runs")))
        return command(**given)

    option = Parameter("trust", Parameter.KEYWORD_ONLY, default=None, annotation=_OPTION)
    together = [*parameters.values(), option]
    trusting.__doc__ = command.__doc__
    trusting.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
    trusting.__signature__ = Signature(together)  # type: ignore[attr-defined]  # typer reads it
    return trusting


def trust_runs(texts: Sequence[str], root: Path) -> None:
    """Trusts runs, and says what they may import now."""
    if not texts:
        return
    from keisei.policies.players.finding import find_run
    from keisei.policies.trust import trust_run

    for text in texts:
        run = find_run(text, root)
        code = trust_run(run)
        told = ", ".join(f"{name} from {place or 'nowhere yet'}" for name, place in code.items())
        Terminal(stderr=True, highlight=False).print(
            Text(
                f"{run.path} may use {told}"
                if code
                else f"{run.path} names no code of its own; there is nothing to trust"
            ),
            soft_wrap=True,
        )
