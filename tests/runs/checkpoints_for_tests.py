"""Checkpoints whose content is known, and processes to kill while they save them."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint, load_checkpoint


def checkpoint(update: int, **changes: object) -> Checkpoint:
    """A small checkpoint whose content follows from its update."""
    numbers = torch.Generator().manual_seed(update)
    made = Checkpoint(
        game="tictactoe",
        counters={"update": update, "transitions": update * 512, "seconds": update * 0.1},
        tensors={
            "model": {"body.weight": torch.randn(3, 5, generator=numbers), "steps": torch.tensor(update)},
            "optimizer": {"state.0.exp_avg": torch.randn(7, generator=numbers)},
        },
        blobs={"worker.0": bytes([update % 256]) * 40, "worker.1": b""},
        documents={"optimizer": {"lr": 3e-4, "betas": [0.9, 0.999], "name": None}},
        config_digest="c0ffee",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def bits(tensor: Tensor) -> tuple[torch.dtype, tuple[int, ...], bytes]:
    return tensor.dtype, tuple(tensor.shape), tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def content(made: Checkpoint) -> object:
    tensors = {group: {name: bits(t) for name, t in named.items()} for group, named in made.tensors.items()}
    return made.game, made.counters, tensors, made.blobs, made.documents, made.config_digest


def leftovers(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".")]


def updates(store: CheckpointArchive) -> list[int]:
    return [load_checkpoint(path).update for path in store.paths()]


def forked(work: Callable[[], None]) -> int:
    """Run ``work`` in a child that ends without any clean-up, and give its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return child


def killed_at_each_step(directory: Path) -> int:
    """Kill a trainer at its first file operation, at its second, and so on, until one comes through.

    It saves two checkpoints and marks one, with the oldest to be removed meanwhile. Gives the number of kills.
    """
    directory.mkdir()
    store = CheckpointArchive(directory, keep=2)
    for update in (1, 2):
        store.mark_best(store.save(checkpoint(update)))
    operations = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.listdir"}
    for step in range(1, 400):

        def work(step: int = step) -> None:
            seen = 0

            def hook(event: str, arguments: tuple[object, ...]) -> None:
                nonlocal seen
                if event in operations:
                    seen += 1
                    if seen == step:
                        os.kill(os.getpid(), signal.SIGKILL)

            mine = CheckpointArchive(directory, keep=2)
            newest = mine.latest()
            assert newest is not None
            sys.addaudithook(hook)
            update = newest.checkpoint.update
            mine.mark_best(mine.save(checkpoint(update + 1)))
            mine.save(checkpoint(update + 2))

        before = store.latest()
        assert before is not None
        _, status = os.waitpid(forked(work), 0)
        after = store.latest()
        best = store.best()
        assert after is not None
        assert best is not None
        assert after.skipped == ()
        assert updates(store)[-1] == after.checkpoint.update  # and all older ones are whole as well
        assert before.checkpoint.update <= after.checkpoint.update <= before.checkpoint.update + 2
        assert content(after.checkpoint) == content(checkpoint(after.checkpoint.update))
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            CheckpointArchive(directory)
            assert leftovers(directory) == []
            return step - 1
    raise AssertionError("never came through")


def killed_at_random_instants(directory: Path, kills: int) -> int:
    """Kill a trainer that saves without pause, ``kills`` times; each successor takes up where it was.

    Gives the last update that was saved.
    """
    chance = random.Random(11)
    last = -1
    for _ in range(kills):
        reader, writer = os.pipe()

        def work(writer: int = writer) -> None:
            store = CheckpointArchive(directory, keep=2, milestone_every=50)
            found = store.latest()
            update = found.checkpoint.update if found else -1
            while True:
                update += 1
                os.write(writer, b"b%9d" % update)
                path = store.save(checkpoint(update))
                os.write(writer, b"c%9d" % update)
                if update % 7 == 0:
                    store.mark_best(path)

        child = forked(work)
        os.close(writer)
        told = [os.read(reader, 10), os.read(reader, 10)]  # it has saved at least one
        time.sleep(chance.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while message := os.read(reader, 10):
            told.append(message)
        os.close(reader)
        begun = max(int(message[1:]) for message in told if message[:1] == b"b")
        committed = max(int(message[1:]) for message in told if message[:1] == b"c")
        found = CheckpointArchive(directory, read_only=True).latest()
        assert found is not None
        assert found.skipped == ()
        assert last < committed <= found.checkpoint.update <= begun
        assert content(found.checkpoint) == content(checkpoint(found.checkpoint.update))
        last = found.checkpoint.update
    return last
