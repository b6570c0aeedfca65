"""Every error that Keisei raises on purpose.

    KeiseiError
    ├── ConfigError              a setting is unknown, of the wrong type, or out of range
    ├── GameError
    │   ├── UnknownGameError     no game of that name
    │   ├── ActionError          an array of actions has the wrong shape, type or range
    │   │   └── IllegalActionError   an action is not legal in its position
    │   ├── SavedStateError      a saved state is damaged or belongs to another game
    │   └── ContractError        a game breaks the contract (raised by ``check_game``)
    └── NotationError            a text is not what its format says
        ├── InvalidPositionError     SFEN, KIF or CSA that describes no possible position
        ├── InvalidMoveError         a text that is no move at all
        └── IllegalMoveError         a move that the rules forbid here

A message names the rule, the value it got and the way out.
"""

from __future__ import annotations


class KeiseiError(Exception):
    """The root of the tree: catch this to catch everything Keisei raises on purpose."""


class ConfigError(KeiseiError, ValueError):
    """One or more settings are wrong; the message lists all of them."""


class GameError(KeiseiError):
    """Something is wrong with a game or with what was handed to it."""


class UnknownGameError(GameError, LookupError):
    """No game of that name is registered."""


class ActionError(GameError, ValueError):
    """An array of actions has the wrong shape, type or range. The games are as they were."""


class IllegalActionError(ActionError):
    """An action is not legal in its position. The games are as they were."""


class SavedStateError(GameError, ValueError):
    """A saved state is damaged or was made by another game. The games are as they were."""


class ContractError(GameError, AssertionError):
    """A game does not do what the contract asks of it."""


class NotationError(KeiseiError, ValueError):
    """A text does not follow its notation."""


class InvalidPositionError(NotationError):
    """The text describes no position, or one that the rules rule out."""


class InvalidMoveError(NotationError):
    """The text is not a move."""


class IllegalMoveError(NotationError):
    """The move is well formed, but the rules forbid it in this position."""
