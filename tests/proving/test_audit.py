"""The audit tells a slab that is lost from one that is still to be played."""

from __future__ import annotations

from typing import Any, cast

from keisei.proving.audit import Audit, Checker, Findings
from keisei.proving.same_experience import VerifySettings


def found_at_the_end(*, waits: bool) -> Findings:
    """What an audit says of one more slab of a table: its order waits for a worker, or nobody has it any more."""
    findings = Findings()
    with VerifySettings(game="tictactoe", tables=2, games=2).manager("inline", 1) as manager:
        audit = Audit(manager, cast(Checker, cast(Any, None)), findings)
        manager.tables[1].add_order(slab=0, state_slot=0, version=-1)
        if not waits:
            manager.tables[1].orders.clear()
        audit.close()
    return findings


def test_an_order_that_waits_for_a_worker_is_not_lost() -> None:
    assert found_at_the_end(waits=True).lost == 0


def test_a_slab_that_was_ordered_and_is_gone_is_lost() -> None:
    findings = found_at_the_end(waits=False)
    assert findings.lost == 1
    assert findings.complaints == ["slabs 0 to 0 of table 1 never came"]
