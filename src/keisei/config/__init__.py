"""Typed settings: one small class for each part, and errors that list all problems at once.

A part declares its settings as a ``Settings`` class with a text below each field. ``parse_settings`` fills it from a
mapping (a YAML file, or keywords). ``apply_overrides`` changes the mapping first, as ``--set`` asks. ``descriptions``
reads the texts. This room imports neither torch nor any part, so every module may import it.
"""

from keisei.config.explained import described_schema, descriptions
from keisei.config.problems import classes_of, problem_report
from keisei.config.reading import apply_overrides, parse_settings
from keisei.config.settings import AnySettings, Rule, Settings, chosen_by

__all__ = [
    "AnySettings",
    "Rule",
    "Settings",
    "apply_overrides",
    "chosen_by",
    "classes_of",
    "described_schema",
    "descriptions",
    "parse_settings",
    "problem_report",
]
