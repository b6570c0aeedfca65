"""Imports point one way, rooms have names that say their job, and what is exported exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

import keisei

SOURCE = Path(keisei.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# A room may import the rooms of the rows above its own. Rooms of one row stay apart.
ROWS = (
    {"errors"},
    {"config", "ranges", "native", "machine"},
    {"games", "runs"},
    {"experience"},
    {"policies"},
    {"parallel", "learners", "evaluation"},
    {"interfaces", "training"},
    {"proving", "web"},
    {"cli"},
)
LEVEL = {room: level for level, rooms in enumerate(ROWS) for room in rooms}
FACADE = "keisei"
"""The package itself, which gathers the public names; only users and the command line import it."""


def dotted_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """``keisei.games.shogi`` is in the room ``games``."""
    return [*module.split("."), FACADE][1]


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """Our modules that a file imports, wherever in the file. Relative imports start at ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "keisei")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            if base == "keisei":
                yield from (f"keisei.{alias.name}" if alias.name in LEVEL else base for alias in node.names)
            elif base.startswith("keisei."):
                yield base


def may_import(importer: str, imported: str) -> bool:
    if importer in (FACADE, imported):
        return True
    if imported == FACADE:
        return importer == "cli"
    return LEVEL[imported] < LEVEL[importer]


def wrong_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    package = module if is_package else module.rpartition(".")[0]
    imports = imported_modules(ast.parse(source), package)
    return [name for name in imports if not may_import(room_of(module), room_of(name))]


@pytest.mark.parametrize("path", MODULES, ids=dotted_name)
def test_imports_point_one_way(path: Path) -> None:
    assert wrong_imports(path.read_text(), dotted_name(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "line", "wrong"),
    [
        ("keisei.games.shogi.board", "from keisei.policies import sampling", ["keisei.policies"]),
        ("keisei.games.shogi.board", "from ...policies.nets import Net", ["keisei.policies.nets"]),
        ("keisei.parallel.worker", "import keisei.learners.ppo", ["keisei.learners.ppo"]),
        ("keisei.learners.ppo", "def f():\n    from keisei import parallel", ["keisei.parallel"]),
        ("keisei.experience.slab", "from keisei import make_game", ["keisei"]),
        ("keisei.interfaces.usi", "from keisei.training import run", ["keisei.training"]),
        (
            "keisei.training.run",
            "from keisei.evaluation import match\nimport keisei.config",
            [],
        ),
        ("keisei.cli.play", "from keisei import make_game\nimport numpy", []),
    ],
)
def test_the_rule_itself_tells_right_from_wrong(module: str, line: str, wrong: list[str]) -> None:
    assert wrong_imports(line, module) == wrong


def knots(imports: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Modules that import each other, directly or through others."""

    def reached(module: str) -> set[str]:
        found, waiting = set[str](), [module]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    all_reached = {module: reached(module) for module in imports}
    return {
        frozenset(other for other in found if module in all_reached[other])
        for module, found in all_reached.items()
        if module in found
    }


def test_no_modules_of_parallel_import_each_other() -> None:
    """Not for their types either, nor inside functions: each can be read after those that it imports."""
    paths = {dotted_name(path): path for path in MODULES if room_of(dotted_name(path)) == "parallel"}
    imports = {
        module: {*imported_modules(ast.parse(path.read_text()), module.rpartition(".")[0])} & paths.keys()
        for module, path in paths.items()
    }
    assert len(imports["keisei.parallel.parallel_manager"]) > 10
    assert knots(imports) == set()


def test_what_a_knot_is() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str]()}
    assert knots(imports) == {frozenset({"b", "c"})}


def test_every_room_has_its_place() -> None:
    rooms = {room_of(dotted_name(path)) for path in MODULES} - {FACADE}
    assert rooms <= LEVEL.keys(), "give a new room its row in ROWS and in docs/architecture.md"


def test_every_room_is_a_package() -> None:
    """Without its ``__init__.py``, as where git was told to ignore it, a folder is imported all the same."""
    assert [str(path) for path in MODULES if not path.with_name("__init__.py").is_file()] == []


def test_no_room_is_a_box_for_odds_and_ends() -> None:
    vague = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}
    assert [str(path) for path in MODULES if vague & {*path.relative_to(SOURCE).parts, path.stem}] == []


SHOGI_IS_AT_HOME = ("games/shogi/", "games/registry.py", "interfaces/usi/", "cli/")
"""Its package, the list of built-in games, the protocol of its programs, and the commands that a person types."""


def names_in_code(source: str) -> Iterator[str]:
    """All that a file says to the machine: modules, names and texts, but no comment and no docstring, which may take
    any game for an example."""
    tree = ast.parse(source)
    said_to_people = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if id(node) not in said_to_people:
            yield from (str(value) for _, value in ast.iter_fields(node) if isinstance(value, str))


def names_shogi(source: str) -> bool:
    return any("shogi" in name.lower() for name in names_in_code(source))


def test_no_code_but_its_own_names_shogi() -> None:
    """What the core needs of a game, its spec or its package offers."""
    elsewhere = [p for p in MODULES if not p.relative_to(SOURCE).as_posix().startswith(SHOGI_IS_AT_HOME)]
    assert [dotted_name(path) for path in elsewhere if names_shogi(path.read_text())] == []


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("from keisei.games.shogi import kif", True),
        ("from keisei.games import shogi as game", True),
        ("import keisei.games.shogi.game", True),
        ('GAME = "shogi"', True),
        ('print(f"as in Shogi, {1}")', True),
        ("def search_shogi(): ...", True),
        ("class Player:\n    x: ShogiGame", True),
        ('class Player:\n    """As in Shogi."""\n    x = 1  # in Shogi 2', False),
        ('x = 1\n"""In Shogi 2."""', False),
    ],
)
def test_what_it_is_to_name_shogi(source: str, named: bool) -> None:
    assert names_shogi(source) is named


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=dotted_name)
def test_everything_exported_exists(path: Path) -> None:
    package = import_module(dotted_name(path))
    names = getattr(package, "__all__", [])
    assert [name for name in names if not hasattr(package, name)] == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["keisei", "keisei.games", "keisei.games.shogi"])
def test_public_packages_say_what_they_export(name: str) -> None:
    assert import_module(name).__all__


def test_settings_know_no_torch() -> None:
    imports = {
        name
        for path in (SOURCE / "config").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not {name for name in imports if name.split(".")[0] == "torch"}
