"""The pages, scripts and styles. They are read once, from the package alone: no request names a file."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["MISSING", "PAGES", "read_files"]

PAGES = {"/": "runs.html", "/run/{name:path}": "run.html", "/compare": "compare.html", "/play": "play.html"}
"""The pages, by their paths."""
MISSING = "missing.html"
"""The page for every other path."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read_files() -> dict[str, tuple[bytes, str]]:
    """Gives the content and the type of all files, by name."""
    found = {}
    for folder in ("static", "vendored"):
        for path in files(__package__).joinpath(folder).iterdir():
            suffix = path.name[path.name.rfind(".") :]
            if suffix in _TYPES:
                found[path.name] = (path.read_bytes(), _TYPES[suffix])
    return found
