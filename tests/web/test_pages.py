"""Pages need no inline script or style, load nothing from elsewhere, and come with the package."""

from __future__ import annotations

import ast
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

import keisei
from keisei.runs import metric_names
from keisei.web.pages import MISSING, PAGES, read_files

FILES = read_files()
OWN = {name: content.decode() for name, (content, _) in FILES.items() if not name.startswith("uPlot")}


@pytest.mark.parametrize("name", sorted(set(PAGES.values())))
def test_pages_have_no_inline_scripts_or_styles(name: str) -> None:
    page = OWN[name]
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    linked = re.findall(r'(?:src|href)="/static/([^"]+)"', page)
    assert set(linked) <= set(FILES)


@pytest.mark.parametrize("name", sorted(OWN))
def test_nothing_comes_from_elsewhere(name: str) -> None:
    """Pages work offline."""
    assert re.findall(r"https?://(?!www\.w3\.org)[^\s\"']+", OWN[name]) == []


@pytest.mark.parametrize("name", sorted(name for name in OWN if name.endswith(".js")))
def test_scripts_write_no_markup(name: str) -> None:
    """Texts of runs reach a page as text, and are never read as HTML."""
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", OWN[name])
        == []
    )


def test_scripts_import_what_is_there() -> None:
    imported = {found for text in OWN.values() for found in re.findall(r'from "\./([^"]+)"', text)}
    assert imported <= set(FILES)


def test_a_page_is_the_template_with_its_own_script() -> None:
    assert "page.html" not in FILES
    for name in PAGES.values():
        assert f'src="/static/{name.removesuffix("html")}js" type="module"' in OWN[name]
        assert "Loading" in OWN[name]
    assert "There is no such page" in OWN[MISSING]
    assert "$" not in OWN[MISSING]


def test_scripts_take_the_names_of_metrics_from_their_one_list() -> None:
    used = {name for text in OWN.values() for name in re.findall(r"\bnamed\.([A-Z_]+)", text)}
    assert {"LOSS", "SPEED", "EVALUATION"} <= used
    for name in used:
        assert f"export const {name} = {json.dumps(getattr(metric_names, name))};\n" in OWN["metric_names.js"]
    spelled = [
        (file, name)
        for file, text in OWN.items()
        for name in (*metric_names.TAGS, f'"{metric_names.EVALUATION}"')
        if file.endswith(".js") and file != "metric_names.js" and name in text
    ]
    assert spelled == []


def test_the_vendored_chart_library_brings_its_licence() -> None:
    folder = files("keisei.web") / "vendored"
    assert "MIT" in folder.joinpath("uPlot.LICENSE.txt").read_text()
    version = re.search(r"uPlot (\d+\.\d+\.\d+)", folder.joinpath("README.txt").read_text())
    assert version is not None
    assert f"(v{version[1]})" in FILES["uPlot.iife.min.js"][0][:300].decode()


TRAINERS = ("keisei.training", "keisei.parallel", "keisei.learners")


@pytest.mark.parametrize(
    "path", sorted(Path(keisei.__file__).parent.joinpath("web").glob("*.py")), ids=lambda p: p.name
)
def test_the_dashboard_reads_runs_and_reaches_into_no_trainer(path: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert not {name for name in imported if name.startswith(TRAINERS)}
