"""The pages, scripts and styles. They are read once, from the package alone: no request names a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from string import Template

from keisei.runs import metric_names

__all__ = ["MISSING", "PAGES", "read_files"]

PAGES = {"/": "runs.html", "/run/{name:path}": "run.html", "/compare": "compare.html", "/play": "play.html"}
"""The pages, by their paths."""
MISSING = "missing.html"
"""The page for every other path."""
_TITLES = {
    "runs": "Runs",
    "run": "Run",
    "compare": "Compare",
    "play": "Play",
    "missing": "No such page",
}
"""By the script that fills a page: its title."""
_LOADING = '<p class="empty">Loading …</p>'
_NOT_THERE = (
    '<div class="card empty"><strong>There is no such page</strong>Perhaps the address has a letter too many. '
    '<a href="/">All runs</a> · <a href="/play">Play</a></div>'
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read_files() -> dict[str, tuple[bytes, str]]:
    """Gets the content and the type of all files, by name."""
    contents = dict(_packaged())
    page = Template(contents.pop("page.html").decode())
    for name, title in _TITLES.items():
        main = _NOT_THERE if f"{name}.html" == MISSING else _LOADING
        contents[f"{name}.html"] = page.substitute(title=title, script=f"{name}.js", main=main).encode()
    contents["metric_names.js"] = _metric_names().encode()
    return {name: (content, _TYPES[_suffix(name)]) for name, content in contents.items()}


def _packaged() -> Iterator[tuple[str, bytes]]:
    for folder in ("static", "vendored"):
        for path in files(__package__).joinpath(folder).iterdir():
            if _suffix(path.name) in _TYPES:
                yield path.name, path.read_bytes()


def _metric_names() -> str:
    """Writes the names of metrics as a module for scripts, so that no script spells them."""
    names = {
        name: text for name, text in vars(metric_names).items() if name.isupper() and isinstance(text, str)
    }
    return "".join(f"export const {name} = {json.dumps(text)};\n" for name, text in names.items())


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
