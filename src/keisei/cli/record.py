"""``keisei record``: draws an episode of a world as an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.numbers import MAX_SEED, MAX_SHOWN
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError


def record(
    run: Annotated[str, typer.Argument(help="A run, RUN@UPDATE, or a checkpoint.")],
    out: Annotated[Path, typer.Option(help="The file to write: NAME.gif or NAME.svg.")] = Path("episode.gif"),
    turns: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Turns to draw; by default a whole episode.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The seed of the world.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.02, max=MAX_SHOWN, help="How long a turn is shown.")] = 0.15,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
) -> None:
    """Draw an episode of a world that a run's agents play, as GIF or SVG."""
    from keisei.interfaces.animations import animated_gif, animated_svg
    from keisei.training.studies.episodes import episode_of

    if out.suffix not in (".gif", ".svg"):
        raise ConfigError(f"--out {out}: an animation is NAME.gif or NAME.svg")
    episode = episode_of(run, root=root, seed=seed, turns=turns)
    if out.suffix == ".gif":
        out.write_bytes(animated_gif(episode.shots, episode.legend, seconds))
    else:
        out.write_text(animated_svg(episode.shots, episode.legend, seconds), encoding="utf-8")
    Terminal(highlight=False).print(f"{out}: {len(episode.shots) - 1} turns of {run}", soft_wrap=True)
