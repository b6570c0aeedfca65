"""``keisei export``: writes the network of a run as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.evaluate import Root
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError


def export(
    run: Annotated[
        str, typer.Argument(help="A run, RUN@best, RUN@latest, RUN@UPDATE, or a checkpoint's directory.")
    ],
    out: Annotated[Path, typer.Option(help="The file of the network, such as model.onnx.")],
    root: Root = Path("runs"),
) -> None:
    """Write the network of a run as ONNX. A JSON file beside it says what its inputs and outputs mean."""
    if out.suffix != ".onnx":
        raise ConfigError(f"--out {out}: networks are written as ONNX; name it {out.with_suffix('.onnx')}")
    if not out.resolve().parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.resolve().parent}; make it first")

    from keisei.games.registry import make_game
    from keisei.interfaces.onnx_export import PROBE_GAMES, export_onnx
    from keisei.policies.players.saved_player import find_player

    saved = find_player(run, root)
    game, (_, policy) = saved.game, saved.network(saved.game.spec)
    about = {"checkpoint": saved.path.name, "options": dict(game.options)}
    batch = make_game(game.name, batch=PROBE_GAMES, **dict(game.options))
    written = export_onnx(policy.network, batch, out, about)
    console = Terminal(highlight=False)
    console.print(f"Network: {written.model}", markup=False, soft_wrap=True)
    console.print(f"What its numbers mean: {written.meaning}", markup=False, soft_wrap=True)
    console.print(f"ONNX Runtime gives the numbers of torch, up to {written.largest_difference:.1g}.")
