"""``keisei serve``: the dashboard in a browser."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError

_LONGEST_TOKEN = 4096


def serve(
    runs_dir: Annotated[
        Path | None, typer.Argument(help="The folder of all runs, by default runs/.", show_default=False)
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="The same folder, as other commands take it.", show_default=False)
    ] = None,
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
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Reading needs the token too; without this, other users of this machine may look.",
        ),
    ] = False,
) -> None:
    """Show all runs in a browser, live, and play against them. Ctrl-C ends it; training goes on."""
    from keisei.training.presets import resolved_presets
    from keisei.web.server import Server

    folder = _folder(runs_dir, root)
    server = Server(folder, host, port, _token(token_file), tuple(name or ()), private, resolved_presets)
    access = server.access()
    _check_folder(folder)
    listening = server.listen()
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    console = Terminal(highlight=False)
    console.print(Text(f"Runs in {folder}: {address}", style="bold"), soft_wrap=True)
    if server.token is None:
        # What comes after # stays in the browser: it is in no request and in no log.
        with_token = "With buttons" if access.reading_is_free else "With the token"
        console.print(Text(f"{with_token}:  {address}#token={access.token}"), soft_wrap=True)
    else:
        console.print(Text(f"{'Buttons ask' if access.reading_is_free else 'Pages ask'} for your token."))
    server.uvicorn(access).run(sockets=[listening])


def _folder(argument: Path | None, option: Path | None) -> Path:
    if argument is not None and option is not None and argument != option:
        raise ConfigError(f"{argument} and --root {option} are two folders; name the one to show")
    return argument or option or Path("runs")


def _check_folder(folder: Path) -> None:
    """Refuses a folder that is not there. It may be a mistyped one, and then no run would ever appear."""
    if folder.is_dir():
        return
    what = "is not a folder" if os.path.lexists(folder) else "does not exist"
    raise ConfigError(
        f"the folder of runs {folder} {what}. Train a run, which makes it (keisei train tictactoe-ppo --root "
        f"{shlex.quote(str(folder))}), make it by hand, or name another: keisei serve --root FOLDER"
    )


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("KEISEI_TOKEN") or None
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            _check_that_others_cannot_read(path, os.fstat(file.fileno()))
            return file.read(_LONGEST_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token cannot be read from {path}: {error}; {_way_to_make(path)}") from error


def _check_that_others_cannot_read(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is no plain file, and a token is read from no other; {_way_to_make(path)}")
    if found.st_mode & 0o077:
        raise ConfigError(
            f"others may read or change the token in {path}: its mode is {stat.S_IMODE(found.st_mode):03o}. They may "
            f"have it already, so make a new one: rm {shlex.quote(str(path))}, and then {_way_to_make(path)}"
        )
    if found.st_uid not in (0, os.geteuid()):
        raise ConfigError(f"{path} belongs to another user, who knows the token; {_way_to_make(path)}")


def _way_to_make(path: Path) -> str:
    return f"this makes one: (umask 077; head -c 24 /dev/urandom | base64 > {shlex.quote(str(path))})"
