"""What a sweep chooses from."""

from __future__ import annotations

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import ConfigError
from keisei.training.experiments.choices import (
    Range,
    Values,
    grid,
    parse_choices,
    random_settings,
    split_values,
)


def test_lists_and_ranges_are_read() -> None:
    assert parse_choices(["a.b=1,2", "c=[1, 2],[3]", "d=x", "e=1e-5..1e-3", "f=1..9", "g='a,b',c"]) == {
        "a.b": Values(("1", "2")),
        "c": Values(("[1, 2]", "[3]")),
        "d": Values(("x",)),
        "e": Range(1e-5, 1e-3, whole=False),
        "f": Range(1, 9, whole=True),
        "g": Values(("'a,b'", "c")),
    }


VALUES = st.one_of(
    st.integers(), st.lists(st.integers()), st.dictionaries(st.sampled_from("ab"), st.integers())
)


@given(st.lists(VALUES, min_size=1))
def test_values_of_all_kinds_are_kept_apart(values: list[object]) -> None:
    texts = [yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip() for value in values]
    assert split_values(", ".join(texts)) == texts


@given(st.text("[]{}(),'\"ab", max_size=12))
def test_no_text_is_lost(text: str) -> None:
    try:
        parts = split_values(text)
    except ValueError:
        return
    assert ",".join(parts) == text


def test_a_grid_has_all_combinations() -> None:
    assert list(grid(parse_choices(["a=1,2", "b=x,y"]))) == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


@given(st.floats(1e-9, 1e6), st.floats(1.001, 1e6), st.integers())
def test_draws_are_within_their_range(low: float, ratio: float, seed: int) -> None:
    drawn = Range(low, low * ratio, whole=False)
    assert all(drawn.allows(drawn.draw(random.Random(seed + number))) for number in range(5))


def test_longer_lists_begin_like_shorter_ones() -> None:
    choices = parse_choices(["a=1,2,3", "b=1e-5..1e-1"])
    long = random_settings(choices, 9)
    assert random_settings(choices, 4) == long[:4]
    assert len({tuple(one.items()) for one in long}) == 9
    assert len(random_settings(parse_choices(["a=1,2"]), 9)) == 2


def test_magnitudes_are_drawn_equally_often() -> None:
    source = random.Random(1)
    rates = [float(Range(1e-5, 1e-1, whole=False).draw(source)) for _ in range(2000)]
    assert 0.4 < sum(rate < 1e-3 for rate in rates) / 2000 < 0.6


@pytest.mark.parametrize("text", ["a=", "=1", "a=1,,2", "a=1..x", "a=1..inf", "a='x"])
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        parse_choices([text])
