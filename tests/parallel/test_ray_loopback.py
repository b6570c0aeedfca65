"""A Ray that Keisei starts on this machine listens on loopback alone, in all its parts."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from games_for_tests import children_of

PROGRAM = """
import sys
from keisei.parallel import ParallelManager
settings = {"backend": "ray", "num_workers": 2, "tables": 2, "games": 2, "horizon": 4}
with ParallelManager({"game": "tictactoe"}, None, settings) as manager:
    manager.collect_experiences()
    print("played", flush=True)
    sys.stdin.readline()
"""
PARTS = ("gcs_server", "raylet/raylet", "ray::RuntimeEnvAgent", "ray::PlayingActor", "python -c")
"""Parts of Ray with a socket of their own, by a piece of their command."""


def family_of(pid: int) -> list[int]:
    return [pid, *(member for child in children_of(pid) for member in family_of(child))]


def sockets_of(pid: int) -> set[str]:
    links = (path.readlink() for path in Path(f"/proc/{pid}/fd").iterdir())
    return {link.name[8:-1] for link in links if link.name.startswith("socket:[")}


def listening() -> dict[str, str]:
    """The addresses on which TCP sockets of this machine listen, by the number of the socket."""
    lines = [
        line for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    fields = [line.split() for line in lines]
    return {field[9]: address(field[1].partition(":")[0]) for field in fields if field[3] == "0A"}


def address(text: str) -> str:
    """The kernel writes addresses as words of four bytes, each in the order of this machine."""
    raw = bytes.fromhex(text)
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    found = ip_address(packed)
    return str(getattr(found, "ipv4_mapped", None) or found)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux for sockets")
def test_no_part_of_ray_can_be_reached_from_outside() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "played\n"
        addresses = listening()
        heard: dict[str, set[str]] = {}
        for pid in family_of(program.pid):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            heard.setdefault(command, set()).update(
                addresses[each] for each in sockets_of(pid) if each in addresses
            )
    finally:
        program.communicate("over\n")
    listeners = {command: found for command, found in heard.items() if found}
    for part in PARTS:
        assert any(part in command for command in listeners), f"{part} has no socket"
    assert {found for addresses in listeners.values() for found in addresses} == {"127.0.0.1"}, listeners


def test_ray_imports_nothing_from_the_current_directory(tmp_path: Path) -> None:
    """A run there may be named like a module that Ray or a game imports."""
    for name in ("numpy", "json", "yaml"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'a')\n")
    program = "import sys; sys.path[:] = [entry for entry in sys.path if entry]\n" + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="over\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "played\n"
    assert not (tmp_path / "it-ran").exists()
