"""Writes numbers, times and foreign text for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from keisei.cli.views.terminal import visible

if TYPE_CHECKING:
    from keisei.runs.rows import EvaluationRow

_UNITS = (("day", 86400), ("h", 3600), ("min", 60), ("s", 1))


def one_line(text: str) -> str:
    """Removes line breaks, and shows control codes as text: they would move a terminal's cursor and break an SVG."""
    return " ".join(map(visible, text.expandtabs(1).splitlines()))


def figure(value: float, form: str) -> str:
    """Writes a number, or a dash if there is none yet. The form ``%`` shows a share."""
    if form == "%":
        return percent(value)
    return format(value, f"z{form}") if math.isfinite(value) else "-"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %" if math.isfinite(share) else "-"


def likelihood(probability: float, digits: int = 1) -> str:
    """Writes a probability that is never certain: where rounding would make it 0 or 100 %, it is a bound."""
    smallest = 10.0**-digits
    if 100 * probability > 100 - smallest / 2:
        return f"> {100 - smallest:.{digits}f} %"
    return f"< {smallest:.{digits}f} %" if 100 * probability < smallest / 2 else percent(probability, digits)


def clock(seconds: float | None) -> str:
    """Writes ``mm:ss``, or ``h:mm:ss`` from an hour on."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def duration(seconds: float) -> str:
    """Writes a duration in its two largest units, such as ``2 h 5 min``."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def returns_and_rank(row: EvaluationRow) -> str:
    """Writes returns and rank of a match that is judged by returns; empty for other matches."""
    if row.mean_return is None:
        return ""
    known = row.return_low is not None and row.return_high is not None
    interval = f" ({row.return_low:.2f} to {row.return_high:.2f})" if known else ""
    rank = f", rank {row.mean_rank:.2f} of {row.seats}" if row.seats > 1 else ""
    return f"return {row.mean_return:.2f}{interval}{rank}"
