"""``keisei serve``: the dashboard in a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from keisei.errors import ConfigError


def serve(
    runs_dir: Annotated[Path, typer.Argument(help="The folder of all runs.")] = Path("runs"),
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback need a token.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token; else KEISEI_TOKEN, else a new one.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="A further name of this machine in browsers; may be repeated.")
    ] = None,
) -> None:
    """Show all runs in a browser, live, and play against them. Ctrl-C ends it; training goes on."""
    from keisei.web.server import Server

    server = Server(runs_dir, host, port, _token(token_file), tuple(name or ()))
    access = server.access()
    listening = server.listen()
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    console = Console(highlight=False)
    console.print(Text(f"Runs in {runs_dir}: {address}", style="bold"), soft_wrap=True)
    if server.token is None:
        # What comes after # stays in the browser: it is in no request and in no log.
        console.print(Text(f"With buttons:  {address}#token={access.token}"), soft_wrap=True)
    else:
        console.print(Text("Buttons ask for your token."))
    server.uvicorn(access).run(sockets=[listening])


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("KEISEI_TOKEN") or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token cannot be read from {path}: {error}") from error
