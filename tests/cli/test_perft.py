"""``keisei perft`` counts, from the start and from elsewhere."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app

DROPS = "4k4/9/9/9/9/9/9/9/4K4 b P 1"


def counted(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, ["perft", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.mark.parametrize(("depth", "nodes"), [("0", 1), ("1", 30), ("3", 25470)])
def test_from_the_start(depth: str, nodes: int) -> None:
    first, second, third = counted(depth)
    assert first == f"nodes {nodes}"
    assert second.startswith("seconds ")
    assert third.startswith("nodes/s ")


def test_a_position_comes_in_quotes_or_without() -> None:
    # The king has 5 moves. The pawn may be dropped on 8 ranks of each file, less the squares of both kings:
    # 9 × 8 - 1 = 71, as white's king stands on the first rank, where no pawn may be dropped anyway.
    assert counted(DROPS, "1")[0] == counted(*DROPS.split(), "1")[0] == "nodes 76"


def test_divide_adds_up() -> None:
    *moves, nodes, _, _ = counted("2", "--divide")
    assert len(moves) == 30
    assert "7g7f 30" in moves
    assert sum(int(line.split()[1]) for line in moves) == int(nodes.split()[1]) == 900


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["startpos"], "the depth comes last and is a whole number"),
        (["--", "-3"], "the depth comes last and is a whole number"),
        (["9/9 b - 1", "2"], "error: "),
        ([], "Missing argument"),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    result = CliRunner(env={"COLUMNS": "250"}).invoke(app, ["perft", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
