"""Processes that a terminal's signals do not reach, from their first moment on."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import multiprocessing, os, signal, time
from pathlib import Path
from keisei.machine.new_processes import deaf_to_terminal, own_fork_server

def blocked(pid):
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigBlk")]
    return int(line.split()[1], 16)

if __name__ == "__main__":
    with deaf_to_terminal(), own_fork_server([]):
        process = multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(30,), daemon=True)
        process.start()
    server = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    print(blocked(process.pid), blocked(server), blocked(os.getpid()))
    process.kill()
"""


def test_ctrl_c_and_hangups_are_blocked_in_workers_and_their_server() -> None:
    """The server imports torch for two seconds before it ignores Ctrl-C by itself."""
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    both = 1 << signal.SIGINT - 1 | 1 << signal.SIGHUP - 1
    worker, server, here = map(int, found.stdout.split())
    assert worker & both == server & both == both
    assert here & both == 0
