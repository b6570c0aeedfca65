"""Who did what when: a trace that Chrome and Perfetto open."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from games_for_tests import manager_of, pids_of

from keisei.parallel import timeline
from keisei.parallel.timeline import Timeline


def test_the_trace_has_a_lane_for_each_worker_and_the_learner(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with manager_of(model={"hidden_dim": 8}) as manager:
        for _ in range(3):
            manager.collect_experiences()
        os.kill(pids_of(manager)[0], signal.SIGKILL)
        manager.collect_experiences()
    manager.export_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert sorted(lanes.values()) == ["learner", "worker 0", "worker 1"]
    for worker in ("worker 0", "worker 1"):
        mine = [event for event in events if lanes[event["tid"]] == worker and event["ph"] != "M"]
        slabs = [event for event in mine if event["name"].startswith("table")]
        assert all(slab["name"] == f"table {slab['args']['table']:.0f}" for slab in slabs)
        assert all(slab["ph"] == "X" and slab["dur"] > 0 for slab in slabs)
        assert all(slab["args"]["transitions"] == 32 and slab["args"]["version"] == 1 for slab in slabs)
        ends = [slab["ts"] + slab["dur"] for slab in slabs]
        starts = [slab["ts"] for slab in slabs]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)), "one at a time"
    for table in ("table 0", "table 1"):
        played = [event["args"]["sequence"] for event in events if event["name"] == table]
        assert sorted(played) == [0, 1, 2, 3], "whoever played it"
    names = [event["name"] for event in events if lanes[event["tid"]] == "worker 0" and event["ph"] == "i"]
    assert names[:2] == ["ready", "died"], "its successor may come when the others have done its work"
    collects = [event for event in events if event["name"] == "collect"]
    assert len(collects) == 4
    assert all(event["ts"] <= collects[-1]["ts"] + collects[-1]["dur"] for event in events if "ts" in event)


def test_a_long_run_keeps_its_latest_events() -> None:
    line = Timeline()
    for number in range(timeline.CAPACITY + 5):
        line.span("learner", str(number), float(number), 1.0)
    assert len(line.events) == timeline.CAPACITY
    assert line.events[0].name == "5"
