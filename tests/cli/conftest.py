"""Commands run in the process of the tests, so they must leave the settings of the process as they were."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def same_log_levels() -> Iterator[None]:
    logger = logging.getLogger("keisei.parallel")
    before = logger.level
    yield
    assert logger.level == before
