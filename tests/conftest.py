"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# Machines differ in speed, and no test may fail for that.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")
