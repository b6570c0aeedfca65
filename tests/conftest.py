"""What all tests share."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from hypothesis import settings

# Machines differ in speed, and no test may fail for that.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")

# Tests send signals. A shell that starts them in the background lets them be ignored, also in processes of theirs.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# What tests trust is forgotten with them, also in processes that they start.
STATE = tempfile.mkdtemp(prefix="keisei-state-")
os.environ["XDG_STATE_HOME"] = STATE
atexit.register(shutil.rmtree, STATE, ignore_errors=True)

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
