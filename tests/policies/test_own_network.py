"""Networks of your own: what is wrong with one is told before anything starts."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import keisei
from keisei.errors import ConfigError
from keisei.policies import ActorCritic, build_network

ROOT = Path(__file__).parents[2]
SPEC = keisei.make_game("tictactoe").spec
RULE = r"its constructor takes \(config, spec\) and begins with super\(\)\.__init__\(spec\.observation\)"
FAILED = "it failed with"
SHAPES = r"heads\(inputs\) returns logits of shape \(3, 9\) and values of shape \(3,\)"


class Own(ActorCritic):
    """A right one."""

    def __init__(self, config: Any, spec: Any) -> None:
        super().__init__(spec.observation)
        self.layer = nn.Linear(18, 10)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.layer(inputs.flatten(1))
        return outputs[:, 1:], outputs[:, 0]


class TakesOnlySettings(Own):
    def __init__(self, config: Any) -> None:
        super().__init__(config, SPEC)


class CallsNothing(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        self.layer = nn.Linear(18, 10)


class HasNoLayersAndCallsNothing(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        self.width = 3


class CallsModule(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        nn.Module.__init__(self)
        self.layer = nn.Linear(18, 10)


class PassesNothing(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        ActorCritic.__init__(self)  # type: ignore[call-arg]


class PassesTheSpec(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        ActorCritic.__init__(self, spec)


class PassesBoth(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        ActorCritic.__init__(self, config, spec)  # type: ignore[call-arg]


class FailsByItself(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        super().__init__(config, spec)
        self.size = spec.observation.shape[7]


class HidesItsLayers(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        ActorCritic.__init__(self, spec.observation)
        self.layers = [nn.Linear(18, 10)]

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.layers[0](inputs.flatten(1))[:, 1:], inputs.flatten(1)[:, 0]


class HasNoHeads(ActorCritic):
    def __init__(self, config: Any, spec: Any) -> None:
        super().__init__(spec.observation)
        self.layer = nn.Linear(18, 10)


class Unrelated(nn.Module):
    """No ActorCritic."""


class AsksForMore(Own):
    def __init__(self, config: Any, spec: Any) -> None:
        raise ConfigError("give it more channels")


def gives(outputs: Callable[[Own, Tensor], object]) -> type[Own]:
    """A network with other heads."""

    class Gives(Own):
        def heads(self, inputs: Tensor) -> Any:
            return outputs(self, inputs.flatten(1))

    return Gives


TallValues = gives(lambda own, x: (own.layer(x)[:, 1:], own.layer(x)[:, :1]))
TooManyLogits = gives(lambda own, x: (own.layer(x), own.layer(x)[:, 0]))
OnlyLogits = gives(lambda own, x: own.layer(x)[:, 1:])
Numbers = gives(lambda own, x: (own.layer(x)[:, 1:], [0.0, 0.0, 0.0]))
WrongSizes = gives(lambda own, x: own.layer(x[:, :5]))
NotFinite = gives(lambda own, x: (own.layer(x)[:, 1:] / x.sum(), own.layer(x)[:, 0]))


class WithALayer(Own):
    """A network with one more layer, which is hidden two levels down."""

    def __init__(self, config: Any, spec: Any, layer: nn.Module) -> None:
        super().__init__(config, spec)
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(2, 2, 1), layer)])

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return super().heads(self.body[0](inputs))


def with_layer(make: Callable[[], nn.Module]) -> type[Own]:
    class Normalised(WithALayer):
        def __init__(self, config: Any, spec: Any) -> None:
            super().__init__(config, spec, make())

    return Normalised


BatchNormalised = with_layer(lambda: nn.BatchNorm2d(2))
BatchNormalisedWithoutMeans = with_layer(lambda: nn.BatchNorm2d(2, track_running_stats=False))
LazilyNormalised = with_layer(nn.LazyBatchNorm2d)
SyncNormalised = with_layer(lambda: nn.SyncBatchNorm(2))
InstanceNormalisedWithMeans = with_layer(lambda: nn.InstanceNorm2d(2, track_running_stats=True))
InstanceNormalised = with_layer(lambda: nn.InstanceNorm2d(2))
GroupNormalised = with_layer(lambda: nn.GroupNorm(1, 2))
LayerNormalised = with_layer(lambda: nn.LayerNorm([2, 3, 3]))


def build(name: str) -> ActorCritic:
    return build_network({"network": f"{__name__}:{name}"}, SPEC, seed=1)


def test_a_right_network_is_built_and_left_ready_to_learn() -> None:
    network = build("Own")
    assert network.training
    assert network(torch.zeros(2, 2, 3, 3))[0].shape == (2, 9)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TakesOnlySettings", rf"{RULE}; {FAILED} TypeError: .* takes 2 positional arguments but 3"),
        (
            "CallsNothing",
            rf"{RULE}; {FAILED} AttributeError: cannot assign module before .*test_own_network\.py:",
        ),
        ("HasNoLayersAndCallsNothing", rf"{RULE}; it has not called it"),
        ("CallsModule", rf"{RULE}; it has not called it"),
        ("PassesNothing", rf"{RULE}; {FAILED} TypeError: .*missing 1 required positional argument"),
        ("PassesTheSpec", rf"{RULE}; {FAILED} AttributeError: 'GameSpec' object has no attribute 'scale'"),
        ("PassesBoth", rf"{RULE}; {FAILED} TypeError: .* takes 2 positional arguments but 3"),
        (
            "FailsByItself",
            rf"{FAILED} IndexError: tuple index out of range \(tests/policies/test_own_network\.py:\d+",
        ),
        ("HidesItsLayers", r"no weights to learn; keep layers in attributes or in an nn\.ModuleList"),
        ("HasNoHeads", rf"{SHAPES}; {FAILED} NotImplementedError: HasNoHeads must define heads"),
        (
            "TallValues",
            rf"{SHAPES}; it returns \(3, 9\) and \(3, 1\); values\.squeeze\(-1\) drops the last axis",
        ),
        ("TooManyLogits", rf"{SHAPES}; it returns \(3, 10\) and \(3,\)\. "),
        ("OnlyLogits", rf"{SHAPES}; {FAILED} ValueError: too many values to unpack"),
        ("Numbers", rf"{SHAPES}; it returns Tensor and list"),
        ("WrongSizes", rf"{SHAPES}; {FAILED} RuntimeError: .*test_own_network\.py:\d+\)"),
        ("NotFinite", rf"{SHAPES}, all of them finite; it returns NaN or infinity"),
        ("Unrelated", r"must be a class that extends keisei\.policies\.ActorCritic, found <class"),
        ("Nothing", r"has no 'Nothing'"),
    ],
)
def test_a_wrong_network_is_told_the_rule(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=message) as caught:
        build(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "layer", "reason"),
    [
        ("BatchNormalised", "BatchNorm2d", "normalises it together with the others of a batch; take"),
        (
            "BatchNormalisedWithoutMeans",
            "BatchNorm2d",
            "normalises it together with the others of a batch; take",
        ),
        ("LazilyNormalised", "LazyBatchNorm2d", "normalises it together with the others of a batch; take"),
        ("SyncNormalised", "SyncBatchNorm", "normalises it together with the others of a batch; take"),
        (
            "InstanceNormalisedWithMeans",
            "InstanceNorm2d",
            "keeps running statistics of earlier ones; leave out track_running_stats, or take",
        ),
    ],
)
def test_norms_over_other_positions_are_refused(name: str, layer: str, reason: str) -> None:
    rule = "the output for a position must depend on that position only, and"
    with pytest.raises(ConfigError) as caught:
        build(name)
    way_out = "nn.GroupNorm or nn.LayerNorm. docs/policies.md"
    assert f"{rule} {layer} (body.0.1) {reason} {way_out}" in str(caught.value)


@pytest.mark.parametrize("name", ["InstanceNormalised", "GroupNormalised", "LayerNormalised"])
def test_norms_of_one_position_are_welcome(name: str) -> None:
    """What a position comes out as is the same beside others and alone."""
    network = build(name)
    positions = torch.randint(0, 2, (5, 2, 3, 3), generator=torch.Generator().manual_seed(1)).float()
    together, alone = network(positions)[0], network(positions[2:3])[0]
    assert torch.allclose(together[2:3], alone, atol=1e-6)


def test_the_errors_of_a_network_on_purpose_are_its_own() -> None:
    with pytest.raises(ConfigError, match=r"^give it more channels$"):
        build("AsksForMore")


def test_the_example_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "own_network.py"), run_name="__main__")
    assert "against random" in capsys.readouterr().out
    assert (tmp_path / "runs" / "own-network" / "config.yaml").is_file()
