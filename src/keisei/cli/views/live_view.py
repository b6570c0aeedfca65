"""The view of a run that trains: one panel on a terminal, lines of text elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from keisei.cli.views.plain_view import PlainView, describe, ending
from keisei.cli.views.run_history import KEPT, PLIES, Figure, Note, RunHistory
from keisei.cli.views.wording import clock, figure, one_line, percent
from keisei.runs.rows import EvaluationRow
from keisei.training.callbacks import Callback
from keisei.training.events import Ended, Evaluation, Saved, Started, Update

__all__ = ["LiveView", "View", "make_view"]

REFRESHES_PER_SECOND = 2
WIDEST = 120
FIXED_LINES = 18
"""Lines of the panel, without evaluations and notes."""
CURVES, FACTS = 3, 4
"""How many figures of learning are drawn and how many are written, besides the length of games."""
USUAL_RESULT = 12
"""Signs of a result such as ``+100 =10 -90``, for which there is room."""
BLOCKS = "▁▂▃▄▅▆▇█"
LABEL, GOOD, CURVE, LEARNING = "dim", "green", "cyan", "magenta"
LEVEL_STYLES = {"info": "", "warning": "yellow"}


def make_view(console: Console, *, plain: bool | None = None, quiet: bool = False) -> View:
    """Makes the panel if it can be shown, unless ``plain`` asks for lines; ``quiet`` shows only warnings."""
    if quiet:
        return PlainView(console, quiet=True)
    if plain is None:
        plain = not _can_show_panels(console)
    return PlainView(console) if plain else LiveView(console)


def _can_show_panels(console: Console) -> bool:
    """Checks if the console can show panels. It checks the file too, since FORCE_COLOR makes rich treat a pipe as a
    terminal."""
    return console.is_interactive and console.file.isatty() and console.encoding.startswith("utf")


class LiveView(Callback):
    """A panel that a timer redraws, so clocks advance during an update. Events only change its data, so they are
    cheap, and safe in a signal handler."""

    def __init__(self, console: Console, history: RunHistory | None = None) -> None:
        self.history = history or RunHistory()
        self._live = Live(
            TrainingPicture(self.history), console=console, refresh_per_second=REFRESHES_PER_SECOND
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def on_start(self, started: Started) -> None:
        self.history.start(started)
        if started.counters.update:
            self.note(f"resumed from update {started.counters.update}")

    def on_update(self, update: Update) -> None:
        self.history.add_update(update)

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self.history.add_evaluation(evaluation)

    def on_checkpoint(self, saved: Saved) -> None:
        self.history.add_checkpoint(saved)

    def note(self, message: str, level: str = "info") -> None:
        self.history.add_note(message, level)

    def on_end(self, ended: Ended) -> None:
        self.history.end(ended)


View = PlainView | LiveView
"""Shows a run as a callback. Use it in a ``with``."""


class TrainingPicture:
    """Draws the panel. It fits 80 x 24 and uses more room if there is some."""

    def __init__(self, history: RunHistory) -> None:
        self._history = history

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        history = self._history
        if history.started is None:
            yield Text("starting ...", style=LABEL)
            return
        yield Panel(
            Group(*_lines(history, history.started, width - 4, options.size.height - 1)),
            title=_title(history.started, width - 6),
            title_align="left",
            subtitle=_subtitle(history),
            subtitle_align="right",
            border_style=LABEL,
            width=width,
        )


def _lines(history: RunHistory, started: Started, width: int, height: int) -> Iterator[RenderableType]:
    room = height - FIXED_LINES
    matches = max(1, min(len(history.evaluations), room - 2))
    yield _row(one_line(describe(started)), LABEL)
    yield from _progress(history, started)
    yield _rule("Learning")
    yield _learning(history, width)
    yield _rule("Games")
    yield from _games(history)
    yield _rule("Workers")
    yield _workers(history, started)
    yield _rule(_evaluations_title(history, matches))
    yield _evaluations(history, matches, width)
    yield _rule("Checkpoint · " + _last_checkpoint(history))
    yield from (_note(note) for note in history.notes[-max(1, room - matches) :])


def _title(started: Started, width: int) -> Text:
    title = Text(one_line(f"{started.game} · {started.run}"), style="not dim bold")
    title.truncate(width, overflow="ellipsis")  # a panel grows with its title, beyond its width
    return title


def _subtitle(history: RunHistory) -> Text:
    if history.ended is not None:
        return Text(one_line(ending(history.ended)), style="not dim bold")
    return Text("Ctrl-C stops after this update", style=LABEL)


def _progress(history: RunHistory, started: Started) -> Iterator[RenderableType]:
    last = history.updates[-1] if history.updates else None
    share = last.progress if last else 0.0
    bar = Table.grid(expand=True, padding=(0, 1))
    bar.add_column(ratio=1)
    bar.add_column()
    bar.add_row(
        ProgressBar(total=1.0, completed=share, complete_style=GOOD, finished_style=GOOD),
        Text(percent(share), style="bold"),
    )
    yield bar
    done = (
        f"update {last.counters.update} · {_so_far(last.counters.transitions, started)}"
        if last
        else f"no update yet · {started.length} in all"
    )
    left = "" if history.ended is not None else f" · {clock(history.seconds_left)} left"
    yield _row(f"{done} · {clock(history.elapsed)} elapsed{left}")
    yield _time_spent(history)


def _so_far(transitions: int, started: Started) -> str:
    if started.steps is None:
        return f"{transitions:,} steps in {started.length}"
    return f"{transitions:,} of {started.steps:,} steps"


def _time_spent(history: RunHistory) -> Text:
    """Shows the speed, and how the time of an update is spent."""
    share, cells = history.collecting_share, 12
    collecting = round(cells * share) if math.isfinite(share) else 0
    busy = history.updates[-1].collection.worker_utilisation if history.updates else math.nan
    row = _row(f"{figure(history.speed, ',.0f')} steps/s · ")
    row.append(f"collect {percent(share, 0)} ", style=CURVE)
    row.append("━" * collecting, style=CURVE).append("━" * (cells - collecting), style=LEARNING)
    row.append(f" {percent(1 - share, 0)} learn", style=LEARNING)
    return row.append(f" · workers {percent(busy, 0)} busy")


def _learning(history: RunHistory, width: int) -> Table:
    table = _grid("left", "right", "left", "left", "right")
    table.expand, table.columns[2].ratio = True, 1
    told = history.learning
    curves, facts = [*told[:CURVES], PLIES], told[CURVES : CURVES + FACTS]
    cells = max(5, min(KEPT, width - 48))
    for drawn, fact in zip_longest(curves, facts):
        line = sparkline(history.curve(drawn), cells).ljust(cells) if drawn else ""
        table.add_row(*_newest(drawn, history), Text(line, style=CURVE), *_newest(fact, history))
    return table


def _newest(shown: Figure | None, history: RunHistory) -> tuple[Text, str]:
    if shown is None:
        return Text(), ""
    value = shown.of(history.updates[-1]) if history.updates else math.nan
    return Text(one_line(shown.label), style=LABEL), figure(value, shown.form)


def _games(history: RunHistory) -> Iterator[Text]:
    finished = history.updates[-1].counters.games if history.updates else 0
    plies = figure(history.game_mean(lambda games: games.mean_plies), ".1f")
    first = percent(history.game_mean(lambda games: games.first_wins), 0)
    draws = percent(history.game_mean(lambda games: games.draws), 0)
    cut = percent(history.game_mean(lambda games: games.truncations), 0)
    yield _row(f"{finished:,} finished · {plies} plies · first wins {first} · draws {draws} · cut off {cut}")
    endings = [f"{name} {count:,}" for name, count in history.endings]
    yield _row(_league(history) + (one_line(" · ".join(endings)) or "no game was finished lately"), LABEL)


def _league(history: RunHistory) -> str:
    """Describes the league, if there is one, before the endings of games."""
    league = history.updates[-1].collection.league if history.updates else None
    if league is None:
        return ""
    worst = f"worst {percent(league.worst_score, 0)}"
    return f"league of {league.members} · score {percent(league.score, 0)} · {worst} · forgotten {league.forgotten} · "


def _workers(history: RunHistory, started: Started) -> Text:
    if not history.updates:
        return _row("-")
    now = history.updates[-1].collection
    row = _row("")
    row.append(f"{now.workers} of {started.workers} at work", style=_warn_if(now.workers < started.workers))
    row.append(" · ").append(f"restarts {now.restarts:,}", style=_warn_if(now.restarts > 0))
    row.append(f" · policy lag {figure(now.policy_lag, '.1f')} · slabs waiting {now.queue_depth}")
    return row.append(f" · dropped {now.dropped:,}")


def _evaluations_title(history: RunHistory, matches: int) -> str:
    hidden = len(history.evaluations) - matches
    best = "" if history.best_update is None else f" · best: update {history.best_update}"
    return "Evaluations" + best + (f" · {hidden} more not shown" if hidden > 0 else "")


def _evaluations(history: RunHistory, matches: int, width: int) -> RenderableType:
    if not history.evaluations:
        return _row("none yet", LABEL)
    table = _grid("left", "left", "right", "left", "left", "left")
    shown = list(history.evaluations.items())[:matches]
    further = max((len(_result(rows[-1])) for _, rows in shown), default=0) - USUAL_RESULT
    room = width - max(0, further)
    cells = max(12, min(KEPT, room - 76))
    for opponent, rows in shown:
        last = rows[-1]
        table.add_row(
            Text(_tail(one_line(opponent), max(8, room - cells - 52)), style=LABEL),
            Text(sparkline([row.score for row in rows], cells, (0.0, 1.0)), style=CURVE),
            Text(percent(last.score), style="bold"),
            f"{percent(last.low, 0)} to {percent(last.high, 0)}",
            _result(last),
            Text(f"update {last.update}", style=LABEL),
        )
    return table


def _result(row: EvaluationRow) -> str:
    if row.mean_return is None:
        return f"+{row.wins} ={row.draws} -{row.losses}"
    if row.seats == 1:
        return f"return {row.mean_return:.2f}"
    return f"{row.mean_return:.2f} · rank {row.mean_rank:.1f}"


def _last_checkpoint(history: RunHistory) -> str:
    if history.saved_update is None:
        return "none yet"
    return f"update {history.saved_update}, {clock(history.seconds_since_saved)} ago"


def _note(note: Note) -> Text:
    row = _row(f"{clock(note.elapsed)}  ", LABEL)
    return row.append(note.text, style=LEVEL_STYLES.get(note.level, "bold red"))


def _grid(*columns: Literal["left", "right"]) -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in columns:
        table.add_column(justify=justify, no_wrap=True)
    return table


def _tail(name: str, width: int) -> str:
    """Shortens a text at its beginning, since the end of a path says more."""
    return name if len(name) <= width else f"…{name[-width + 1 :]}"


def _warn_if(wrong: bool) -> str:
    return LEVEL_STYLES["warning"] if wrong else ""


def _rule(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style=LABEL)


def _row(text: str, style: str = "") -> Text:
    """Makes one line, cut to the width."""
    row = Text(no_wrap=True, overflow="ellipsis")
    return row.append(text, style=style)


def sparkline(values: Sequence[float], width: int, bounds: tuple[float, float] | None = None) -> str:
    """Draws the last ``width`` values as blocks, blank where a value is not a number. Flat curves are in the
    middle."""
    shown = values[-width:]
    known = [value for value in shown if math.isfinite(value)]
    low, high = bounds or (min(known, default=0.0), max(known, default=0.0))
    top = len(BLOCKS) - 1

    def block(value: float) -> str:
        if not math.isfinite(value):
            return " "
        height = (value - low) / (high - low) if high > low else 0.5
        return BLOCKS[round(top * min(1.0, max(0.0, height)))]

    return "".join(map(block, shown))
