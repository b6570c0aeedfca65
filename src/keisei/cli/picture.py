"""``keisei picture``: draws a game of Shogi from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.numbers import MAX_FEW, MAX_GAMES, MAX_SHOWN
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError

FORMATS = (".gif", ".png", ".svg")


def picture(
    game: Annotated[Path, typer.Argument(help="A record of Shogi: KIF, CSA or SFEN.")],
    out: Annotated[Path, typer.Option(help="A GIF of the whole game, or a PNG or SVG of one position.")],
    ply: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_FEW, help="The position after so many moves; by default the last one."),
    ] = None,
    number: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Which game of the file.")] = 1,
    seconds: Annotated[
        float, typer.Option(min=0.02, max=MAX_SHOWN, help="Seconds of each position in a GIF.")
    ] = 0.7,
) -> None:
    """Draw a game of Shogi: all of it as a GIF, or one position as a PNG or SVG."""
    from keisei.games.shogi import board_svg, read_records
    from keisei.games.shogi.raster import board_image, game_gif

    suffix = out.suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"--out {out}: pictures are GIF, PNG or SVG, by the end of their name")
    if not out.resolve().parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.resolve().parent}; make it first")
    records = read_records(game)
    if number > len(records):
        raise ConfigError(f"--number {number}: {game} has {len(records)} games")
    record = records[number - 1]
    last = len(record.moves) if ply is None else ply
    if last > len(record.moves):
        raise ConfigError(f"--ply {last}: the game has {len(record.moves)} moves")
    if suffix == ".gif":
        frames = game_gif(record.until(last), out, seconds)
        shown = f"{frames} positions"
    else:
        board = record.until(last).board()
        if suffix == ".png":
            board_image(board.setup, board.peek()).save(out)
        else:
            out.write_text(board_svg(board.setup, board.peek()), encoding="utf-8")
        shown = f"the position after {last} moves"
    Terminal(highlight=False).print(f"Picture: {out}, {shown}", markup=False, soft_wrap=True)
