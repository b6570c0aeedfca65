"""Settings are typed and frozen, and their errors list all problems at once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, Tag, ValidationError, model_validator

from keisei.config import (
    Settings,
    apply_overrides,
    chosen_by,
    described_schema,
    descriptions,
    parse_settings,
)
from keisei.errors import ConfigError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Net(Settings):
    width: int = Field(default=64, ge=1, le=4096, multiple_of=8)
    """Channels of each layer."""
    rate: float = Field(default=0.5, gt=0, lt=1)
    layers: tuple[int, ...] = (1, 2)
    limit: int | None = Field(default=None, ge=1)


class Walk(Settings):
    gait: Literal["walk"] = "walk"
    steps: int = Field(default=1, ge=1)


EARLIER = {"ride": "drive"}


class Drive(Settings):
    other_values: ClassVar = {"gait": EARLIER}
    gait: Literal["drive"] = "drive"
    speed: float = Field(default=1.0, gt=0)


class Trip(Settings):
    way: Annotated[
        Annotated[Walk, Tag("walk")] | Annotated[Drive, Tag("drive")],
        chosen_by("gait", default="walk", earlier=EARLIER),
    ] = Walk()


class Run(Settings):
    name: str
    """What the run is called."""
    batch: int = Field(default=8, ge=1)
    kind: Literal["sync", "async"] = "sync"
    colour: Colour = Colour.RED
    folder: Path = Path("runs")
    verbose: bool = False
    net: Net = Net()

    @model_validator(mode="after")
    def _async_needs_two(self) -> Run:
        if self.kind == "async" and self.batch < 2:
            raise ValueError("kind async needs batch 2 or more")
        return self


def problems(mapping: Any, cls: type[Settings] = Run) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_settings(cls, mapping, where="run.yaml")
    heading, *lines = str(caught.value).splitlines()
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    assert heading == f"{count} in run.yaml:"
    return [line.strip() for line in lines]


def test_good_settings_are_taken_as_they_are() -> None:
    run = parse_settings(
        Run, {"name": "a", "net": {"rate": "1e-3", "layers": [3]}, "colour": "blue", "folder": "x"}
    )
    assert run == Run(name="a", net=Net(rate=0.001, layers=(3,)), colour=Colour.BLUE, folder=Path("x"))
    assert run.net.width == 64


def test_an_empty_file_gives_the_defaults() -> None:
    assert parse_settings(Net, None) == Net()


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Net().width = 8  # type: ignore[misc]


def test_fields_are_explained_by_the_texts_below_them() -> None:
    assert descriptions(Run)["name"] == "What the run is called."
    assert descriptions(Net) == {"width": "Channels of each layer."}


def test_a_class_takes_over_the_texts_of_its_base() -> None:
    class Wider(Net):
        width: int = 128
        """Twice as many."""
        rate: float = 0.1

    class Deeper(Net):
        depth: int = 3
        """How many layers
        there are."""

    assert descriptions(Wider) == {"width": "Twice as many."}
    assert descriptions(Deeper) == {
        "width": "Channels of each layer.",
        "depth": "How many layers\nthere are.",
    }


def test_the_schema_has_the_descriptions_of_all_parts() -> None:
    schema = described_schema(Run)
    assert schema["properties"]["name"]["description"] == "What the run is called."
    assert schema["$defs"]["Net"]["properties"]["width"]["description"] == "Channels of each layer."
    assert "description" not in schema["$defs"]["Net"]["properties"]["rate"]


def test_a_tag_chooses_among_settings() -> None:
    assert parse_settings(Trip, {"way": {"gait": "drive", "speed": 2}}).way == Drive(speed=2)
    assert parse_settings(Trip, {"way": {"gait": "ride", "speed": 2}}).way == Drive(speed=2), (
        "its earlier name"
    )
    assert parse_settings(Trip, {"way": {"steps": 3}}).way == Walk(steps=3)
    assert parse_settings(Trip, {"way": Drive(speed=3)}).way == Drive(speed=3)
    assert parse_settings(Trip, {}).way == Walk()
    assert problems({"way": {"step": 2}}, Trip) == ["way.step: unknown setting; did you mean steps?"]
    assert problems({"way": 3}, Trip) == ["way = 3: must be a table of settings"]
    assert problems({"way": {"gait": "drive", "sped": 2}}, Trip) == [
        "way.sped: unknown setting; did you mean speed?"
    ]
    assert problems({"way": {"gait": "drive", "speed": 0, "steps": 2}}, Trip) == [
        "way.speed = 0: must be a number above 0",
        "way.steps: unknown setting; known settings are gait, speed",
    ]
    assert problems({"way": {"gait": "walk", "steps": 0}}, Trip) == [
        "way.steps = 0: must be a whole number at least 1"
    ]
    assert problems({"way": {"gait": "fly"}}, Trip) == ["way.gait = 'fly': must be one of walk, drive"]
    assert problems({"way": {"gait": ["ride"]}}, Trip) == [
        "way.gait = \"['ride']\": must be one of walk, drive"
    ]


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        {"batsch": 3, "batch": 0, "kind": "asink", "net": {"width": 5000, "rate": "fast", "with": 1}}
    )
    assert found == [
        "name: missing; it must be a text",
        "batch = 0: must be a whole number at least 1",
        "kind = 'asink': must be one of sync, async",
        "net.width = 5000: must be a whole number from 1 to 4096, a multiple of 8",
        "net.rate = 'fast': must be a number above 0 and below 1",
        "net.with: unknown setting; did you mean width?",
        "batsch: unknown setting; did you mean batch?",
    ]


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        ({"batch": True}, "batch = True: must be a whole number at least 1"),
        ({"batch": 1.5}, "batch = 1.5: must be a whole number at least 1"),
        ({"colour": "green"}, "colour = 'green': must be one of red, blue"),
        ({"verbose": "loud"}, "verbose = 'loud': must be true or false"),
        ({"net": 3}, "net = 3: must be a table of settings"),
        ({"net": {"rate": float("nan")}}, "net.rate = nan: must be a finite number above 0 and below 1"),
        ({"net": {"limit": 0}}, "net.limit = 0: must be a whole number at least 1 or null"),
        ({"net": {"layers": [1, "x"]}}, "net.layers.1 = 'x': must be a whole number"),
        ({"net": {"layers": 3}}, "net.layers = 3: must be a list of whole numbers"),
        (
            {"zzz": 1},
            "zzz: unknown setting; known settings are name, batch, kind, colour, folder, verbose, net",
        ),
        ({"kind": "async", "batch": 1}, "kind async needs batch 2 or more"),
        ({"name": "x" * 100, "batch": "y" * 100}, f"batch = '{'y' * 56}…: must be a whole number at least 1"),
    ],
)
def test_a_problem_names_key_value_and_what_is_allowed(mapping: dict[str, Any], line: str) -> None:
    assert problems({"name": "a"} | mapping) == [line]


class Stop(Settings):
    text_is: ClassVar = "town"
    other_names: ClassVar = {"nights": "days"}
    town: str
    days: int | None = Field(default=None, ge=1)


class Tour(Settings):
    stops: tuple[Stop, ...] = ()
    trips: list[Trip] | None = None
    seats: dict[int, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    pauses: tuple[Annotated[int, Field(ge=1)], ...] = ()


class Aged(Settings):
    gone: ClassVar = {"starch": False}
    days: int = 1
    """How long it rests."""


def test_a_setting_of_an_earlier_version_is_dropped_and_told_once_if_it_did_something(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert parse_settings(Aged, {"days": 2, "starch": False}).model_dump() == {"days": 2}
    assert not caplog.records
    for _ in range(2):
        assert parse_settings(Aged, {"days": 2, "starch": True}).days == 2
    assert [record.getMessage() for record in caplog.records] == [
        "starch: True is a setting of an earlier version, and does nothing now"
    ]


def test_a_text_and_other_names_stand_for_settings() -> None:
    stops = parse_settings(Tour, {"stops": ["Ulm", {"town": "Bonn", "nights": 2}]}).stops
    assert stops == (Stop(town="Ulm"), Stop(town="Bonn", days=2))
    assert problems({"stops": [{"town": "Bonn", "nights": 2, "days": 1}]}, Tour) == [
        "stops.0: nights and days are two ways to say one thing; leave out nights"
    ]


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        ({"stops": "Ulm"}, "stops = 'Ulm': must be a list of texts or tables"),
        ({"stops": [None]}, "stops.0 = None: must be a text or a table of settings"),
        ({"stops": ["Ulm", {"days": 1}]}, "stops.1.town: missing; it must be a text"),
        (
            {"stops": [{"town": "Ulm", "days": 0}]},
            "stops.0.days = 0: must be a whole number at least 1 or null",
        ),
        (
            {"stops": [{"town": "Ulm", "nights": 0}]},
            "stops.0.nights = 0: must be a whole number at least 1 or null",
        ),
        ({"stops": [{"town": "Ulm", "day": 1}]}, "stops.0.day: unknown setting; did you mean days?"),
        ({"trips": 3}, "trips = 3: must be a list of tables or null"),
        (
            {"trips": [{"way": {"gait": "drive", "speed": 0}}]},
            "trips.0.way.speed = 0: must be a number above 0",
        ),
        ({"seats": {"x": 1}}, "seats.x: this name must be a whole number"),
        ({"seats": {1: 2}}, "seats.1 = 2: must be a number above 0 and at most 1"),
        ({"pauses": 1}, "pauses = 1: must be a list of whole numbers at least 1"),
        ({"pauses": [1, 0]}, "pauses.1 = 0: must be a whole number at least 1"),
    ],
)
def test_a_problem_within_a_list_or_a_table_names_what_is_allowed_there(
    mapping: dict[str, Any], line: str
) -> None:
    assert problems(mapping, Tour) == [line]


def test_infinity_is_no_finite_number() -> None:
    assert problems({"way": {"gait": "drive", "speed": float("inf")}}, Trip) == [
        "way.speed = inf: must be a finite number above 0"
    ]


def test_keys_that_are_no_texts_are_unknown_settings() -> None:
    assert problems({"name": "a", 7: 1})[0].startswith("7: unknown setting")


def test_something_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"run\.yaml must hold a table of settings .*, got \[1\]"):
        parse_settings(Run, [1], where="run.yaml")  # type: ignore[arg-type]


def test_overrides_are_read_as_yaml_and_leave_the_mapping_alone() -> None:
    mapping = {"net": {"width": 8}, "folder": None}
    changed = apply_overrides(
        mapping, ["net.width=16", "net.rate=1e-3", "name=a=b", "net.layers=[4, 5]", "folder.sub=x", "kind="]
    )
    assert changed == {
        "net": {"width": 16, "rate": 0.001, "layers": [4, 5]},
        "folder": {"sub": "x"},
        "name": "a=b",
        "kind": None,
    }
    assert mapping == {"net": {"width": 8}, "folder": None}


def test_all_bad_overrides_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides({"batch": 3}, ["batch", "a..b=1", "batch.size=4", "name=[1", "fine=1"])
    assert str(caught.value).splitlines() == [
        "4 problems in --set:",
        "  batch: write it as key=value",
        "  a..b=1: 'a..b' is not a key; write it as part.setting=value",
        "  batch.size=4: batch is 3 and has no settings below it",
        "  name=[1: '[1' is not valid YAML; put quotes around a text with special signs",
    ]
