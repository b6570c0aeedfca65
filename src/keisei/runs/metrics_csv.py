"""All numbers of a run as CSV, for spreadsheets and notebooks."""

from __future__ import annotations

import csv
import io

from keisei.runs.database import RunDatabase

__all__ = ["metrics_csv"]


def metrics_csv(database: RunDatabase) -> str:
    """Writes one line for each update and one column for each name, in the order of updates and names. If an update
    lacks a number, its cell is empty."""
    names = database.metric_names()
    lines: dict[int, list[object]] = {}
    for column, name in enumerate(names, start=3):
        for point in database.metric(name):
            line = lines.setdefault(point.update, [point.update, point.step, point.time, *[""] * len(names)])
            line[column] = point.value
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["update", "step", "time", *names])
    writer.writerows(lines[update] for update in sorted(lines))
    return text.getvalue()
