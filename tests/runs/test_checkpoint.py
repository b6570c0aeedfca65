"""What is saved is what is loaded, and damage anywhere is found."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from checkpoints_for_tests import bits, checkpoint, content
from torch import Tensor, nn

from keisei.errors import CheckpointError, CheckpointVersionError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint

# What is saved is what is loaded


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([float("nan"), -0.0, float("inf"), 1e-45]),
        torch.randn(4, 6).t(),
        torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        torch.zeros(0, 3),
        torch.tensor(5),
        torch.randn(9).to(torch.bfloat16),
        torch.tensor([True, False]),
        nn.Parameter(torch.randn(2)),
    ],
    ids=["nan", "transposed", "channels_last", "empty", "scalar", "bfloat16", "bool", "parameter"],
)
def test_tensors_come_back_to_the_bit(tmp_path: Path, tensor: Tensor) -> None:
    path = save_checkpoint(tmp_path, checkpoint(1, tensors={"model": {"a": tensor, "view": tensor}}))
    loaded = load_checkpoint(path).tensors["model"]
    assert bits(loaded["a"]) == bits(tensor.detach()) == bits(loaded["view"])


def test_everything_comes_back(tmp_path: Path) -> None:
    made = checkpoint(42)
    path = save_checkpoint(tmp_path, made)
    loaded = load_checkpoint(path)
    assert path.name == "update-000000042"
    assert content(loaded) == content(made)
    assert loaded.created.endswith("+00:00")
    assert loaded.update == 42


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"counters": {"transitions": 3}}, "update"),
        ({"counters": {"update": -1}}, "-1"),
        ({"counters": {"update": 1, "score": float("nan")}}, r"counters\['score'\]"),
        ({"documents": {"betas": (1, 2)}}, r"documents\['betas'\]"),
        ({"documents": {"a": [{3: 4}]}}, r"documents\['a'\]\[0\]"),
        ({"tensors": {"../model": {}}}, "../model"),
        ({"tensors": {"blobs": {}}}, "blobs"),
    ],
)
def test_what_would_not_come_back_is_refused(changes: dict[str, object], named: str) -> None:
    with pytest.raises(CheckpointError, match=named):
        checkpoint(1, **changes)


# Damage


@contextmanager
def altered(path: Path, change: Callable[[bytes], bytes]) -> Iterator[None]:
    whole = path.read_bytes()
    path.write_bytes(change(whole))
    yield
    path.write_bytes(whole)


def spread(path: Path, count: int, seed: int) -> list[tuple[Path, int]]:
    """Offsets over all files of a checkpoint, as many in each, first and last byte included."""
    files = sorted(path.iterdir())
    places = []
    for number, file in enumerate(files):
        size = file.stat().st_size
        share = count // len(files) + (number < count % len(files))
        places += [(file, at) for at in random.Random(seed + number).sample(range(1, size - 1), share - 2)]
        places += [(file, 0), (file, size - 1)]
    return places


def cut(offset: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:offset]


def flipped(offset: int, bit: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:offset] + bytes([whole[offset] ^ 1 << bit]) + whole[offset + 1 :]


@pytest.mark.parametrize("damage", ["truncated", "bit flipped"])
def test_damage_anywhere_is_found_and_the_previous_one_used(tmp_path: Path, damage: str) -> None:
    store = CheckpointArchive(tmp_path)
    store.save(checkpoint(1))
    newest = store.save(checkpoint(2))
    places = spread(newest, 200, seed=7)
    assert len(places) == 200
    assert {file.name for file, _ in places} == {p.name for p in newest.iterdir()}
    for number, (file, offset) in enumerate(places):
        with altered(file, cut(offset) if damage == "truncated" else flipped(offset, number % 8)):
            with pytest.raises(CheckpointError, match=f"{file.name}.* is damaged") as caught:
                load_checkpoint(newest)
            found = store.latest()
        assert found is not None
        assert found.checkpoint.update == 1
        assert found.skipped == (str(caught.value),)
    assert content(load_checkpoint(newest)) == content(checkpoint(2))


def test_damage_is_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = CheckpointArchive(tmp_path)
    store.save(checkpoint(1))
    (store.save(checkpoint(2)) / "optimizer.safetensors").unlink()
    with caplog.at_level(logging.WARNING):
        found = store.latest()
    assert found is not None
    assert found.path.name == "update-000000001"
    assert "update-000000002 is skipped" in caplog.text
    assert "optimizer.safetensors cannot be read: No such file" in caplog.text


def test_a_run_is_not_begun_anew_because_all_is_damaged(tmp_path: Path) -> None:
    store = CheckpointArchive(tmp_path)
    assert store.latest() is None
    for update in (1, 2):
        (store.save(checkpoint(update)) / "manifest.json").write_text("{}")
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints") as caught:
        store.latest()
    assert "update-000000001/manifest.json" in str(caught.value)
    assert "update-000000002/manifest.json" in str(caught.value)


def resealed(path: Path, **changes: object) -> None:
    """Change a manifest so that its own digest is right again, as another version or an attacker would."""
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.update(changes)
    manifest.pop("sha256")

    def text() -> bytes:
        return (json.dumps(manifest, indent=1) + "\n").encode()

    manifest["sha256"] = sha256(text()).hexdigest()
    (path / "manifest.json").write_bytes(text())


@pytest.mark.parametrize("changes", [{"version": 2}, {"version": 0}, {"format": "other"}])
def test_another_format_is_told_and_never_passed_over(tmp_path: Path, changes: dict[str, object]) -> None:
    store = CheckpointArchive(tmp_path)
    store.save(checkpoint(1))
    newest = store.save(checkpoint(2))
    resealed(newest, **changes)
    message = r"manifest\.json is of format .*reads 'keisei-checkpoint', version 1.*Use the version"
    with pytest.raises(CheckpointVersionError, match=message):
        load_checkpoint(newest)
    with pytest.raises(CheckpointVersionError):
        store.latest()


def test_a_manifest_cannot_point_outside(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(1))
    (tmp_path / "secret.safetensors").write_bytes(b"")
    files = json.loads((path / "manifest.json").read_text())["files"]
    resealed(path, files={**files, "../secret.safetensors": {"bytes": 0, "sha256": sha256(b"").hexdigest()}})
    with pytest.raises(CheckpointError, match="not a file of a checkpoint"):
        load_checkpoint(path)


@pytest.mark.parametrize("files", [None, {}, {"blobs.safetensors": 3}])
def test_a_sealed_manifest_without_sense_is_an_error_of_ours(tmp_path: Path, files: object) -> None:
    path = save_checkpoint(tmp_path, checkpoint(1))
    resealed(path, files=files)
    with pytest.raises(CheckpointError):
        load_checkpoint(path)


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere/manifest\.json cannot be read"):
        load_checkpoint(tmp_path / "nowhere")
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match="not a JSON table"):
        load_checkpoint(tmp_path)
