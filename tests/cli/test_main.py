"""The command as a whole: version, help, and errors as a person meets them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.errors import UnknownGameError


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"keisei {keisei.__version__}\n"


def test_help_lists_the_subcommands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in ("doctor", "games", "perft", "play"):
        assert name in result.stdout


def test_an_error_is_one_message_and_exit_code_2() -> None:
    result = CliRunner().invoke(app, ["play", "random", "--game", "shoggi"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: no game is named 'shoggi'")
    assert "did you mean 'shogi'" in result.stderr
    assert "Traceback" not in result.stderr


def test_debugging_keeps_the_traceback() -> None:
    with pytest.raises(UnknownGameError):
        CliRunner(env={"KEISEI_DEBUG": "1"}).invoke(
            app, ["play", "random", "--game", "shoggi"], catch_exceptions=False
        )


def test_square_brackets_of_a_message_are_shown_as_they_are() -> None:
    result = CliRunner().invoke(app, ["play", "random", "--game", "no_such_module[red]:Game"])
    assert result.exit_code == 2
    assert "no_such_module[red]" in result.stderr


def test_an_unknown_subcommand_is_refused() -> None:
    assert CliRunner().invoke(app, ["playy"]).exit_code == 2


def test_the_command_starts_without_torch() -> None:
    code = "import sys, keisei.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
