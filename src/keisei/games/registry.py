"""Games by name: built in, registered, installed by other packages, or adapted from other libraries."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from keisei.errors import ConfigError, GameError, UnknownGameError
from keisei.games.batched import BatchFactory
from keisei.games.contract import Game, GameFactory
from keisei.games.importing import import_named, import_object
from keisei.games.options import NUMBERING, allowed_options, check_numbering, check_options, did_you_mean
from keisei.games.own_files import absolute_name, file_of, loaded_digest
from keisei.games.single import SingleGame

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "keisei.games"
DEFAULT_GAME = "shogi"
"""The game that is played by default."""

GameSource: TypeAlias = str | type[SingleGame] | GameFactory | Callable[..., Game]
"""Anything that a game can be made from: a name, ``module:Class``, ``path.py:Class``, a ``SingleGame`` class or a batch
factory."""


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    target: GameSource
    """A ``module:Class`` text is imported when the game is made, so ``import keisei`` stays fast."""
    description: str


_ADAPTERS = {
    "pettingzoo": "keisei.games.adapters.from_pettingzoo:pettingzoo_game",
    "openspiel": "keisei.games.adapters.from_openspiel:openspiel_game",
}
_REGISTERED: dict[str, _Entry] = {}
_BUILT_IN = (
    _Entry("tictactoe", "keisei.games.tictactoe:TicTacToe", "Three in a row on a board of 3 x 3."),
    _Entry(
        "connect-four",
        "keisei.games.connect_four:ConnectFour",
        "Four in a row; pieces fall in 7 columns of 6.",
    ),
    _Entry("dummy", "keisei.games.dummy:DummyGame", "Costs no time: for measuring what is around games."),
    _Entry("ludo", "keisei.games.ludo.game:LudoGame", "A race with dice for two to four, by a native core."),
    _Entry("shogi", "keisei.games.shogi.game:ShogiGame", "Japanese chess with drops, by a native core."),
    _Entry(
        "treasurehunt",
        "keisei.games.worlds.treasure_hunt:TreasureHunt",
        "Agents look for gems and food in a field, and avoid bones.",
    ),
    _Entry("tag", "keisei.games.worlds.tag:Tag", "One agent is it and chases the others."),
    _Entry(
        "cleanup",
        "keisei.games.worlds.cleanup:Cleanup",
        "Apples grow while the river is clean, and cleaning it brings nothing.",
    ),
    _Entry(
        "stag-hunt",
        "keisei.games.worlds.stag_hunt:StagHunt",
        "Hares can be caught alone, stags only together.",
    ),
    _Entry(
        "prisoners-dilemma",
        "keisei.games.worlds.matrix_games:PrisonersDilemma",
        "Cooperate or defect, round after round.",
    ),
    _Entry("hawk-dove", "keisei.games.worlds.matrix_games:HawkDove", "Fight or yield, round after round."),
    _Entry(
        "bach-stravinsky",
        "keisei.games.worlds.matrix_games:BachStravinsky",
        "Agree on one of two concerts, round after round.",
    ),
)


def is_world(name: str) -> bool:
    """Checks if a name belongs to a built-in game of agents that earn returns. Nothing is imported for it."""
    return any(entry.name == name and ".worlds." in str(entry.target) for entry in _BUILT_IN)


def make_game(
    name: GameSource, *, batch: int = 1, seed: int = 0, first_game: int = 0, **options: Any
) -> Game:
    """Makes a batch of games.

    ``name`` is a registered name, ``"module:Class"``, ``"path.py:Class"``, ``"pettingzoo:connect_four_v3"``,
    ``"openspiel:tic_tac_toe"``, or a class or factory itself. Games are numbered from ``first_game``. Game k of a
    batch plays like the only game of a batch that starts at k.
    """
    batch, seed, first_game = check_numbering(batch, seed, first_game)
    factory = game_factory(name)
    label = name if isinstance(name, str) else getattr(name, "__name__", str(name))
    allowed = _option_names(factory)
    if allowed is not None:
        check_options(label, options, allowed)
    return factory(batch=batch, seed=seed, first_game=first_game, **options)


def register_game(name: str, target: GameSource, description: str = "") -> None:
    """Registers a game under a name for ``make_game``. ``target`` is a ``SingleGame`` class, a batch factory, or a
    ``"module:Class"`` text that is imported when the game is made."""
    if not isinstance(name, str) or not name.strip() or ":" in name:
        raise ConfigError(f"the name of a game is a text without a colon, got {name!r}")
    key = _key(name)
    known = _REGISTERED.get(key)
    if known is not None and known.target != target:
        raise ConfigError(
            f"a game named {known.name!r} is registered already; choose another name than {name!r}"
        )
    if not description and not isinstance(target, str):
        description = (getattr(target, "__doc__", None) or "").strip().partition("\n")[0]
    _REGISTERED[key] = _Entry(name, target, description)


def registered_games() -> dict[str, str]:
    """Lists the names that ``make_game`` knows, each with a one-line description."""
    games = {entry.name: entry.description for entry in _REGISTERED.values()}
    for point in _installed().values():
        games.setdefault(point.name, _origin(point))
    return games


def import_built_in_games() -> None:
    """Imports the games that come with Keisei. A fork server calls this once, so that its children need not import
    them."""
    for entry in _BUILT_IN:
        game_factory(entry.name)


def game_factory(source: GameSource) -> GameFactory:
    """Gets the batch factory for a name, a class or a factory."""
    if not isinstance(source, str):
        return _as_factory(source)
    prefix, colon, rest = source.partition(":")
    if not colon:
        return _as_factory(_by_name(source))
    if prefix in _ADAPTERS:
        return cast(GameFactory, partial(_import(_ADAPTERS[prefix]), rest))
    return _as_factory(_declared(source, _import(source)))


def is_registered(name: str) -> bool:
    """Checks if a game has this name. Nothing is imported."""
    return _key(name) in _REGISTERED or _key(name) in _installed()


def is_adapted(name: str) -> bool:
    """Checks if a text names a game of another library, as ``openspiel:NAME`` does."""
    return name.partition(":")[0] in _ADAPTERS and ":" in name


def games_in(module_name: str) -> list[str]:
    """Imports a module, or a file by its path, and lists the names of the games that are defined there."""
    module = import_named(module_name, missing=UnknownGameError, broken=GameError)
    return [name for name, found in vars(module).items() if _is_defined_in(module, found)]


def _is_defined_in(module: ModuleType, found: object) -> bool:
    if isinstance(found, BatchFactory):
        found = found.single
    own = isinstance(found, type) and found.__module__ == module.__name__
    return own and not inspect.isabstract(found) and _makes_games(found)


def source_digest(name: str) -> str | None:
    """Computes the digest of the file that defines a game, for ``path.py:Class``; None for any other name."""
    file = file_of(name)
    if file is None or not names_code(name):
        return None
    _import(name)
    return loaded_digest(file)


def names_code(name: str) -> bool:
    """Checks if ``make_game`` would import code for this name that is neither Keisei's nor registered. The adapters
    take only names that the adapted library lists."""
    return ":" in name and not is_adapted(name)


def takes_option(source: GameSource, option: str) -> bool:
    """Checks if a game has this option. A batch factory that takes any keyword lists its options in
    ``OPTION_NAMES``."""
    factory = game_factory(source)
    listed: tuple[str, ...] | None = getattr(factory, "OPTION_NAMES", None)
    return option in (listed if listed is not None else _option_names(factory) or ())


def portable_name(name: str) -> str:
    """Finds a name that other processes know too. A game that this program registered is named by its class."""
    entry = _REGISTERED.get(_key(name))
    if entry is None or isinstance(entry.target, str):
        return absolute_name(name)
    module, qualname = getattr(entry.target, "__module__", None), getattr(entry.target, "__qualname__", "")
    if module is None or "<" in qualname or "." in qualname:
        raise ConfigError(
            f"the game {name!r} was registered as {entry.target!r}, which worker processes cannot import; register a "
            f"class or function at the top level of a module, or 'module:Class'"
        )
    return f"{module}:{qualname}"


def _key(name: str) -> str:
    """Normalises a name: case, dashes and underscores do not matter."""
    return name.strip().lower().replace("-", "").replace("_", "")


def _by_name(name: str) -> GameSource:
    entry = _REGISTERED.get(_key(name))
    if entry is not None:
        return (
            _declared(entry.target, _import(entry.target)) if isinstance(entry.target, str) else entry.target
        )
    point = _installed().get(_key(name))
    if point is not None:
        return _declared(point.value, point.load())
    known = registered_games()
    near = did_you_mean(name.lower(), known)
    raise UnknownGameError(
        f"no game is named {name!r}{near}. Known games: {', '.join(sorted(known))}; "
        f"or name a class as 'module:Class' or 'path.py:Class', or 'pettingzoo:NAME', or 'openspiel:NAME'"
    )


def _installed() -> dict[str, EntryPoint]:
    """Finds the games of installed packages. Packages in the current directory do not count: they may be folders of
    runs."""
    from importlib.metadata import entry_points  # a tenth of the time in which a small command starts

    points = entry_points(group=ENTRY_POINT_GROUP)
    return {_key(point.name): point for point in points if not _lies_here(point)}


def _lies_here(point: EntryPoint) -> bool:
    try:
        return point.dist is not None and os.path.samefile(str(point.dist.locate_file("")), os.getcwd())
    except OSError:  # one of them is gone, or is no folder
        return False


def _origin(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name}" if point.dist is not None else ""
    return f"{point.value}{package}"


def _as_factory(source: GameSource) -> GameFactory:
    if isinstance(source, type) and issubclass(source, SingleGame):
        return BatchFactory(source)
    if not callable(source):
        raise ConfigError(
            f"a game is made from a name, a SingleGame class or a batch factory, got {source!r}"
        )
    return cast(GameFactory, source)


def _declared(path: str, found: object) -> GameSource:
    """Checks that what a text names makes games. The text may be wrong, and calling the wrong object could have any
    effect."""
    if _makes_games(found):
        return cast(GameSource, found)
    raise ConfigError(
        f"{path!r} is {found!r}, which makes no games; name a SingleGame class, or a factory with the parameters "
        f"{', '.join(NUMBERING)}"
    )


def _makes_games(found: object) -> bool:
    if isinstance(found, BatchFactory) or (isinstance(found, type) and issubclass(found, SingleGame)):
        return True
    return callable(found) and set(NUMBERING) <= _parameters(found)


def _parameters(builder: Callable[..., object]) -> set[str]:
    try:
        return {*inspect.signature(builder).parameters}
    except (TypeError, ValueError):  # it is written in C, without a signature
        return set()


def _option_names(factory: GameFactory) -> tuple[str, ...] | None:
    if isinstance(factory, BatchFactory):
        return factory.option_names()
    if isinstance(factory, partial):
        return None  # the adapters check what the adapted library allows
    return allowed_options(factory)


def _import(path: str) -> Any:
    return import_object(path, missing=UnknownGameError, broken=GameError)


for _entry in _BUILT_IN:
    register_game(_entry.name, _entry.target, _entry.description)
