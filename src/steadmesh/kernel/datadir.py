"""The data directory: who may use it, what lies where in it, and who holds it now."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from steadmesh.kernel.ids import new_secret

LONGEST_SOCKET_PATH = 100
"""Bytes. The system's own limit is 107 on Linux and 103 on macOS."""

OPERATOR_KEY_PREFIX = "smo_"
_OPERATOR_KEY_LENGTH = len(OPERATOR_KEY_PREFIX) + 43  # 32 bytes in base64
_HOLD_FILE = "service.lock"


class DataDirectoryError(Exception):
    """The data directory cannot be used; the text says what to do."""


class AlreadyRunning(DataDirectoryError):
    """Another process holds the data directory. `pid` is 0 while the holder is not known."""

    def __init__(self, path: Path, *, pid: int, purpose: str) -> None:
        self.pid = pid
        self.purpose = purpose
        holder = f"(pid {pid})" if pid else "(its pid is not known yet)"
        if purpose == "service":
            what_to_do = f"stop it with `steadmesh stop --data {path}`, or use another --data"
        else:
            what_to_do = "wait until it is done"
        super().__init__(f"a steadmesh {purpose} {holder} already uses {path}; {what_to_do}")


@dataclass(frozen=True, slots=True)
class Address:
    """How clients on this machine find the running service."""

    socket: str
    url: str
    pid: int
    started: int | None
    """When the process began, in the kernel's ticks; with the pid it names one process for good."""
    version: str
    instance_id: str


