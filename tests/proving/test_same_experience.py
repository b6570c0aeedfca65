"""The checks of workers find real faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keisei.errors import ParallelError
from keisei.experience.collected import CollectedSlab, Experiences
from keisei.proving.audit import Audit, Checker, Findings
from keisei.proving.disturbance import Disturber, Toll
from keisei.proving.same_experience import PlannedWeights, Reference, Run, VerifySettings, slab_digest, verify
from keisei.proving.soak import Leftovers, SoakReport, SoakSettings, soak

SMALL = VerifySettings(game="tictactoe", tables=3, games=4, workers=(1, 2), rounds=3, hidden_dim=16)
RUNS = [
    *(f"{backend} with {workers}" for backend in ("inline", "thread", "process") for workers in (1, 2)),
    "crew changes with 2, 3, 2",
]

DICE = '''
"""Tic-tac-toe in which a coin that nobody knows of decides who begins."""
import random

from keisei.games.tictactoe import TicTacToe


class Dice(TicTacToe):
    name = "dice"

    def reset(self, rng):
        super().reset(rng)
        self.to_move = random.SystemRandom().randrange(2)
'''


@pytest.fixture
def hidden_dice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A game that does not only follow from its seed."""
    (tmp_path / "hidden_dice.py").write_text(DICE)
    monkeypatch.syspath_prepend(tmp_path)
    return "hidden_dice:Dice"


def run_of(*digests: str) -> Run:
    return Run("a run", "2", 10, 1.0, digests)


