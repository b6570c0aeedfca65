"""``keisei picture``: draws a game of Shogi from its record, or an episode of a world that a run's agents play."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.numbers import MAX_FEW, MAX_GAMES, MAX_SEED, MAX_SHOWN
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError

_OF_A_GAME, _OF_AN_EPISODE = (".gif", ".png", ".svg"), (".gif", ".svg")
"""The files that can be written. A PNG or SVG of a game shows one position."""


def picture(
    source: Annotated[
        str,
        typer.Argument(help="A record of Shogi (KIF, CSA or SFEN), or a run, RUN@UPDATE, or a checkpoint."),
    ],
    out: Annotated[
        Path,
        typer.Option(help="A GIF of the whole game or episode; NAME.svg; of one position also NAME.png."),
    ],
    ply: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_FEW, help="The position after so many moves; by default the last one."),
    ] = None,
    number: Annotated[
        int | None, typer.Option(min=1, max=MAX_GAMES, help="Which game of the file; by default the first.")
    ] = None,
    turns: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Turns to draw; by default a whole episode.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="The seed of the world; by default 0.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.02, max=MAX_SHOWN, help="Seconds of a position (0.7) or of a turn (0.15)."),
    ] = None,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
) -> None:
    """Draw a game of Shogi from its record, or an episode of a world that a run's agents play."""
    if not out.resolve().parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.resolve().parent}; make it first")
    if _is_record(source):
        _refuse(source, "a record", turns=turns, seed=seed)
        shown = _draw_game(Path(source), out, ply, number or 1, seconds or 0.7)
    else:
        _refuse(source, "a run", ply=ply, number=number)
        shown = _draw_episode(source, out, turns, seed or 0, seconds or 0.15, root)
    Terminal(highlight=False).print(f"Picture: {out}, {shown}", markup=False, soft_wrap=True)


def _is_record(source: str) -> bool:
    from keisei.games.shogi.match_records import ShogiRecords

    return Path(source).suffix.lower() in ShogiRecords.suffixes or Path(source).is_file()


def _refuse(source: str, kind: str, **options: int | None) -> None:
    """Refuses options that say nothing of this kind of source."""
    for name, value in options.items():
        if value is not None:
            other = "a run" if kind == "a record" else "a record"
            raise ConfigError(f"--{name} {value} is for {other}, and {source} is {kind}; leave it out")


def _draw_game(file: Path, out: Path, ply: int | None, number: int, seconds: float) -> str:
    from keisei.games.shogi import board_svg, read_records
    from keisei.games.shogi.raster import board_image, game_gif

    suffix = _suffix(out, _OF_A_GAME)
    records = read_records(file)
    if number > len(records):
        raise ConfigError(f"--number {number}: {file} has {len(records)} games")
    record = records[number - 1]
    last = len(record.moves) if ply is None else ply
    if last > len(record.moves):
        raise ConfigError(f"--ply {last}: the game has {len(record.moves)} moves")
    if suffix == ".gif":
        return f"{game_gif(record.until(last), out, seconds)} positions"
    board = record.until(last).board()
    if suffix == ".png":
        board_image(board.setup, board.peek()).save(out)
    else:
        out.write_text(board_svg(board.setup, board.peek()), encoding="utf-8")
    return f"the position after {last} moves"


def _draw_episode(run: str, out: Path, turns: int | None, seed: int, seconds: float, root: Path) -> str:
    from keisei.interfaces.animations import animated_gif, animated_svg
    from keisei.training.studies.episodes import episode_of

    suffix = _suffix(out, _OF_AN_EPISODE)
    episode = episode_of(run, root=root, seed=seed, turns=turns)
    if suffix == ".gif":
        out.write_bytes(animated_gif(episode.shots, episode.legend, seconds))
    else:
        out.write_text(animated_svg(episode.shots, episode.legend, seconds), encoding="utf-8")
    return f"{len(episode.shots) - 1} turns of {run}"


def _suffix(out: Path, known: tuple[str, ...]) -> str:
    suffix = out.suffix.lower()
    if suffix not in known:
        names = " or ".join(f"NAME{each}" for each in known)
        raise ConfigError(f"--out {out}: this picture is {names}")
    return suffix
