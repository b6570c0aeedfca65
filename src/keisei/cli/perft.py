"""``keisei perft``: counts the positions some moves ahead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from keisei.cli.views.terminal import Terminal

if TYPE_CHECKING:
    from keisei.games.shogi import Board


MAX_DEPTH = 20
"""The start has some 10^30 leaves at this depth."""


def perft(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[SFEN] DEPTH", help="A position, or none for the start, and the depth."),
    ],
    divide: Annotated[bool, typer.Option("--divide", help="Show the count below each first move.")] = False,
) -> None:
    """Count the leaves of the tree of legal Shogi moves, to check the rules and the speed of the core."""
    # Imported late, so that other subcommands work without the native core.
    from keisei.games import shogi

    depth = _depth(words[-1])
    # An SFEN contains spaces, and may come with or without quotes.
    board = shogi.Board(" ".join(words[:-1]) or None)
    console = Terminal(highlight=False)
    started = time.perf_counter()
    nodes = _divided(console, board, depth) if divide and depth else shogi.perft(board.sfen(), depth)
    seconds = time.perf_counter() - started
    console.print(f"nodes {nodes}")
    console.print(f"seconds {seconds:.3f}")
    console.print(f"nodes/s {nodes / max(seconds, 1e-9):,.0f}")


def _depth(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 3 and int(text) <= MAX_DEPTH):
        raise typer.BadParameter(
            f"the depth comes last and is a whole number from 0 to {MAX_DEPTH}; got {text[:60]!r}"
        )
    return int(text)


def _divided(console: Console, board: Board, depth: int) -> int:
    from keisei.games.shogi import perft as count_leaves

    total = 0
    for move in list(board.legal_moves):
        board.push(move)
        count = count_leaves(board.sfen(), depth - 1)
        board.pop()
        console.print(f"{move.usi()} {count}")
        total += count
    return total
