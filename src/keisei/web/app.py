"""The routes of the dashboard: each address, and the function that answers it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from keisei.errors import KeiseiError, RunError
from keisei.runs.control import Action, ask
from keisei.runs.directory import RunDirectory
from keisei.web.access import TRUSTED, Access, Guard
from keisei.web.catalogue import Catalogue, NotFoundError, flattened
from keisei.web.details import curves_of, details_of
from keisei.web.ordering import ORDERS
from keisei.web.pages import MISSING, PAGES, read_files
from keisei.web.play import PERSON
from keisei.web.prometheus import metrics_page
from keisei.web.records import record_text
from keisei.web.stream import Streams, TooManyError
from keisei.web.thinkers import Thinkers, ThinkingError

__all__ = ["Dashboard"]

_USUAL_POINTS = 400
_MOST_NAMES = 64
"""Curves or runs that one request may ask for."""


class Dashboard:
    """Answers requests. Files are read in threads, so that one slow disk delays no other request. Code of games and
    networks runs in other processes."""

    def __init__(
        self,
        root: Path,
        is_closing: Callable[[], bool] = lambda: False,
        presets: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        """``is_closing`` tells whether the server ends. ``presets`` gives the settings of all presets."""
        self.catalogue = Catalogue(root)
        self._presets = cache(lambda: {name: dict(flattened(found)) for name, found in presets().items()})
        self._streams = Streams(self.catalogue, is_closing)
        self._files = read_files()
        self._thinkers = Thinkers(root)
        # Hundreds of runs take a second to read; the first page need not wait for all of it.
        threading.Thread(target=self._read_ahead, daemon=True).start()

    def _read_ahead(self) -> None:
        with suppress(KeiseiError, OSError):
            self.catalogue.runs()

    def _details(self, run: RunDirectory) -> dict[str, Any]:
        return details_of(self.catalogue, run, self._presets())

    def close(self) -> None:
        """Ends all thoughts. Streams end when the server does."""
        self._thinkers.close()

    def app(self, access: Access) -> ASGIApp:
        return Guard(self._starlette(), access)

    def _starlette(self) -> Starlette:
        pages = [Route(path, self._page(name)) for path, name in PAGES.items()]
        routes = [
            Route("/static/{name}", self._file),
            Route("/metrics", self._metrics),
            Route("/api/session", self._session),
            Route("/api/runs", self._runs),
            Route("/api/stream", self._stream),
            Route("/api/means", self._means),
            Route("/api/runs/{name:path}/curves", self._curves),
            Route("/api/runs/{name:path}/board", self._board),
            Route("/api/runs/{name:path}/replay", self._replay),
            Route("/api/runs/{name:path}/record", self._record_file),
            Route("/api/runs/{name:path}/control", self._control, methods=["POST"]),
            *(
                Route(f"/api/runs/{{name:path}}/{order}", self._ordered(order), methods=["POST"])
                for order in ORDERS
            ),
            Route("/api/runs/{name:path}", self._run),
            Route("/api/games", self._games),
            Route("/api/players", self._players),
            Route("/api/play", self._play, methods=["POST"]),
            Route("/api/play/record", self._play_record, methods=["POST"]),
        ]
        handlers: Any = {KeiseiError: _told, HTTPException: self._refused, ClientDisconnect: _left_alone}
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

    async def _refused(self, request: Request, error: Exception) -> Response:
        """Answers a request that is refused: with a page if a browser asks for one that is not there, else with
        JSON."""
        assert isinstance(error, HTTPException)
        if error.status_code == 404 and _is_page_wanted(request):
            content, kind = self._files[MISSING]
            return Response(content, 404, media_type=kind, headers={"cache-control": "no-cache"})
        return _json({"error": error.detail}, error.status_code)

    # Reading.

    async def _session(self, request: Request) -> Response:
        """Says whether the token was given, which lets a page show its buttons."""
        return _json({"trusted": request.scope[TRUSTED], "folder": self.catalogue.root.resolve().name})

    async def _runs(self, request: Request) -> Response:
        return _json({"runs": await run_in_threadpool(self.catalogue.rows)})

    async def _run(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        return _json(await run_in_threadpool(self._details, run))

    async def _curves(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        names = request.query_params.getlist("metric")[:_MOST_NAMES]
        points = _number(request, "points", _USUAL_POINTS)
        return _json(await run_in_threadpool(curves_of, run, names, points))

    async def _means(self, request: Request) -> Response:
        folder = request.query_params.get("folder", "")
        names = request.query_params.getlist("metric")[:_MOST_NAMES]
        points = min(_USUAL_POINTS, _number(request, "points", _USUAL_POINTS))
        return _json(await self._think(request, "averaged", folder, names, points))

    async def _board(self, request: Request) -> Response:
        return _json(await self._think(request, "watched", request.path_params["name"], needs_torch=False))

    async def _replay(self, request: Request) -> Response:
        run, record = request.path_params["name"], request.query_params.get("record", "")
        ply, view = _number(request, "ply", 0), _number(request, "view", 0)
        judged = request.query_params.get("judge") != "0"
        shown = (run, record, ply, view, judged)
        return _json(await self._think(request, "replayed", *shown, needs_torch=judged))

    async def _record_file(self, request: Request) -> Response:
        run = self.catalogue.run(request.path_params["name"])
        return _download(await run_in_threadpool(record_text, run, request.query_params.get("record", "")))

    async def _stream(self, request: Request) -> Response:
        return self._streams.open(request.query_params.get("run", ""))

    # Acting.

    async def _control(self, request: Request) -> Response:
        run = self._trusted_run(request)
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

    def _ordered(self, order: str) -> Callable[[Request], Any]:
        async def ordered(request: Request) -> Response:
            run = self._trusted_run(request)
            return _json(await run_in_threadpool(ORDERS[order], run, await _body(request)))

        return ordered

    def _trusted_run(self, request: Request) -> RunDirectory:
        """Gets the run of a request that changes something."""
        run = self.catalogue.run(request.path_params["name"])
        if not request.scope[TRUSTED]:
            raise HTTPException(401, "this needs the token; the terminal of keisei serve shows it")
        return run

    # Playing.

    async def _games(self, request: Request) -> Response:
        return _json(await self._think(request, "offered", request.query_params.get("run", "")))

    async def _players(self, request: Request) -> Response:
        game = request.query_params.get("game", "")
        return _json({"runs": await run_in_threadpool(self.catalogue.players_of, game)})

    async def _play(self, request: Request) -> Response:
        wanted = await _body(request)
        return _json(await self._think(request, "played", wanted, needs_torch=_names_players(wanted)))

    async def _play_record(self, request: Request) -> Response:
        return _download(await self._think(request, "recorded", await _body(request), needs_torch=False))

    async def _think(self, request: Request, thought: str, *arguments: Any, needs_torch: bool = True) -> Any:
        """Waits for a thought as long as the client does."""
        thinking = asyncio.ensure_future(self._thinkers.think(thought, *arguments, needs_torch=needs_torch))
        leaving = asyncio.ensure_future(_has_left(request))
        try:
            await asyncio.wait((thinking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not thinking.done():
                raise ClientDisconnect
            return thinking.result()
        finally:
            thinking.cancel()
            leaving.cancel()


async def _has_left(request: Request) -> None:
    """Ends when the client has left. Its request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _names_players(wanted: dict[str, Any]) -> bool:
    """Checks if a game has a player or a judge that is no person."""
    seats = wanted.get("seats", [])
    return bool(wanted.get("judge")) or not isinstance(seats, list) or any(seat != PERSON for seat in seats)


def _is_page_wanted(request: Request) -> bool:
    """Checks if a browser was pointed at an address. Scripts of pages and programs do not ask for HTML."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


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


def _download(file: tuple[str, str]) -> Response:
    """Sends a file, given its name and its text."""
    name, text = file
    return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{name}"'})


async def _told(request: Request, error: Exception) -> Response:
    """Answers with an error that Keisei raised on purpose."""
    is_busy = isinstance(error, TooManyError | ThinkingError)
    status = 404 if isinstance(error, NotFoundError) else 503 if is_busy else 400
    if isinstance(error, RunError) and status == 400 and request.method == "POST":
        status = 409
    return _json({"error": str(error)}, status)


async def _left_alone(request: Request, error: Exception) -> Response:
    """Answers a client that has left. Nobody reads this answer."""
    return _json({"error": "the client has left"}, 400)
