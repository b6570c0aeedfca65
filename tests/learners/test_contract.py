"""Reports are plain numbers and need no torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from keisei.learners.contract import Report


def test_reports_and_settings_bring_no_torch() -> None:
    code = (
        "import sys; from keisei.learners.contract import Learner, Report; import keisei.learners.ppo_config; "
        "Report({0: {'train/loss': 1.0}}).numbers; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_owner_has_its_own_numbers() -> None:
    report = Report({0: {"train/loss": 0.25, "train/approx_kl": 0.5}})
    assert report.numbers == {"train/loss": 0.25, "train/approx_kl": 0.5}
    assert report.failures == {}


def test_numbers_are_means_over_the_owners_that_have_them() -> None:
    report = Report({0: {"a/x": 1.0, "a/y": 5.0}, 2: {"a/x": 4.0}, 1: {"a/x": 7.0, "a/z": -1.0}})
    assert report.numbers == pytest.approx({"a/x": 4.0, "a/y": 5.0, "a/z": -1.0})
    assert list(report.numbers) == ["a/x", "a/y", "a/z"]


def test_a_report_may_have_no_owner_at_all() -> None:
    assert Report({}, failures={3: "its loss is no number"}).numbers == {}
