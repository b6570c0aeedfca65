"""Engines in processes of their own, good ones and bad ones."""

from __future__ import annotations

import sys
from pathlib import Path

BAD_ENGINE = """
import sys, time
moves = 0
for line in sys.stdin:
    word = line.split()[0]
    if word == "usi": print("id name Bad\\nusiok", flush=True)
    if word == "isready": print("readyok", flush=True)
    if word == "quit": break
    if word == "go":
        moves += 1
        {answer}
"""


def bad_engine(folder: Path, name: str, answer: str) -> Path:
    """An engine that answers ``go`` by a line of Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n" + BAD_ENGINE.format(answer=answer))
    path.chmod(0o755)
    return path


def keisei_usi(folder: Path) -> Path:
    """The console script ``keisei-usi``."""
    path = folder / "keisei-usi"
    path.write_text(f"#!{sys.executable}\nfrom keisei.cli.usi import main\nmain()\n")
    path.chmod(0o755)
    return path