def same(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> bool:
    return all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_all_places_and_numbers_of_workers_agree() -> None:
    seen: list[tuple[str, int, int]] = []
    report = verify(SMALL, lambda *progress: seen.append(progress))
    assert report.same
    assert [run.title for run in report.runs] == RUNS
    assert {run.digest for run in report.runs} == {report.runs[0].digest}
    assert {len(set(run.digests)) for run in report.runs} == {3}
    assert {run.transitions for run in report.runs} == {3 * 3 * 4 * 32}
    assert ("process, 2", 3, 3) in seen
    assert seen[-1] == ("crew changes", 3, 3)


def test_other_seeds_and_weights_give_other_digests() -> None:
    digests = [
        verify(settings).runs[0].digest
        for settings in (
            replace(SMALL, rounds=1),
            replace(SMALL, rounds=1, seed=1),
            replace(SMALL, rounds=1, network=False),
        )
    ]
    assert len(set(digests)) == 3


def test_central_inference_agrees() -> None:
    assert verify(replace(SMALL, central=True)).same


def test_all_agree_on_a_league_while_workers_are_killed() -> None:
    """There are more rounds, each with a snapshot, than places on the shelf."""
    settings = replace(SMALL, league=True, kills=3, rounds=16)
    assembly = settings.assemble_league()
    assert assembly is not None
    assert assembly.plan.places < 16
    report = verify(settings)
    assert report.same
    assert report.runs[0].digest != verify(replace(SMALL, rounds=16, workers=(1,))).runs[0].digest


def test_hidden_randomness_is_found(hidden_dice: str) -> None:
    report = verify(replace(SMALL, game=hidden_dice, rounds=2))
    assert not report.same
    assert report.differences == dict.fromkeys(RUNS[1:], 1)


def test_killed_and_stopped_workers_leave_no_trace() -> None:
    report = verify(replace(SMALL, kills=8, stops=True))
    disturbed = report.runs[-1]
    assert report.same
    assert disturbed.toll is not None
    assert disturbed.toll.strikes == 8
    assert len(disturbed.toll.recoveries) + disturbed.toll.interrupted == 8
    assert 0 <= disturbed.toll.heirs <= 8
    assert disturbed.restarts >= 8
    assert len(report.runs[0].digests) == len(disturbed.digests) >= 3


def test_hidden_randomness_is_found_after_kills(hidden_dice: str) -> None:
    report = verify(replace(SMALL, game=hidden_dice, kills=1))
    assert report.differences["process, disturbed with 2"] == 1


def test_the_first_difference_is_named() -> None:
    reference = run_of("a", "b", "c")
    assert run_of("a", "b", "c").first_difference(reference) is None
    assert run_of("a", "x", "c").first_difference(reference) == 2
    assert run_of("a", "b").first_difference(reference) == 3


def test_weights_are_known_in_advance() -> None:
    model = SMALL.manager("inline", 2).model
    assert model is not None
    weights = PlannedWeights(model, seed=3)
    assert same(weights.of(1), model.state_dict())
    assert same(weights.of(4), PlannedWeights(model, seed=3).of(4))
    assert not same(weights.of(4), weights.of(5))
    assert not same(weights.of(4), PlannedWeights(model, seed=4).of(4))
    with SMALL.manager("inline", 2) as manager:
        assert weights.publish(manager) == manager.version == 2
        assert manager.model is not None
        assert same(manager.model.state_dict(), weights.of(2))


def test_the_reference_plays_every_slab_again_with_its_weights_and_epoch() -> None:
    with SMALL.manager("inline", 2) as manager, SMALL.manager("inline", 2) as other:
        assert manager.model is not None
        weights = PlannedWeights(manager.model, SMALL.seed)
        reference = Reference(other, weights)
        for number in range(4):
            for item in manager.collect_experiences():
                assert reference.digest(item.record) == slab_digest(item)
            weights.publish(manager)
            if number == 1:
                manager.reset_workers([1])
        reference.close()


def audited(*steps: int, spoil: bool = False) -> Findings:
    """What an audit finds where these rounds of six arrive, in this order."""
    findings = Findings()
    manager = SMALL.manager("inline", 2, use_shared_memory=False)
    with manager, Checker(SMALL, findings) as checker:
        rounds = [manager.collect_experiences() for _ in range(6)]
        audit = Audit(manager, checker, findings)
        for step in steps:
            if spoil and step == 2:
                rounds[step] = with_another_action(rounds[step])
            audit.take(rounds[step])
        audit.close()
    return findings


def with_another_action(experiences: Experiences) -> Experiences:
    """The first slab with one action changed, and a checksum that fits."""
    first, *others = experiences.slabs
    first.slab.action[3, 2] += 1
    record = replace(first.record, checksum=first.slab.checksum())
    return Experiences((CollectedSlab(record, first.first_game, first.slab), *others), experiences.version)


def test_an_audit_of_all_slabs_finds_nothing() -> None:
    findings = audited(0, 1, 2, 3, 4, 5)
    assert (findings.lost, findings.duplicated, findings.corrupted) == (0, 0, 0)
    assert findings.slabs == 18
    assert findings.transitions == 18 * 4 * 32


def test_an_audit_finds_what_is_lost_at_the_end() -> None:
    findings = audited(0, 1, 2, 3)
    assert findings.lost == 6
    assert "slabs 4 to 5 of table 0 never came" in findings.complaints


def test_an_audit_finds_what_comes_twice() -> None:
    findings = audited(0, 1, 1, 2, 3, 4, 5)
    assert (findings.lost, findings.duplicated, findings.corrupted) == (0, 3, 0)


def test_an_audit_finds_other_content() -> None:
    findings = audited(0, 1, 2, 3, 4, 5, spoil=True)
    assert (findings.lost, findings.duplicated, findings.corrupted) == (0, 0, 1)
    assert "slab 2 of table 0, played by worker" in findings.complaints[0]


def test_an_audit_finds_a_wrong_checksum() -> None:
    findings = Findings()
    manager = SMALL.manager("inline", 2, use_shared_memory=False)
    with manager, Checker(SMALL, findings) as checker:
        experiences = manager.collect_experiences()
        experiences.slabs[1].slab.reward[:] = np.float32(7)
        Audit(manager, checker, findings).take(experiences)
    assert findings.corrupted == 1
    assert "a wrong checksum" in findings.complaints[0]


def test_an_error_in_the_checking_process_reaches_the_caller() -> None:
    checker = Checker(SMALL, Findings())
    with SMALL.manager("inline", 2) as manager:
        record = manager.collect_experiences().slabs[0].record
    assert checker.offer(replace(record, version=-7), "a digest")
    with pytest.raises(ParallelError, match="could not be played again"), checker:
        pass


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_soak_finds_nothing_and_leaves_nothing(mode: str) -> None:
    settings = SoakSettings(
        game="connect-four",
        tables=3,
        workers=2,
        games=4,
        duration=6,
        modes=("sync" if mode == "sync" else "async",),
    )
    shares: list[float] = []
    report = soak(settings, lambda share, toll, findings: shares.append(share))
    assert report.ok, report
    assert report.findings.complaints == []
    assert report.leftovers == Leftovers(0, 0, 0)
    assert report.toll.strikes > 0
    assert len(report.toll.recoveries) + report.toll.interrupted == report.toll.strikes
    assert report.restarts >= report.toll.strikes
    assert report.findings.transitions == report.findings.slabs * 4 * 32 > 0
    assert shares == sorted(shares)
    assert not report.interrupted


def test_a_soak_can_be_interrupted() -> None:
    interrupted = threading.Event()
    settings = SoakSettings(game="tictactoe", tables=2, workers=1, games=4, duration=300, modes=("async",))
    report = soak(settings, lambda share, toll, findings: interrupted.set(), interrupted)
    assert report.interrupted
    assert report.ok, report


@pytest.mark.parametrize(
    "wrong",
    [
        {"findings": Findings(lost=1)},
        {"findings": Findings(duplicated=1)},
        {"findings": Findings(corrupted=1)},
        {"leftovers": Leftovers(1, 0, 0)},
        {"leftovers": Leftovers(0, 1, 0)},
        {"leftovers": Leftovers(0, 0, 1)},
    ],
)
def test_anything_wrong_fails_a_soak(wrong: dict[str, Findings | Leftovers]) -> None:
    good = SoakReport(1.0, Toll(), 0, 0, 0, Findings(), Leftovers(0, 0, 0), 0, 0, False)
    assert good.ok
    assert not replace(good, **wrong).ok  # type: ignore[arg-type]


def test_recovery_times_are_summed_up() -> None:
    toll = Toll(heirs=2, recoveries=[0.1] * 50 + [0.3] * 49 + [9.0]) + Toll(kills=1, heirs=1)
    report = SoakReport(1.0, toll, 0, 0, 0, Findings(), Leftovers(0, 0, 0), 0, 0, False)
    assert report.recovery_median == pytest.approx(0.2)
    assert report.recovery_p99 == 0.3
    assert (toll.kills, toll.heirs) == (1, 3)


def test_a_disturber_tells_of_its_own_error() -> None:
    nobody: list[Any] = [None]
    with pytest.raises(ParallelError, match="disturbs workers failed"), Disturber(nobody, [], every=0.01):
        time.sleep(0.2)
