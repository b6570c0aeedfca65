"""``check_game``: tests whether a game keeps the contract.

Each ``check_*`` function of this package tests one promise of ``keisei.games.contract``. They work for every game,
from a class of twenty lines to a native core.
"""

from __future__ import annotations

from typing import Any

from keisei.games.check.offers import check_offers, check_spec
from keisei.games.check.playing import check_bad_actions, check_playing
from keisei.games.check.positions import check_reading
from keisei.games.check.repeating import (
    check_damaged_states,
    check_determinism,
    check_numbering,
    check_save_and_load,
)
from keisei.games.check.subject import Subject
from keisei.games.registry import GameSource

__all__ = ["check_game"]


def check_game(game: GameSource, *, steps: int = 200, seed: int = 7, **options: Any) -> None:
    """Raises ``ContractError`` if a game breaks the contract.

    ``game`` is what ``make_game`` takes: a name, ``module:Class``, a class or a factory. The longer checks play at
    least ``steps`` steps.
    """
    subject = Subject(game, seed, options)
    check_spec(subject.make())
    check_offers(subject)
    check_reading(subject.make())
    check_playing(subject.make(), steps)
    check_bad_actions(subject.make())
    check_determinism(subject, steps)
    check_numbering(subject, steps)
    check_save_and_load(subject, steps)
    check_damaged_states(subject)
