"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

# Machines differ in speed, and no test may fail for that.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")

# Modules named *_for_tests are shared between folders. Processes that tests start take over this path.
for folder in (
    "experience",
    "games/ludo",
    "games/worlds",
    "interfaces/usi",
    "learners",
    "machine",
    "parallel",
    "runs",
    "training",
    "web",
):
    sys.path.insert(0, str(Path(__file__).parent / folder))
