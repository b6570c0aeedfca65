"""What a thinker can be asked: to play, to judge and to draw. It runs in a process of its own.

Code of games and networks runs here and nowhere else in the dashboard. So it may take as long as it likes, hold the
interpreter or crash: the server ends the process and starts another. Questions and answers are lines of JSON.
"""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from socket import socket
from typing import Any

from keisei.config import parse_settings
from keisei.errors import KeiseiError, in_one_line
from keisei.machine.new_processes import end_with_parent
from keisei.runs.live import read_live
from keisei.web.catalogue import Catalogue, NotFoundError
from keisei.web.lines import glimpse_frames
from keisei.web.play import PlayedGame, offered_games, offered_run, play, record
from keisei.web.players import Players
from keisei.web.records import replay_frame

__all__ = ["serve_thoughts"]


def watched(players: Players, run: str) -> dict[str, Any]:
    """Draws the last plies of a self-play game."""
    live = read_live(players.catalogue.run(run))
    if live is None or live.board is None:
        raise NotFoundError("no game can be watched yet")
    return glimpse_frames(*players.game_of(run), live.board)


def replayed(players: Players, run: str, record: str, ply: int, view: int, judged: bool) -> dict[str, Any]:
    """Draws a position of a finished game, and judges it if asked to."""
    return replay_frame(players if judged else None, players.catalogue.run(run), record, ply, view)


def averaged(players: Players, folder: str, names: list[str], points: int) -> dict[str, Any]:
    """Computes the means over the runs of a folder."""
    from keisei.web.means import means_of  # Student's quantile comes with torch

    return means_of(players.catalogue, folder, names, points)


def offered(players: Players, run: str) -> dict[str, Any]:
    """Describes the game of a run, or all games that have a name."""
    return {"games": [offered_run(players, run)] if run else offered_games(players)}


def played(players: Players, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return play(players, _game(wanted))


def recorded(players: Players, wanted: Mapping[str, Any]) -> tuple[str, str]:
    return record(players, _game(wanted))


def warmed_up(players: Players) -> None:
    """Imports what players need, torch above all. It takes seconds, which is too long for a thought."""
    import torch

    import keisei.policies.players.saved_player  # noqa: F401

    torch.set_num_threads(1)  # the cores belong to training


def there(players: Players) -> None:
    """Answers as soon as the process has started."""


_KNOWN: Mapping[str, Callable[..., Any]] = {
    thought.__name__: thought
    for thought in (watched, replayed, averaged, offered, played, recorded, warmed_up, there)
}


def serve_thoughts(line: socket, root: Path) -> None:
    """Answers one question after another, until the other end of the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the server alone reacts
    end_with_parent()
    players = Players(Catalogue(root))
    with line, line.makefile("rwb") as file:
        for question in file:
            thought, arguments = json.loads(question)
            file.write(_answer(players, _KNOWN[thought], arguments) + b"\n")
            file.flush()


def _answer(players: Players, thought: Callable[..., Any], arguments: list[Any]) -> bytes:
    """Encodes the result of a thought, or the error that it raised, by its class."""
    try:
        return json.dumps({"found": thought(players, *arguments)}).encode()
    except KeiseiError as error:
        kind, text = type(error).__name__, str(error)
    except Exception as error:
        logging.getLogger(__name__).exception("a thought for a page has failed")
        kind, text = KeiseiError.__name__, f"thinking about this has failed: {in_one_line(error)}"
    return json.dumps({"error": kind, "text": text}).encode()


def _game(wanted: Mapping[str, Any]) -> PlayedGame:
    return parse_settings(PlayedGame, wanted, "the request")
