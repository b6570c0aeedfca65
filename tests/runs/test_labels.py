"""Labels are foreign data: what is damaged or absurd counts as none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory
from keisei.runs.labels import LABELS, Labels, read_labels, retagged, write_labels


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path, "a", {})


def test_labels_are_read_as_they_were_written(run: RunDirectory) -> None:
    assert read_labels(run) == Labels()
    labels = Labels(("baseline", "強い"), "Line one\nand „two“", archived=True)
    write_labels(run, labels)
    assert read_labels(run) == labels
    assert sorted(path.name for path in run.path.glob("*labels*")) == [LABELS]


def test_tags_are_added_and_removed() -> None:
    labels = retagged(Labels(("b",)), ["#c", "a", "b"])
    assert labels.tags == ("a", "b", "c")
    assert retagged(labels, ["d"], ["#a", "none"]).tags == ("b", "c", "d")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (Labels(("two words",)), "'two words' is no tag"),
        (Labels(("",)), "is no tag"),
        (Labels(("a" * 41,)), "is no tag"),
        (Labels(("a\x1b",)), "is no tag"),
        (Labels(tuple(map(str, range(21)))), "at most 20 tags, got 21"),
        (Labels(note="x" * 2001), "at most 2000 letters, got 2,001"),
        (Labels(note="\x1b[2J"), "control characters"),
    ],
)
def test_what_is_no_label_is_refused(run: RunDirectory, labels: Labels, told: str) -> None:
    with pytest.raises(RunError, match=told):
        write_labels(run, labels)
    assert not (run.path / LABELS).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b'{"tags": "a"}', b'{"tags": [3]}', b'{"archived": 1}', b'{"note": "\\ud800"}',
        b'{"tags": ["a b"]}', b'{"note": "\\u001b[2J"}', b"[" * 50_000, b'{"note": "' + b"x" * (1 << 16) + b'"}',
    ],
)  # fmt: skip
def test_damaged_labels_count_as_none(run: RunDirectory, content: bytes) -> None:
    (run.path / LABELS).write_bytes(content)
    assert read_labels(run) == Labels()


def test_links_and_pipes_are_not_read(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"note": "secret"}')
    (run.path / LABELS).symlink_to(tmp_path / "secret")
    assert read_labels(run) == Labels()
    (run.path / LABELS).unlink()
    os.mkfifo(run.path / LABELS)
    assert read_labels(run) == Labels()
    write_labels(run, Labels(("a",)))
    assert read_labels(run).tags == ("a",)


def test_labels_of_later_versions_are_read(run: RunDirectory) -> None:
    (run.path / LABELS).write_text(json.dumps({"tags": ["b", "a", "a"], "stars": 5}))
    assert read_labels(run) == Labels(("a", "b"))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional={"tags": _JSON, "note": _JSON, "archived": _JSON}))
def test_any_document_gives_labels_that_can_be_written(
    tmp_path_factory: pytest.TempPathFactory, document: Any
) -> None:
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    (run.path / LABELS).write_text(json.dumps(document))
    labels = read_labels(run)
    write_labels(run, labels)
    assert read_labels(run) == labels
