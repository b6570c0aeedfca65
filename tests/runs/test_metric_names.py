"""Every metric is named in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import keisei
from keisei.runs import metric_names
from keisei.runs.metric_names import TAGS, of_owner

SOURCE = Path(keisei.__file__).parent
HOME = Path(metric_names.__file__)


def spelled(source: str) -> Iterator[str]:
    """The names that a file spells as texts of their own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in TAGS:
            yield str(node.value)


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE.parent))
)
def test_no_other_file_spells_a_name(path: Path) -> None:
    found = list(spelled(path.read_text()))
    assert found == (list(TAGS) if path == HOME else []), "take it from keisei.runs.metric_names"


def test_the_rule_itself_tells_right_from_wrong() -> None:
    assert list(spelled('"""Such as train/loss."""\nnumbers["train/loss"] = {"train/lost": 1}')) == [
        "train/loss"
    ]


def test_every_name_has_a_constant_and_a_meaning() -> None:
    constants = [
        value for name, value in vars(metric_names).items() if name.isupper() and value in list(TAGS)
    ]
    assert constants == list(TAGS)
    assert all(TAGS.values())


def test_numbers_of_one_owner() -> None:
    assert of_owner("train/loss", 2) == "agent-2/loss"
    assert of_owner("replay/size", 0) == "agent-0/replay/size"
