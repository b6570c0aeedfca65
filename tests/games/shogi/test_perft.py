"""Move generation against counts that several independent engines agree on."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from keisei.games.shogi import perft

ENTRIES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "data" / "perft.json").read_text())
QUICK = 20_000_000
SLOW = 20_000_000_000  # a minute or two; the one entry beyond it, 416 billion, is published but takes half an hour


def _cases(low: int, high: int) -> list[Any]:
    return [
        pytest.param(entry["sfen"], entry["depth"], entry["nodes"], id=f"{entry['name']}-{entry['depth']}")
        for entry in ENTRIES
        if low < entry["nodes"] + 1 <= high
    ]


@pytest.mark.parametrize(("sfen", "depth", "nodes"), _cases(0, QUICK))
def test_perft(sfen: str, depth: int, nodes: int) -> None:
    assert perft(sfen, depth) == nodes


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("sfen", "depth", "nodes"), _cases(QUICK, SLOW))
def test_deep_perft(sfen: str, depth: int, nodes: int) -> None:
    assert perft(sfen, depth) == nodes


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("sfen", "depth", "nodes"), _cases(SLOW, 10**15))
def test_very_deep_perft(sfen: str, depth: int, nodes: int) -> None:
    assert perft(sfen, depth) == nodes


def test_a_deep_count_can_be_interrupted() -> None:
    """As by Ctrl-C: a signal is looked at long before a count that would take hours is done."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            perft("startpos", 9)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
