"""A processor gets only a build whose instructions it has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from keisei import native
from keisei.errors import ConfigError
from keisei.native import BUILDS, build_for, core, load_core, usable_builds

ALL = ("avx2", "bmi1", "bmi2", "lzcnt", "popcnt")


def test_a_processor_with_all_of_it_gets_the_fast_build() -> None:
    assert build_for(ALL) == "avx2"
    assert build_for([*ALL, "avx512"]) == "avx2"


@pytest.mark.parametrize("missing", ALL)
def test_a_processor_that_lacks_one_gets_the_baseline(missing: str) -> None:
    assert build_for([feature for feature in ALL if feature != missing]) == "baseline"


def test_another_kind_of_processor_gets_the_baseline() -> None:
    assert build_for([]) == "baseline"


@pytest.mark.parametrize(
    ("features", "builds"), [(ALL, ["avx2", "baseline"]), (ALL[:3], ["baseline"]), ((), ["baseline"])]
)
def test_what_a_processor_says_decides(
    features: tuple[str, ...], builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On ARM and macOS there is no other build to load, so none may be asked for."""
    there = {"baseline": SimpleNamespace(cpu_features=lambda: list(features)), "avx2": "the fast one"}
    monkeypatch.setattr(native, "load_core", lambda name: {build: there[build] for build in builds}[name])
    monkeypatch.delenv("KEISEI_NATIVE", raising=False)
    assert usable_builds() == builds
    assert native._pick() is there[builds[0]]


def test_this_processor_says_what_it_has() -> None:
    assert set(core.cpu_features()) <= set(ALL)
    assert all(build == load_core(build).INSTRUCTION_SET for build in usable_builds())  # type: ignore[attr-defined]


def test_a_build_can_be_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEISEI_NATIVE", "baseline")
    assert native._pick() is load_core("baseline")
    monkeypatch.setenv("KEISEI_NATIVE", "sse9")
    with pytest.raises(ConfigError, match=f"names no build: 'sse9'; the builds are {', '.join(BUILDS)}"):
        native._pick()
