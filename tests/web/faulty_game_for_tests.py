"""A game whose moves do what code of users may do: never return, hold the interpreter, or end the process.

``install`` offers it as an installed package does, by an entry point. So no run has to name its code.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from enum import IntEnum
from pathlib import Path

import numpy as np

import keisei

__all__ = ["Fault", "FaultyGame", "install"]


class Fault(IntEnum):
    """The actions. Each is legal at any time."""

    NONE = 0
    SPINS = 1
    HOLDS_THE_INTERPRETER = 2
    SLEEPS_AND_IGNORES_SIGNALS = 3
    STOPS_ITS_PROCESS = 4
    LEAVES = 5
    CRASHES = 6
    RAISES = 7
    TAKES_HALF_A_SECOND = 8


class FaultyGame(keisei.SingleGame):
    name = "faulty"
    num_actions = len(Fault)
    observation = keisei.ObservationSpec((1,), np.dtype(np.uint8))
    zero_sum = True
    max_plies = 50

    def reset(self, rng: object) -> None:
        self.to_move = 0

    def legal(self, seat: int) -> list[int]:
        return [*Fault]

    def play(self, action: int, rng: object) -> None:
        self.to_move = 1 - self.to_move
        _fail(Fault(action))

    def observe(self, seat: int) -> np.ndarray:
        return np.zeros(1, np.uint8)

    def outcome(self) -> None:
        return None


def _fail(fault: Fault) -> None:
    if fault is Fault.SPINS:
        while True:
            pass
    elif fault is Fault.HOLDS_THE_INTERPRETER:
        re.match(
            r"(a+)+$", "a" * 60 + "b"
        )  # no other thread runs meanwhile, and it takes longer than anybody lives
    elif fault is Fault.SLEEPS_AND_IGNORES_SIGNALS:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(100_000)
    elif fault is Fault.STOPS_ITS_PROCESS:
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault is Fault.LEAVES:
        os._exit(0)
    elif fault is Fault.CRASHES:
        os.abort()
    elif fault is Fault.RAISES:
        raise ZeroDivisionError("as games do")
    elif fault is Fault.TAKES_HALF_A_SECOND:
        time.sleep(0.5)


def install(folder: Path) -> Path:
    """Makes a folder that offers the game to processes with it in their path."""
    shutil.copy(__file__, folder / "faulty_game_for_tests.py")
    about = folder / "faulty-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[keisei.games]\nfaulty = faulty_game_for_tests:FaultyGame\n")
    return folder
