"""Runs that differ in their seed alone. They lie in one folder, which is what makes them a group."""

from __future__ import annotations

from pathlib import Path

from keisei.errors import ConfigError, RunError
from keisei.runs.directory import CONFIG
from keisei.runs.run_names import MOST_PARTS, check_run_name

__all__ = ["check_folder", "parse_seeds", "seed_name"]

_LARGEST = 1 << 63


def parse_seeds(text: str) -> tuple[int, ...]:
    """Reads seeds such as ``0,1,2``."""
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"--seeds {text}: seeds are whole numbers with commas between them, such as 0,1,2"
        ) from None
    if len(set(seeds)) < len(seeds) or not all(0 <= seed < _LARGEST for seed in seeds):
        raise ConfigError(f"--seeds {text}: each seed is given once, and is from 0 to {_LARGEST - 1}")
    return seeds


def seed_name(folder: str, seed: int) -> str:
    """Makes the name of the run of a seed."""
    return f"{folder}/seed{seed}"


def check_folder(root: Path, folder: str, below: int) -> None:
    """Refuses a folder that is a run, or whose name leaves no room for so many parts below it."""
    check_run_name(folder)
    if folder.count("/") + 1 + below > MOST_PARTS:
        raise RunError(f"--name {folder}: names have at most {MOST_PARTS} parts, and its runs add {below}")
    if (root / folder / CONFIG).is_file():
        raise RunError(
            f"{root / folder} is a run, and a run holds no other runs; give the folder another --name"
        )
