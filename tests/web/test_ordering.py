"""The dashboard keeps order among runs: only with the token, and never on a run that is being trained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runs_for_tests import make_run
from web_for_tests import BEARER, Served, serving

from keisei.runs.directory import RunDirectory
from keisei.runs.labels import Labels, read_labels


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    for name in ("a", "lr/seed0"):
        make_run(tmp_path, name, updates=())
    with serving(tmp_path) as dashboard:
        yield dashboard


def names(served: Served) -> list[str]:
    return [run["name"] for run in served.get("/api/runs").json["runs"]]


def test_labels_are_changed_one_by_one(served: Served) -> None:
    answer = served.post("/api/runs/lr%2Fseed0/labels", {"tags": ["#b", "a"], "note": "good"}, **BEARER)
    assert (answer.status, answer.json) == (200, {"tags": ["a", "b"], "note": "good", "archived": False})
    served.post("/api/runs/lr%2Fseed0/labels", {"archived": True}, **BEARER)
    assert read_labels(RunDirectory(served.root / "lr/seed0")) == Labels(("a", "b"), "good", archived=True)
    (row,) = [run for run in served.get("/api/runs").json["runs"] if run["name"] == "lr/seed0"]
    assert (row["tags"], row["note"], row["archived"]) == (["a", "b"], "good", True)
    details = served.get("/api/runs/lr%2Fseed0").json["summary"]
    assert (details["tags"], details["archived"]) == (["a", "b"], True)


def test_a_run_is_renamed_and_deleted(served: Served) -> None:
    assert served.post("/api/runs/lr%2Fseed0/rename", {"name": "best"}, **BEARER).json == {"name": "best"}
    assert names(served) == ["a", "best"]
    assert not (served.root / "lr").exists()
    refused = served.post("/api/runs/best/delete", {"name": "a"}, **BEARER)
    assert (refused.status, refused.json["error"]) == (409, "to delete best, repeat its name")
    trash = served.post("/api/runs/best/delete", {"name": "best"}, **BEARER).json["trash"]
    assert names(served) == ["a"]
    assert (served.root / trash / "config.yaml").is_file()


ORDERS: list[tuple[str, Any]] = [
    ("labels", {"tags": ["x"]}),
    ("rename", {"name": "b"}),
    ("delete", {"name": "a"}),
]


@pytest.mark.parametrize(("order", "body"), ORDERS)
def test_nothing_changes_without_the_token(served: Served, order: str, body: Any) -> None:
    before = sorted(served.root.rglob("*"))
    assert served.post(f"/api/runs/a/{order}", body).status == 401
    assert served.post(f"/api/runs/a/{order}", body, authorization="Bearer wrong-token-it-is").status == 401
    foreign = {**BEARER, "origin": "http://evil.example"}
    assert served.post(f"/api/runs/a/{order}", body, **foreign).status == 403
    assert served.get(f"/api/runs/a/{order}", **BEARER).status == 404
    assert sorted(served.root.rglob("*")) == before


@pytest.mark.parametrize(("order", "body"), [("labels", {"archived": True}), *ORDERS[1:]])
def test_a_run_that_is_trained_is_left_alone(served: Served, order: str, body: Any) -> None:
    with RunDirectory(served.root / "a").lock():
        answer = served.post(f"/api/runs/a/{order}", body, **BEARER)
        assert (answer.status, "is being trained" in answer.json["error"]) == (409, True)
        assert served.post("/api/runs/a/labels", {"note": "so far"}, **BEARER).status == 200
    assert names(served) == ["a", "lr/seed0"]


@pytest.mark.parametrize(
    ("order", "body"),
    [
        ("labels", {"tags": "a"}),
        ("labels", {"tags": [3]}),
        ("labels", {"tags": ["a b"]}),
        ("labels", {"note": 3}),
        ("labels", {"note": "\x1b[2J"}),
        ("labels", {"archived": "yes"}),
        ("rename", {}),
        ("rename", {"name": "../b"}),
        ("rename", {"name": "/tmp/b"}),
        ("rename", {"name": "lr/seed0"}),
        ("rename", {"name": ["b"]}),
        ("delete", {}),
        ("delete", {"name": None}),
    ],
)
def test_orders_that_make_no_sense(served: Served, order: str, body: Any) -> None:
    before = sorted(served.root.rglob("*"))
    answer = served.post(f"/api/runs/a/{order}", body, **BEARER)
    assert answer.status == 409
    assert answer.json["error"]
    assert [path for path in sorted(served.root.rglob("*")) if path.name != "lock"] == [
        path for path in before if path.name != "lock"
    ]
    assert served.post(f"/api/runs/..%2Fa/{order}", body, **BEARER).status == 404
