"""The places where workers run: inline, in threads or in processes. All follow one contract."""

from __future__ import annotations

from keisei.parallel.backends.registry import known_backends, make_backend, register_backend

__all__ = ["known_backends", "make_backend", "register_backend"]
