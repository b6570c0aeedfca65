"""The places where workers run: inline, in threads or in processes. All follow one contract."""

from __future__ import annotations

from keisei.parallel.backend_names import known_backends, register_backend
from keisei.parallel.backends.contract import make_backend

__all__ = ["known_backends", "make_backend", "register_backend"]
