"""The measurement of the dashboard asks a real server for the pages that it names."""

from __future__ import annotations

from pathlib import Path

from benchmarks import serve


def test_all_pages_are_measured(tmp_path: Path) -> None:
    settings = serve.Settings(runs=3, updates=50)
    serve._make_runs(tmp_path, settings)
    assert len(list(tmp_path.iterdir())) == 3
    seconds = serve._pages(tmp_path, rounds=1)
    assert set(seconds) == {
        "first page, new server",
        "first page again",
        "page of the long run, first time",
        "page of the long run again",
        "/metrics",
    }
    assert all(value > 0 for value in seconds.values())
