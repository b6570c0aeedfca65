"""The routes of the dashboard: what can be asked, and by what it is answered."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from keisei.config import parse_settings
from keisei.errors import KeiseiError, RunError
from keisei.runs.control import Action, ask
from keisei.runs.live import read_live
from keisei.web.access import TRUSTED, Access, Guard
from keisei.web.catalogue import Catalogue, NotFoundError
from keisei.web.details import curves_of, details_of
from keisei.web.lines import glimpse_frames
from keisei.web.pages import PAGES, read_files
from keisei.web.play import PlayedGame, offered_games, play, record
from keisei.web.players import Players
from keisei.web.prometheus import metrics_page
from keisei.web.records import record_text, replay_frame
from keisei.web.stream import Streams, TooManyError

__all__ = ["Dashboard", "make_app"]

T = TypeVar("T")
_USUAL_POINTS = 400
_MOST_NAMES = 64
"""Curves or runs that one request may ask for."""
_THINKERS = 2
"""Requests that may play moves or judge positions at once."""


def make_app(root: Path, access: Access, is_closing: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Gives the dashboard of the runs below a folder. ``is_closing`` tells whether the server ends."""
    return Guard(Dashboard(root, is_closing).starlette(), access)


class Dashboard:
    """Answers requests. Files are read in threads, so that one slow disk holds up nobody else."""

    def __init__(self, root: Path, is_closing: Callable[[], bool]) -> None:
        self.catalogue = Catalogue(root)
        self._players = Players(self.catalogue)
        self._streams = Streams(self.catalogue, is_closing)
        self._files = read_files()
        self._thinkers = asyncio.Semaphore(_THINKERS)
        # Hundreds of runs take a second to read; the first page need not wait for all of it.
        threading.Thread(target=self._read_ahead, daemon=True).start()

    def _read_ahead(self) -> None:
        with suppress(KeiseiError, OSError):
            self.catalogue.runs()

    def starlette(self) -> Starlette:
        pages = [Route(path, self._page(name)) for path, name in PAGES.items()]
        routes = [
            Route("/static/{name}", self._file),
            Route("/metrics", self._metrics),
            Route("/api/session", self._session),
            Route("/api/runs", self._runs),
            Route("/api/stream", self._stream),
            Route("/api/runs/{name}", self._run),
            Route("/api/runs/{name}/curves", self._curves),
            Route("/api/runs/{name}/board", self._board),
            Route("/api/runs/{name}/replay", self._replay),
            Route("/api/runs/{name}/record", self._record_file),
            Route("/api/runs/{name}/control", self._control, methods=["POST"]),
            Route("/api/games", self._games),
            Route("/api/play", self._play, methods=["POST"]),
            Route("/api/play/record", self._play_record, methods=["POST"]),
        ]
        handlers: Any = {KeiseiError: _told, HTTPException: _refused}
        return Starlette(routes=[*pages, *routes], exception_handlers=handlers)

    # Pages.

    def _page(self, name: str) -> Callable[[Request], Any]:
        async def page(request: Request) -> Response:
            return self._content(name)

        return page

    async def _file(self, request: Request) -> Response:
        return self._content(request.path_params["name"])

    def _content(self, name: str) -> Response:
        if name not in self._files:
            raise HTTPException(404, "there is no such page")
        content, kind = self._files[name]
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    async def _metrics(self, request: Request) -> Response:
        content = await run_in_threadpool(metrics_page, self.catalogue)
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    # Reading.

    async def _session(self, request: Request) -> Response:
        """Says whether the token was given, which lets a page show its buttons."""
        return _json({"trusted": request.scope[TRUSTED], "folder": self.catalogue.root.resolve().name})

    async def _runs(self, request: Request) -> Response:
        return _json({"runs": await run_in_threadpool(self.catalogue.rows)})

    async def _run(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        return _json(await run_in_threadpool(details_of, self.catalogue, run))

    async def _curves(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        names = request.query_params.getlist("metric")[:_MOST_NAMES]
        points = _number(request, "points", _USUAL_POINTS)
        return _json(await run_in_threadpool(curves_of, run, names, points))

    async def _board(self, request: Request) -> Response:
        name = request.path_params["name"]
        live = read_live(self.catalogue.run(name))
        if live is None or live.board is None:
            raise HTTPException(404, "no game can be watched yet")
        glimpse = live.board

        def draw() -> dict[str, Any]:
            return glimpse_frames(*self._players.game_of(name), glimpse)

        return _json(await self._think(draw))

    async def _replay(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        wanted = request.query_params.get("record", "")
        ply, view = _number(request, "ply", 0), _number(request, "view", 0)
        players = None if request.query_params.get("judge") == "0" else self._players
        return _json(await self._think(lambda: replay_frame(players, run, wanted, ply, view)))

    async def _record_file(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        name, text = record_text(run, request.query_params.get("record", ""))
        return _download(name, text)

    async def _stream(self, request: Request) -> Response:
        events = self._streams.open(request.query_params.get("run", ""))
        return StreamingResponse(
            events, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    # Acting.

    async def _control(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        if not request.scope[TRUSTED]:
            raise HTTPException(401, "this needs the token; the terminal of keisei serve shows it")
        body = await _body(request)
        worker = body.get("worker")
        if (
            body.get("action") not in list(Action)
            or not isinstance(worker, int | None)
            or isinstance(worker, bool)
        ):
            known = ", ".join(Action)
            raise HTTPException(400, f"a request has an action ({known}) and perhaps the number of a worker")
        asked = await run_in_threadpool(ask, run, Action(body["action"]), worker)
        return _json({"id": asked.id, "action": asked.action.value}, 202)

    # Playing.

    async def _games(self, request: Request) -> Response:
        return _json({"games": await run_in_threadpool(offered_games, self._players)})

    async def _play(self, request: Request) -> Response:
        wanted = parse_settings(PlayedGame, await _body(request), "the request")
        return _json(await self._think(lambda: play(self._players, wanted)))

    async def _play_record(self, request: Request) -> Response:
        wanted = parse_settings(PlayedGame, await _body(request), "the request")
        return _download(*await self._think(lambda: record(self._players, wanted)))

    async def _think(self, work: Callable[[], T]) -> T:
        async with self._thinkers:
            return await run_in_threadpool(work)


async def _body(request: Request) -> dict[str, Any]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "a request is application/json")
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "a request is a JSON object")
    return body


def _number(request: Request, name: str, usual: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else usual


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers={"cache-control": "no-store"})


def _download(name: str, text: str) -> Response:
    return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{name}"'})


async def _told(request: Request, error: Exception) -> Response:
    """Answers with an error that Keisei raised on purpose."""
    status = 404 if isinstance(error, NotFoundError) else 503 if isinstance(error, TooManyError) else 400
    if isinstance(error, RunError) and status == 400 and request.method == "POST":
        status = 409
    return _json({"error": str(error)}, status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json({"error": error.detail}, error.status_code)
