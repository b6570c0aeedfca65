"""Where the package lies: in a checkout of the project, or in an environment that it was installed into.

What a person can do about something missing depends on it: only a checkout has a Makefile and the benchmarks.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import keisei


def checkout() -> Path | None:
    """The project's folder; None for an installed copy."""
    root = Path(keisei.__file__).resolve().parents[2]
    return root if (root / "Makefile").is_file() and (root / "benchmarks").is_dir() else None


def pip_install(arguments: str) -> str:
    """The command that installs something beside this copy, in a form that can be pasted into a shell."""
    return f"{shlex.quote(sys.executable)} -m pip install {arguments}"
