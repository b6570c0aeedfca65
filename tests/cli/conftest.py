"""Commands run in the process of the tests, so settings of the whole process are restored."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def same_log_levels() -> Iterator[None]:
    logger = logging.getLogger("keisei.parallel")
    before = logger.level
    yield
    logger.setLevel(before)
