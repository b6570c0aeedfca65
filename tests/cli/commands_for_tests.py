"""Commands, each in a process of its own that is forked from one which has torch.

As a program, it takes a JSON list of [arguments, input], runs each in the current folder, and prints what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

import torch  # noqa: F401

import keisei.training.trainer  # noqa: F401
from keisei.cli.entry import main

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def ran(arguments: list[str], given: str) -> tuple[int, str, str]:
    """Exit code, and what was written to standard output and error; bytes that are not ASCII as escapes."""
    Path("in").write_text(given, encoding="utf-8")
    child = os.fork()
    if child == 0:
        for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", WRITE), ("err", WRITE))):
            os.dup2(os.open(name, flags), number)
        os._exit(_exit_code(arguments))
    _, status = os.waitpid(child, 0)
    out, err = (Path(name).read_bytes().decode("ascii", "backslashreplace") for name in ("out", "err"))
    return os.waitstatus_to_exitcode(status), out, err


def _exit_code(arguments: list[str]) -> int:
    sys.argv = ["keisei", *arguments]
    try:
        main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.stdout.write(json.dumps([ran(*line) for line in json.loads(sys.argv[1])]))
