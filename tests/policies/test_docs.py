"""The code on the page about policies runs, and the page names every network and policy."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from keisei import make_game
from keisei.policies import ModelConfig, build_network

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def code_on_the_page() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_code_runs() -> None:
    namespace: dict[str, object] = {"__name__": "policies_page"}
    for code in code_on_the_page():
        exec(compile(code, "docs/policies.md", "exec"), namespace)
    assert "decision" in namespace


@pytest.mark.parametrize("game", ["tictactoe", "shogi", "dummy"])
def test_the_network_on_the_page_fits_any_game(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page says: saved in the current directory, and named in the settings."""
    (code,) = [code for code in code_on_the_page() if "class WideNet" in code]
    (tmp_path / "wide.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    network = build_network({"network": "wide:WideNet", "hidden_dim": 8}, make_game(game).spec, seed=1)
    assert type(network).__name__ == "WideNet"
    del sys.modules["wide"]


def test_the_page_names_every_setting_of_a_network() -> None:
    assert [name for name in ModelConfig.model_fields if f"`{name}`" not in PAGE] == []
