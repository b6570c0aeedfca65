"""Where the package is: in a checkout of the project, or installed in an environment.

Advice about missing packages depends on it: only a checkout has a Makefile and the benchmarks.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import keisei


def checkout() -> Path | None:
    """Finds the project's folder; None for an installed copy."""
    root = Path(keisei.__file__).resolve().parents[2]
    return root if (root / "Makefile").is_file() and (root / "benchmarks").is_dir() else None


def pip_install(arguments: str) -> str:
    """Writes the command that installs a package beside this copy, ready to paste into a shell."""
    return f"{shlex.quote(sys.executable)} -m pip install {arguments}"
