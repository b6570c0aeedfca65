"""Every error that Keisei raises on purpose.

    KeiseiError
    ├── ConfigError              a setting is unknown, of the wrong type, or out of range
    ├── GameError
    │   ├── UnknownGameError     no game of that name
    │   ├── ActionError          an array of actions has the wrong shape, type or range
    │   │   └── IllegalActionError   an action is not legal in its position
    │   ├── SavedStateError      a saved state is damaged or belongs to another game
    │   └── ContractError        a game breaks the contract (raised by ``check_game``)
    ├── SharedMemoryError        shared memory is not available, or is used wrongly
    ├── WeightsError             weights do not fit a model, are damaged, or could not be read
    │   └── WeightsVersionError      the weights of that version do not exist (any more)
    ├── ParallelError            parallel collection cannot continue, or is used in the wrong order
    │   ├── WorkerStartError         a worker could not be started
    │   ├── NoWorkersError           all workers are stopped, paused, failed or quarantined
    │   ├── TableFailedError         a table fails under two workers; has its seed and place
    │   ├── CollectTimeoutError      no progress for too long; nothing that was collected is lost
    │   ├── ClusterError             a cluster cannot be reached, or does not have what workers need
    │   └── WorkerTraceback          the traceback of a worker's error, as the cause of the errors above
    ├── LearningError            learning cannot go on, for example since rewards are not finite
    │   └── DivergenceError          training has diverged: a loss is no longer a number
    ├── CheckpointError          a checkpoint is damaged, or does not fit what it is loaded into
    │   ├── CheckpointVersionError   a checkpoint is whole, but of a format that this version does not read
    │   └── CheckpointWriteError     a checkpoint could not be written; the earlier ones are whole
    ├── RunError                 a run directory cannot be made, opened or used
    │   ├── RunExistsError           a run of that name exists already
    │   ├── RunLockedError           another process is training that run
    │   ├── RunSettingsError         settings that an existing run cannot change to
    │   ├── RunDatabaseError         run.db is damaged, foreign, full, or of a newer version
    │   ├── ForeignFileError         a file of a run is a link, a device, or larger than any that Keisei writes
    │   └── UntrustedCodeError       a run names code, and nobody has said here that they trust it
    ├── EngineError              another program's engine does not start, ends, or breaks the protocol
    │   └── EngineTimeoutError       it did not answer in time
    ├── PolicyError              a policy cannot decide: no legal action, or logits that are not numbers
    └── NotationError            a text does not follow its format
        ├── InvalidPositionError     SFEN, KIF or CSA of an impossible position
        ├── InvalidMoveError         a text that is not a move
        └── IllegalMoveError         a move that the rules forbid here

A message names the rule, the value it got and what to do.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from traceback import walk_tb


class KeiseiError(Exception):
    """The root of the tree: catch this to catch everything Keisei raises on purpose."""


class ConfigError(KeiseiError, ValueError):
    """One or more settings are wrong; the message lists all of them."""


class GameError(KeiseiError):
    """Something is wrong with a game or with its arguments."""


class UnknownGameError(GameError, LookupError):
    """No game of that name is registered."""


class ActionError(GameError, ValueError):
    """An array of actions has the wrong shape, type or range. The games do not change."""


class IllegalActionError(ActionError):
    """An action is not legal in its position. The games do not change."""


class SavedStateError(GameError, ValueError):
    """A saved state is damaged or belongs to another game. The games do not change."""


class ContractError(GameError, AssertionError):
    """A game breaks the contract."""


class SharedMemoryError(KeiseiError):
    """Shared memory is not available, or is used after it was closed, past its end, or by the wrong process."""


class WeightsError(KeiseiError, ValueError):
    """Weights do not fit a model, are damaged, or could not be read."""


class WeightsVersionError(WeightsError, LookupError):
    """The weights of the requested version do not exist, or no longer exist."""


class ParallelError(KeiseiError):
    """Parallel collection cannot continue, or was used in the wrong order."""


class WorkerStartError(ParallelError):
    """A worker could not be started. The others have been stopped."""


class NoWorkersError(ParallelError):
    """No worker is left that can collect."""


class TableFailedError(ParallelError):
    """A table failed under two workers, so the fault is in its games. The message has its seed and place."""


class CollectTimeoutError(ParallelError, TimeoutError):
    """The workers made no progress for too long. What was collected so far comes with the next call."""


class ClusterError(ParallelError):
    """A cluster of machines cannot be reached, does not fit this process, or lacks what workers need."""


class WorkerTraceback(ParallelError):  # noqa: N818  (a part of an error)
    """The traceback of an error in a worker. It is the cause (``__cause__``) of the error that is raised for it."""

    @classmethod
    def of(cls, text: str) -> WorkerTraceback | None:
        """Makes one from its text; None if there is none, as after a kill."""
        return cls(f"in a worker\n\n{text}") if text else None


class LearningError(KeiseiError):
    """Learning cannot go on, for example since a loss is no longer a number."""


class DivergenceError(LearningError):
    """Training has diverged: the steps were too large. The way out is an earlier checkpoint and smaller steps."""


class CheckpointError(KeiseiError):
    """A checkpoint is damaged, or does not fit what it is loaded into. The message names the file."""


class CheckpointVersionError(CheckpointError):
    """A checkpoint is whole, but this version cannot read its format."""


class CheckpointWriteError(CheckpointError):
    """A checkpoint could not be written, for example because the disk is full. Earlier checkpoints are whole."""


class RunError(KeiseiError):
    """A run directory cannot be made, opened or used."""


class RunExistsError(RunError, FileExistsError):
    """A run of that name exists; the message lists the choices."""


class RunLockedError(RunError):
    """Another process is training this run."""


class RunSettingsError(RunError, ValueError):
    """An existing run cannot change to these settings. Nothing was written; the message names each and the way out."""


class RunDatabaseError(RunError):
    """A run's database is damaged, foreign, of a newer version, or cannot be written."""


