"""All pages are true in what they tell to type: the commands, their options and the links exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keisei.cli.main import COMMANDS, _imported

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
EVERY = pytest.mark.parametrize("page", PAGES)
OTHER_PROGRAMS = re.compile(r"\s(?:\||>>?|<|&&?|;)(?:\s|$).*")
"""What follows the arguments of a command in a shell."""


def in_blocks(text: str) -> Iterator[str]:
    """The lines of shell blocks that call ``keisei``, without comments and other programs."""
    for block in re.findall(r"^```(?:sh|bash|console)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ |nohup |[A-Z_]+=\S+ |\.venv/bin/)*keisei (.*)", line.strip())
            if found:
                yield OTHER_PROGRAMS.sub("", " ".join(shlex.split(found[1], comments=True, posix=False)))


def in_sentences(text: str) -> list[str]:
    """The commands that are named in the midst of a text, which may leave out what they need."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        OTHER_PROGRAMS.sub("", " ".join(found.replace("\\|", "|").split()))
        for found in re.findall(r"`(?:[^`\n]*\s)?(?:\.venv/bin/)?keisei ([^`]+)`", outside)
    ]


def command_of(words: list[str]) -> tuple[Any, str, list[str]]:
    """The command that words call, its name, and its arguments."""
    if words[0].startswith("-"):
        return None, "", words
    assert words[0] in COMMANDS, f"there is no command keisei {words[0]}"
    command, name, arguments = _imported(words[0]), words[0], words[1:]
    if hasattr(command, "commands"):
        if not arguments or arguments[0].startswith("-"):
            return None, name, []
        assert arguments[0] in command.commands, f"there is no command keisei {name} {arguments[0]}"
        return command.commands[arguments[0]], f"{name} {arguments[0]}", arguments[1:]
    return command, name, arguments


@EVERY
def test_the_commands_of_blocks_are_understood(page: str) -> None:
    for line in in_blocks(PAGES[page]):
        command, name, arguments = command_of(shlex.split(line))
        if command is not None:
            command.make_context(name, arguments)


@EVERY
def test_the_commands_of_sentences_have_the_options_that_they_show(page: str) -> None:
    for text in in_sentences(PAGES[page]):
        command, name, arguments = command_of(text.split())
        known = {"--help", "--version"}
        if command is not None:
            known |= {option for parameter in command.params for option in parameter.opts}
        shown = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        assert shown <= known, f"{page}: keisei {name} has no {', '.join(shown - known)}"


def test_commands_are_found() -> None:
    """The tests above look at something."""
    assert sum(len(list(in_blocks(text))) for text in PAGES.values()) > 50
    assert sum(len(in_sentences(text)) for text in PAGES.values()) > 100


def sections(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@EVERY
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", PAGES[page]):
        path, _, section = target.partition("#")
        there = (ROOT / page).parent / path if path else ROOT / page
        assert there.exists(), f"{page} links to {target}"
        if section:
            assert section in sections(there.read_text()), f"{page} links to {target}"


@EVERY
def test_lines_fit(page: str) -> None:
    """Tables and code are as wide as they are."""
    prose = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    assert [line for line in prose.splitlines() if len(line) > 120 and not line.startswith(("|", "!["))] == []