class DataDirectory:
    """A folder of ours: mode 0700, files 0600."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> DataDirectory:
        """Make the folder if need be, and check that it is ours alone.

        Raises `DataDirectoryError`.
        """
        absolute = Path(os.path.abspath(path))
        try:
            absolute.parent.mkdir(parents=True, exist_ok=True)
            absolute.mkdir(mode=0o700, exist_ok=True)
            _check_is_ours(absolute)
        except (FileExistsError, NotADirectoryError):
            raise DataDirectoryError(
                f"the data directory {absolute} is a file, or lies below one; "
                "name a folder with --data or STEADMESH_DATA"
            ) from None
        except OSError as problem:
            raise _unusable(absolute, problem) from None
        return cls(absolute)

    @property
    def database(self) -> Path:
        return self.path / "steadmesh.db"

    @property
    def operator_key_file(self) -> Path:
        return self.path / "operator.key"

    @property
    def address_file(self) -> Path:
        return self.path / "address.json"

    @property
    def log_file(self) -> Path:
        return self.path / "steadmesh.log"

    def socket(self) -> Path:
        """Where the service listens. To be asked once: a folder for it may have to be made."""
        beside = self.path / "steadmesh.sock"
        if len(os.fsencode(beside)) <= LONGEST_SOCKET_PATH:
            return beside
        return _socket_folder(self.path) / "steadmesh.sock"

    def hold(self, purpose: str = "service") -> Hold:
        """Be the only one who uses this folder, until released or dead.

        Raises `AlreadyRunning`. The lock is on a file of its own: one on the database file would
        fall as soon as any descriptor of it is closed.
        """
        file = self.path / _HOLD_FILE
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise _unusable(self.path, problem) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {purpose}\n".encode())
        except BlockingIOError:
            holder, doing = _holder(descriptor)
            os.close(descriptor)
            raise AlreadyRunning(self.path, pid=holder, purpose=doing) from None
        except OSError as problem:
            os.close(descriptor)
            raise _unusable(self.path, problem) from None
        return Hold(descriptor)

    def operator_key(self) -> str:
        """The key that opens the operator's endpoints, made at the first call.

        Raises `DataDirectoryError` if the file is not one, or others can read it.
        """
        file = self.operator_key_file
        try:
            if not file.exists():
                with contextlib.suppress(FileExistsError):  # another process was quicker
                    _write_new(file, new_secret(OPERATOR_KEY_PREFIX) + "\n")
            mode = stat.S_IMODE(file.stat().st_mode)
            key = file.read_bytes()[:200].decode("ascii", "replace").strip()
        except OSError as problem:
            raise DataDirectoryError(
                f"the operator key {file} cannot be made or read: {problem.strerror}"
            ) from None
        if mode & 0o077:
            raise DataDirectoryError(
                f"the operator key {file} can be read by others (mode {mode:04o}); delete the file "
                "and restart the service, which makes a new key"
            )
        if len(key) != _OPERATOR_KEY_LENGTH or not key.startswith(OPERATOR_KEY_PREFIX):
            raise DataDirectoryError(
                f"{file} does not hold an operator key; delete the file and restart the service, "
                "which makes a new one"
            )
        return key

    def write_address(self, address: Address) -> None:
        """Say where the service is."""
        write_private(self.address_file, json.dumps(asdict(address)) + "\n")

    def read_address(self) -> Address | None:
        """Where the service said it is; it may be gone since. Nothing if there is no such word."""
        try:
            return Address(**json.loads(self.address_file.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def remove_address(self, instance_id: str) -> None:
        """Take back what `write_address` said, unless another service has spoken since."""
        address = self.read_address()
        if address is not None and address.instance_id == instance_id:
            self.address_file.unlink(missing_ok=True)


class Hold:
    """A held data directory. The kernel of the machine releases it when the process dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let others in. Twice does no harm."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            # Said out loud: a child between fork and exec shares the descriptor for a moment.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def process_start(pid: int) -> int | None:
    """When a process began, in the kernel's ticks; nothing if there is none, or no /proc."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in brackets, which may itself hold any character.
    return int(state.rpartition(b")")[2].split()[19])


def write_private(file: Path, content: str) -> None:
    """Replace a file that only this user may read, at once and durably: readers see old or new."""
    temporary = _temporary(file, content)
    try:
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _write_new(file: Path, content: str) -> None:
    """As `write_private`, but raises FileExistsError instead of replacing anything."""
    temporary = _temporary(file, content)
    try:
        os.link(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(file: Path, content: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)
    return Path(name)


def _unusable(path: Path, problem: OSError) -> DataDirectoryError:
    return DataDirectoryError(
        f"the data directory {path} cannot be used: {problem.strerror}; make it writable for this "
        "user, or name another with --data or STEADMESH_DATA"
    )


def _check_is_ours(path: Path) -> None:
    state = path.stat()
    mode = stat.S_IMODE(state.st_mode)
    if state.st_uid != os.geteuid():
        raise DataDirectoryError(
            f"the data directory {path} belongs to another user (uid {state.st_uid}); "
            "run as that user, or name another folder with --data or STEADMESH_DATA"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise DataDirectoryError(
            f"the data directory {path} is not writable (mode {mode:04o}); "
            f"run: chmod 700 {path}, or name another folder with --data or STEADMESH_DATA"
        )
    if mode & 0o077:
        # Taken over only if nothing of others can be in it: closing /tmp would break the machine.
        if (path / _HOLD_FILE).exists() or not any(path.iterdir()):
            path.chmod(0o700)
        else:
            raise DataDirectoryError(
                f"the data directory {path} is open to other users (mode {mode:04o}) and holds "
                f"other things; name an empty folder with --data, or run: chmod 700 {path}"
            )


def _holder(descriptor: int) -> tuple[int, str]:
    """Who holds the lock. What stands in the file may be a dead holder's for a moment."""
    for _ in range(50):
        words = os.pread(descriptor, 100, 0).decode("ascii", "replace").split(maxsplit=1)
        if len(words) == 2 and words[0].isdigit() and _exists(int(words[0])):
            return int(words[0]), words[1].strip()
        time.sleep(0.01)
    return 0, "service"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _socket_folder(data: Path) -> Path:
    """A folder of ours below the temporary one: the same each time, unless somebody sits there."""
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    name = f"steadmesh-{os.geteuid()}-{digest}"
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > 40:
        parent = Path("/tmp")  # noqa: S108 - the folder below is checked to be ours
    folder = parent / name
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    is_ours = state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) == 0o700
    if stat.S_ISDIR(state.st_mode) and is_ours:
        return folder
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
