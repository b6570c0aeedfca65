"""The connection of this process to a Ray cluster. There is one at a time, and all backends share it.

A Ray cluster is trusted ground: whoever can connect to it can run code on every node. So tokens are on by default, the
dashboard is off, a token file that others can read is refused, and what is started here listens on loopback alone.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from keisei.errors import ClusterError, ConfigError

LOCAL = "local"
CONNECT_SECONDS = 5.0
"""How long a cluster may take to accept a connection."""
INSTALL = "pip install 'keisei[ray]'"


@dataclass
class _Shared:
    """The connection that is open."""

    address: str
    users: int = 0
    ours: bool = True
    """False if the program had connected before; it then stays open."""
    printer: Any = None
    """What printed Ray's messages before."""


_SHARED: list[_Shared] = []
"""The open connection, or empty."""
_LOCK = threading.Lock()


class Connection:
    """A share in the connection of this process. The last one that is closed ends it."""

    def __init__(self, address: str, cpus: int) -> None:
        """``cpus`` are the processors of a cluster that is started here (``local``)."""
        self.ray = import_ray()
        with _LOCK:
            if not _SHARED:
                _SHARED.append(_open(self.ray, address, cpus))
            shared = _SHARED[0]
            if shared.ours and shared.address != address:
                raise ClusterError(
                    f"parallel.address = {address}, but this process is connected to {shared.address} already; a "
                    f"process uses one Ray cluster at a time"
                )
            shared.users += 1
        self._open = True

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        with _LOCK:
            shared = _SHARED[0]
            shared.users -= 1
            if shared.users:
                return
            _SHARED.clear()
            if shared.ours:
                _shut_down(self.ray, shared)


def import_ray() -> Any:
    """Imports Ray, with its usage statistics off and tokens on, unless the user has set them."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Otherwise Ray hides graphics cards from workers that reserve none, and warns of a change to come.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    tokens_were_set = "RAY_AUTH_MODE" in os.environ
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise ConfigError(f"parallel.backend = ray needs Ray, which is not installed: {INSTALL}") from error
    if not tokens_were_set:
        ray._raylet.Config.initialize("")  # Ray may have been imported before, and reads its settings once
    return ray


def _open(ray: Any, address: str, cpus: int) -> _Shared:
    if ray.is_initialized():
        return _Shared(ray.get_runtime_context().gcs_address, ours=False)
    quiet = {
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "job_config": _job_without_folders(ray),
    }
    with _signals_kept(), _ray_errors(address):
        if address == LOCAL:
            _provide_token()
            with on_loopback():
                ray.init(LOCAL, num_cpus=cpus, **quiet)
        else:
            check_token_file()
            found = _reachable(address)
            with on_loopback() if _is_on_loopback_alone(found) else nullcontext():
                ray.init(found, **quiet)
    return _Shared(address, printer=_silence(ray, _say_nothing))


class _NoFolders(list[str]):
    """The folders that Ray puts first on the path of its workers: none."""

    def extend(self, folders: Iterable[str]) -> None:
        """Adds nothing. Ray would add the current directory, where a run named ``numpy`` would be imported in place of
        the library. Actors get their driver's path from its greeting."""


def _job_without_folders(ray: Any) -> Any:
    job = ray.job_config.JobConfig()
    job._py_driver_sys_path = _NoFolders()
    return job


@contextmanager
def on_loopback() -> Iterator[None]:
    """Makes nodes that this process starts inside the ``with`` listen on 127.0.0.1 alone. By default they listen on
    every address of this machine. Ray replaces a ``_node_ip_address`` of 127.0.0.1 by an address in the network, unless
    it is told that there are no clusters here, as it assumes on macOS."""
    constants = import_ray()._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _shut_down(ray: Any, shared: _Shared) -> None:
    with _signals_kept():
        ray.shutdown()
    _silence(ray, shared.printer)


