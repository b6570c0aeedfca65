"""The manager's end of an actor, with a Ray of the tests' own that loses calls, repeats results and falls silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from games_for_tests import until

from keisei.experience.schema import SlabShape
from keisei.experience.slab import SlabRecord
from keisei.games.env_config import EnvConfig
from keisei.parallel.arena import Arena, ArenaSize
from keisei.parallel.backends.cluster import handle as handle_module
from keisei.parallel.backends.cluster.actor import PlayingActor
from keisei.parallel.backends.cluster.connection import import_ray
from keisei.parallel.backends.cluster.greeting import Greeting
from keisei.parallel.backends.cluster.handle import RayHandle
from keisei.parallel.backends.cluster.late import Late
from keisei.parallel.backends.cluster.parcels import Briefing, Played
from keisei.parallel.backends.cluster.supplies import Supplies
from keisei.parallel.messages import Failed, Order, OrderKind, Ready, Start, decode_reply, encode_reply
from keisei.parallel.plan import WorkerPlan
from keisei.policies.seating import Seating

Trouble = Callable[[str, Callable[[], Any]], Any]
"""What becomes of a call, by its name: a result, or an error that is raised."""
exceptions = import_ray().exceptions


class Call:
    """A reference to a result."""

    def __init__(self, result: Any) -> None:
        self.result = result


class FakeRay:
    """Carries out calls at once, in this process."""

    exceptions = exceptions

    def __init__(self) -> None:
        self.trouble: Trouble = lambda name, call: call()
        self.killed: list[Any] = []

    def wait(self, refs: list[Call], num_returns: int, timeout: float) -> tuple[list[Call], list[Call]]:
        done = [ref for ref in refs if ref.result is not None]
        return done, [ref for ref in refs if ref.result is None]

    def get(self, ref: Call) -> Any:
        if isinstance(ref.result, Exception):
            raise ref.result
        return ref.result[0]

    def kill(self, actor: Any) -> None:
        self.killed.append(actor)

    def call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Call:
        given = [argument.result[0] if isinstance(argument, Call) else argument for argument in arguments]
        try:
            result = self.trouble(name, lambda: method(*given))
        except exceptions.RayError as error:
            return Call(error)
        return Call(None if result is ... else (result,))


class FakeMethod:
    def __init__(self, ray: FakeRay, name: str, method: Callable[..., Any]) -> None:
        self.ray, self.name, self.method = ray, name, method

    def options(self, **_: Any) -> FakeMethod:
        return self

    def remote(self, *arguments: Any) -> Call:
        return self.ray.call(self.name, self.method, *arguments)


class FakeActor:
    def __init__(self, ray: FakeRay) -> None:
        self.inner = PlayingActor()
        self.greet = FakeMethod(ray, "greet", lambda: Greeting.of_this_process("10.0.0.9"))
        self.begin = FakeMethod(ray, "begin", self.inner.begin)
        self.play = FakeMethod(ray, "play", self.inner.play)
        self.pulse = FakeMethod(ray, "pulse", lambda seconds: self.inner.pulse(0))


class Bench:
    """A handle, its arena and a Ray."""

    def __init__(self) -> None:
        self.ray = FakeRay()
        env = EnvConfig(game="tictactoe")
        size = ArenaSize.of(SlabShape.of(env.make(batch=1, seed=0).spec, 8, 4), 4, 4)
        self.arena, self.late = Arena(size), Late(self.ray)
        plan = WorkerPlan(
            worker=0, env=env, model=None, seed=7, tables=1, games=4, horizon=8, seating=Seating(), overrides={},
            central=False,
        )  # fmt: skip
        self.handle = RayHandle(
            self.ray, FakeActor(self.ray), plan, Briefing(plan.model_dump_json(), size, None, None, False, ()),
            self.arena, Supplies(self.ray, None, None), self, self.late, 1.0, "1 CPU",  # type: ignore[arg-type]
        )  # fmt: skip

    def order(self, sequence: int) -> Order:
        start = Start.GO_ON if sequence else Start.BEGIN
        return Order(OrderKind.PLAY, sequence=sequence, slab=sequence, state_slot=sequence, start=start)

    def next(self) -> Any:
        """The next message, or None."""
        self.handle.look(self.ray.wait(self.handle.refs, 9, 0)[0])
        self.late.look()
        message = self.handle.receive()
        return None if message is None else decode_reply(message)

    def close(self) -> None:
        """Gives the memory back, though pytest still holds the bench."""
        self.arena.close()
        self.late.refs.clear()  # an error in there holds the frames that it went through
        del self.handle

    def await_message(self) -> Any:
        for _ in range(1000):
            if (message := self.next()) is not None:
                return message
            time.sleep(0.01)
        raise AssertionError("no message came")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(handle_module, "TRY_SECONDS", 0.01)
    made = Bench()
    assert made.await_message() == Ready()
    yield made
    made.close()


def checksums(bench: Bench, count: int) -> list[int]:
    for sequence in range(count):
        bench.handle.send(bench.order(sequence).encode())
    records = [bench.await_message() for _ in range(count)]
    assert [record.sequence for record in records] == list(range(count))
    assert [bench.arena.slab(record.slab).checksum() for record in records] == [r.checksum for r in records]
    return [record.checksum for record in records]


def unavailable() -> Exception:
    error: Exception = exceptions.ActorUnavailableError("the network is away", None)
    return error


@pytest.fixture
def expected() -> list[int]:
    undisturbed = Bench()
    assert undisturbed.await_message() == Ready()
    found = checksums(undisturbed, 3)
    undisturbed.close()
    return found


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_call_whose_fate_is_unknown_is_made_again(
    bench: Bench, expected: list[int], carried_out: bool
) -> None:
    played = []

    def lose_the_second(name: str, call: Callable[[], Any]) -> Any:
        if name != "play":
            return call()
        played.append(name)
        if len(played) in (2, 3):  # two are in flight, and both are lost
            if carried_out:
                call()
            raise unavailable()
        return call()

    bench.ray.trouble = lose_the_second
    assert checksums(bench, 3) == expected
    assert len(played) > 3
    assert bench.handle.is_alive()
    assert bench.handle.steps == 3 * 8 + 1, "no slab was played twice"


def test_another_slab_than_the_one_that_was_ordered_is_counted_and_ignored(
    bench: Bench, expected: list[int]
) -> None:
    before = bench.arena.slab(1).checksum()
    results: list[Played] = []

    def repeat_the_first(name: str, call: Callable[[], Any]) -> Any:
        if name != "play":
            return call()
        results.append(call())
        if len(results) == 2:
            assert bench.arena.slab(1).checksum() == before
            return results[0]
        return results[-1]

    bench.ray.trouble = repeat_the_first
    assert checksums(bench, 3) == expected
    assert bench.late.repeated == 1


def test_what_comes_after_an_actor_was_given_up_is_counted_and_ignored(bench: Bench) -> None:
    bench.handle.send(bench.order(0).encode())  # it is played at once, but not taken in
    before = bench.arena.slab(0).checksum()
    bench.handle.kill()
    assert bench.next() is None
    assert bench.late.repeated == 1
    assert bench.arena.slab(0).checksum() == before
    assert bench.handle.exit_reason == "it was stopped"
    assert not bench.handle.killed_from_outside


def test_a_silent_node_is_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.ray.trouble = lambda name, call: ... if name == "pulse" else call()
    bench.next()  # takes in the last heartbeat, and asks for the next
    monkeypatch.setattr(handle_module, "LOST_SECONDS", -10.0)
    assert bench.next() is None
    assert not bench.handle.is_alive()
    assert "10.0.0.9 has not answered" in bench.handle.exit_reason
    assert bench.handle.killed_from_outside
    assert bench.ray.killed


def test_a_dead_actor_was_killed_from_outside(bench: Bench) -> None:
    def die(name: str, call: Callable[[], Any]) -> Any:
        raise exceptions.ActorDiedError()

    bench.ray.trouble = die
    bench.handle.send(bench.order(0).encode())
    assert bench.next() is None
    assert not bench.handle.is_alive()
    assert bench.handle.killed_from_outside


def test_calls_that_are_always_lost_end_the_actor(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle_module, "TRIES", 2)

    def lose(name: str, call: Callable[[], Any]) -> Any:
        if name == "play":
            raise unavailable()
        return call()

    bench.ray.trouble = lose
    bench.handle.send(bench.order(0).encode())
    assert until(lambda: bench.next() is None and not bench.handle.is_alive())
    assert "lost 2 times" in bench.handle.exit_reason


def test_an_error_of_the_game_names_the_node(bench: Bench) -> None:
    bench.handle.send(replace(bench.order(0), slab=99).encode())
    failed = bench.await_message()
    assert isinstance(failed, Failed)
    assert failed.reason.endswith("(on node 10.0.0.9)")
    assert "no slab 99" in failed.traceback
    assert not bench.handle.is_alive()


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle_module, "versions", lambda: {"python": "3.11.0", "keisei": "99.0"})
    failed = Bench().await_message()
    assert isinstance(failed, Failed)
    assert "node 10.0.0.9 has other versions: keisei" in failed.reason
    assert "(here 99.0)" in failed.reason


def test_a_worker_that_has_no_place_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRay, "call", lambda *_: Call(None))
    waiting = Bench()
    assert waiting.next() is None
    assert waiting.handle.is_queued
    assert waiting.handle.exit_reason == "it waits for a place to run with 1 CPU"


def test_records_are_those_of_the_order(bench: Bench) -> None:
    order = bench.order(0)
    record = SlabRecord(0, 0, 0, 0, 0, 5, 1, 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    assert handle_module._is_of(record, order)
    assert handle_module._is_of(record, replace(order, version=5))
    assert not handle_module._is_of(record, replace(order, version=6))
    assert not handle_module._is_of(replace(record, epoch=1), order)
    assert decode_reply(encode_reply(record)) == record
