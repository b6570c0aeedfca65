"""What a sweep may choose from: for each setting a list of values, or a range of numbers."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from keisei.config import problem_report
from keisei.errors import ConfigError

__all__ = [
    "Choice",
    "Combination",
    "Range",
    "Values",
    "grid",
    "parse_choices",
    "random_settings",
    "split_values",
]

Combination = Mapping[str, str]
"""A value for each setting, as ``--set`` takes it."""
_PAIRS = {"[": "]", "{": "}", "(": ")"}
DECADE = 10
"""A range whose ends are at least this far apart, as a ratio, is drawn from by magnitude."""


@dataclass(frozen=True)
class Values:
    """A list of values, as they are written."""

    texts: tuple[str, ...]

    def allows(self, text: str) -> bool:
        return text in self.texts

    def draw(self, source: random.Random) -> str:
        return source.choice(self.texts)


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``: whole ones if both ends are."""

    low: float
    high: float
    whole: bool

    @property
    def by_magnitude(self) -> bool:
        return self.low > 0 and self.high / self.low >= DECADE

    def allows(self, text: str) -> bool:
        try:
            value = float(text)
        except ValueError:
            return False
        return self.low <= value <= self.high

    def draw(self, source: random.Random) -> str:
        if self.by_magnitude:
            value = math.exp(source.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = source.uniform(self.low, self.high)
        return self.text(value)

    def text(self, value: float) -> str:
        """Writes a number with four digits, within the range."""
        if self.whole:
            return str(round(value))
        short = float(f"{value:.4g}")
        return repr(min(max(short, self.low), self.high))


Choice = Values | Range


def parse_choices(texts: Sequence[str]) -> dict[str, Choice]:
    """Reads assignments such as ``learner.epochs=1,2``, ``model.hidden_sizes=[64,64],[128]`` or
    ``learner.learning_rate=1e-5..1e-3``."""
    found: dict[str, Choice] = {}
    problems = []
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name or not values:
            problems.append(f"{text}: write it as part.setting=value,value")
        elif name in found:
            problems.append(f"{text}: {name} is given twice; put all its values into one list")
        else:
            try:
                found[name] = _choice(values)
            except ValueError as error:
                problems.append(f"{text}: {error}")
    if problems:
        raise ConfigError(problem_report("--set", problems))
    return found


def split_values(text: str) -> list[str]:
    """Splits a text at commas, except within brackets and quotes."""
    parts, expected, quote = [""], [], ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _PAIRS:
            expected.append(_PAIRS[sign])
        elif expected and sign == expected[-1]:
            expected.pop()
        if sign == "," and not expected and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    if expected or quote:
        raise ValueError(f"{expected[-1] if expected else quote} is missing")
    return [part.strip() for part in parts]


def grid(choices: Mapping[str, Choice]) -> Iterator[Combination]:
    """Yields all combinations, in order."""
    ranges = [name for name, choice in choices.items() if isinstance(choice, Range)]
    if ranges:
        raise ConfigError(
            f"{', '.join(ranges)}: a range has no end of values; add --random N or --optuna N, or list some values"
        )
    texts = [choice.texts for choice in choices.values() if isinstance(choice, Values)]
    return (dict(zip(choices, values, strict=True)) for values in product(*texts))


def random_settings(choices: Mapping[str, Choice], count: int) -> list[Combination]:
    """Draws different combinations; fewer if there are not that many. Every call draws the same ones, and a longer draw
    begins with those of a shorter one."""
    source = random.Random(0)
    found: dict[tuple[str, ...], Combination] = {}
    for _ in range(100 * count):
        drawn = {name: choice.draw(source) for name, choice in choices.items()}
        found.setdefault(tuple(drawn.values()), drawn)
        if len(found) == count:
            break
    return list(found.values())


def _choice(text: str) -> Choice:
    low, dots, high = text.partition("..")
    if dots and "," not in text:
        return _range(low.strip(), high.strip())
    values = split_values(text)
    if not all(values) or len(set(values)) < len(values):
        raise ValueError("each value is given once, and none is empty")
    return Values(tuple(values))


def _range(low: str, high: str) -> Range:
    try:
        ends = float(low), float(high)
    except ValueError:
        raise ValueError("a range is written with two numbers, such as 1e-5..1e-3") from None
    if not all(map(math.isfinite, ends)) or ends[0] >= ends[1]:
        raise ValueError("a range goes from a smaller number to a larger one")
    return Range(*ends, whole=all(re.fullmatch(r"[-+]?\d+", end) for end in (low, high)))