def _silence(ray: Any, printer: Any) -> Any:
    """Replaces the printer of Ray's messages about dead processes, since the manager reports them. Returns the earlier
    printer."""
    worker = ray._private.worker
    before, worker.print_to_stdstream = worker.print_to_stdstream, printer
    return before


def _say_nothing(*_: Any, **__: Any) -> None:
    pass


def _provide_token() -> None:
    """Sets a token of its own for a cluster of this process. Ray would write one into a file that others can read."""
    if _tokens_are_on() and "RAY_AUTH_TOKEN" not in os.environ and "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ["RAY_AUTH_TOKEN"] = _OWN_TOKEN


_OWN_TOKEN = secrets.token_hex(32)
"""The token of clusters that this process starts. Ray reads it once for each process."""


def token_file() -> Path | None:
    """Finds the file that Ray takes the token from; None if it takes it from the environment, or needs none."""
    if not _tokens_are_on() or "RAY_AUTH_TOKEN" in os.environ:
        return None
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))


def check_token_file() -> None:
    """Refuses a token file that others can read: with the token they can run code on every node."""
    path = token_file()
    if path is None or not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ClusterError(
            f"the token file {path} has mode {mode:03o}, so others can read it, and with it run code on every node of "
            f"the cluster: chmod 600 {path}"
        )


def _tokens_are_on() -> bool:
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "token"


def _reachable(address: str) -> str:
    """Finds the address of a cluster as host:port, and gives up soon. Ray alone would try for minutes."""
    if "://" in address:
        raise ClusterError(
            f"parallel.address = {address}: Keisei runs on a node of the cluster, not through Ray Client; log in there "
            f"and write auto or host:port"
        )
    found = _find() if address == "auto" else address
    host, _, port = found.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(
            f"parallel.address = {address}: write local, auto or host:port, such as 10.0.0.1:6379"
        )
    try:
        _try(found)
    except (OSError, OverflowError) as error:
        raise ClusterError(f"{_nobody(found)}: {error}") from error
    return found


def _try(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _is_on_loopback_alone(address: str) -> bool:
    """Checks if a cluster answers at a loopback address alone. Ray would connect to this machine's network address
    instead."""
    from ray._private.services import resolve_ip_for_localhost

    host, _, port = address.rpartition(":")
    instead = resolve_ip_for_localhost(host)
    try:
        _try(f"{instead}:{port}")
    except OSError:
        return True
    return False


def _find() -> str:
    from ray._private.services import canonicalize_bootstrap_address_or_die

    try:
        found: str = canonicalize_bootstrap_address_or_die("auto")
    except ConnectionError as error:
        raise ClusterError(f"{_nobody('auto')}: {error}") from error
    return found


def _nobody(address: str) -> str:
    return (
        f"no Ray cluster answers at {address}. Start one with `ray start --head` and name its address, or take "
        f"parallel.address = local"
    )


@contextmanager
def _ray_errors(address: str) -> Iterator[None]:
    """Turns Ray's errors while it connects into ours."""
    try:
        yield
    except (RuntimeError, ValueError, OSError, import_ray().exceptions.RayError) as error:
        text = " ".join(str(error).split())
        raise ClusterError(f"{_advice(text, address)}: {text}") from error


def _advice(text: str, address: str) -> str:
    if "Version mismatch" in text:
        return f"the cluster at {address} has other versions; install the same Python and Ray everywhere"
    if address == LOCAL:
        return "Ray could not be started on this machine; its logs are below /tmp/ray/session_latest"
    return (
        f"the Ray cluster at {address} does not let this process in. If it has a token, copy ~/.ray/auth_token from "
        f"its head node (chmod 600); if it has none, set RAY_AUTH_MODE=disabled"
    )


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keeps the program's own handlers of signals, which Ray replaces."""
    kept = {}
    if threading.current_thread() is threading.main_thread():
        kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            with suppress(TypeError):  # a handler that was not set from Python
                signal.signal(number, handler)
