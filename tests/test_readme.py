"""The README is true: its code runs, its commands and folders exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_code_runs() -> None:
    """In one namespace, top to bottom, as a reader would type it."""
    code = blocks("python")
    assert code
    namespace: dict[str, object] = {}
    for number, block in enumerate(code, start=1):
        exec(compile(block, f"README.md, python block {number}", "exec"), namespace)


def test_the_make_targets_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)?)\b", "\n".join(blocks("sh"))))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"train", "test"} <= named <= targets


def test_the_folders_of_the_map_exist() -> None:
    (tree,) = blocks("text")
    folders = re.findall(r"^([\w./]+)  ", tree, flags=re.MULTILINE)
    assert folders
    missing = [folder for folder in folders if not (ROOT / folder).exists()]
    assert missing == []