class ForeignFileError(RunError, OSError):
    """A file of a run is a link, no plain file, or larger than any that Keisei writes. It was not read."""


class UntrustedCodeError(RunError):
    """A run names code that is not part of Keisei, and nobody has said here that they trust it. Nothing is imported."""


class PolicyError(KeiseiError):
    """A policy cannot decide with its inputs, or its network has diverged."""


class EngineError(KeiseiError):
    """An engine of another program does not start, has ended, or breaks the protocol. The message names it."""


class EngineTimeoutError(EngineError, TimeoutError):
    """An engine of another program did not answer in time."""


class NotationError(KeiseiError, ValueError):
    """A text does not follow its notation."""


class InvalidPositionError(NotationError):
    """The text does not describe a possible position."""


class InvalidMoveError(NotationError):
    """The text is not a move."""


class IllegalMoveError(NotationError):
    """The move is well formed, but the rules forbid it in this position."""


_PACKAGES = frozenset({"site-packages", "dist-packages"})
"""Folders in which Python keeps the packages of others."""


def in_one_line(error: BaseException) -> str:
    """Describes an error in one line, with its place: ``ValueError: no such square (my_game.py:41)``."""
    text = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
    if isinstance(error, SyntaxError):
        return text  # which has its place
    return f"{text}{_place_of(error)}"


def _place_of(error: BaseException) -> str:
    """Gets file and line of the innermost frame. The user's own code is preferred to libraries and Keisei, since the
    fault is most often there."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [(filename, line) for filename, line in frames if not _is_library(filename)]
    return "".join(f" ({_short(filename)}:{line})" for filename, line in (own or frames)[-1:])


def _is_library(filename: str) -> bool:
    import sysconfig  # which few commands need, and none while it starts

    path, ours, python = Path(filename), Path(__file__).parent, sysconfig.get_path("stdlib")
    installed = not _PACKAGES.isdisjoint(path.parts)
    return installed or filename.startswith("<") or path.is_relative_to(ours) or path.is_relative_to(python)


def _short(filename: str) -> str:
    """Gets a path as seen from the current directory, if it lies below it."""
    with suppress(OSError, ValueError):  # there is no such directory any more, or the file lies elsewhere
        return str(Path(filename).relative_to(Path.cwd()))
    return filename
