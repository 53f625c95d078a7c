"""The folders that outlive a command (the cache, the memo, the daemon's files), and the cache's settings.

Only the user may write to them. A folder that is a link, belongs to another user or is writable by others is
refused: whoever can put files there decides what gets built.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from buildtool.base.errors import MachineError, UsageError, did_you_mean
from buildtool.base.sizes import parse_size, show_size
from buildtool.base.store import NAMESPACES

MODE = "BUILDTOOL_CACHE"  # off: no cache; names of cache namespaces, separated by commas: only these
CACHE = "BUILDTOOL_CACHE_DIR"  # another folder for the cache
SIZE = "BUILDTOOL_CACHE_BYTES"  # another upper limit for the cache on disk, in bytes
DISK_BYTES = 512 << 20
STATE = "BUILDTOOL_STATE_DIR"  # another folder for the daemon's files
REMOTE_URL = "BUILDTOOL_CACHE_URL"  # a cache that several machines share (store/remote); "": none
REMOTE_MODE = "BUILDTOOL_CACHE_MODE"  # read, or write: also send new entries
REMOTE_KEY = "BUILDTOOL_CACHE_KEY"  # signs its entries
REMOTE_USER, REMOTE_PASSWORD = "BUILDTOOL_CACHE_USER", "BUILDTOOL_CACHE_PASSWORD"
REMOTE_TOKEN = "BUILDTOOL_CACHE_TOKEN"  # in place of user and password
REMOTE = (REMOTE_URL, REMOTE_MODE, REMOTE_KEY, REMOTE_USER, REMOTE_PASSWORD, REMOTE_TOKEN)
MOST_SOCKET_PATH = 100  # bytes; systems allow 104 to 108


def cache_folder() -> Path | None:
    """Returns $BUILDTOOL_CACHE_DIR, $XDG_CACHE_HOME/buildtool/planner, or ~/.cache/…; None without a home."""
    if name := os.environ.get(CACHE):
        return Path(name).absolute()
    return _find_in_users_cache("planner")


def memo_folder() -> Path | None:
    """Returns the folder of the memo, in which builds keep digests of files and descriptions of boards:
    $XDG_CACHE_HOME/buildtool/memo, or ~/.cache/…; None without a home.
    """
    return _find_in_users_cache("memo")


def _find_in_users_cache(name: str) -> Path | None:
    """Returns a folder of buildtool in the user's cache folder; None without a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
        is_homeless = os.name == "posix" and os.environ.get("HOME", "/") in ("", "/")
        if is_homeless or not base.is_absolute():
            return None
    return base / "buildtool" / name


def active_cache_folder() -> Path | None:
    """Returns the cache's folder; None where the cache is switched off, or there is no home."""
    return cache_folder() if cache_levels() != frozenset() else None


def cache_levels() -> frozenset[str] | None:
    """Returns the cache namespaces that are in use, None for all of them. Raises UsageError if the user's
    setting has an unknown name.
    """
    text = os.environ.get(MODE, "").strip().lower()
    if text in ("", "on", "1", "yes"):
        return None
    if text in ("off", "0", "no"):
        return frozenset()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in NAMESPACES:
            hint = did_you_mean(name, ["on", "off", *NAMESPACES])
            raise UsageError(f"the cache has no namespace '{name}' (${MODE})", hint=hint)
    return frozenset(names)


def most_disk_bytes() -> int:
    """Returns the upper limit for the cache's entries on disk, in bytes. Raises UsageError if the user's
    setting is not a size.
    """
    text = os.environ.get(SIZE, "")
    if not text:
        return DISK_BYTES
    number = parse_size(text)
    if number is None:
        raise UsageError(
            f"'{text}' is not a number of bytes (${SIZE})", hint=f"{SIZE}={show_size(DISK_BYTES)}"
        )
    return number


def state_folder() -> Path:
    """Returns $BUILDTOOL_STATE_DIR, $XDG_RUNTIME_DIR/buildtool, or a folder of this user in /tmp.
    It does not use $TMPDIR: builds set that variable, and each of them would start its own daemon.
    """
    if name := os.environ.get(STATE):
        return Path(name).absolute()
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or ".")
    return base / "buildtool" if base.is_absolute() else _short_folder()


def socket_path(name: str) -> Path:
    """Returns the path of the daemon's socket: in the state folder, unless that path would be too long."""
    path = state_folder() / f"{name}.sock"
    fits = len(os.fsencode(path)) <= MOST_SOCKET_PATH
    return path if fits else _short_folder() / f"{short_name(str(path))}.sock"


def short_name(text: str) -> str:
    """Returns a name of 16 characters for any text. A socket's path may have only 104 bytes."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def private(folder: Path) -> Path:
    """Makes `folder` if it is missing; returns it. Raises MachineError if others may write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise MachineError(f"the system refuses: {error.strerror}", path=str(folder)) from None
    if not stat.S_ISDIR(status.st_mode):
        raise MachineError("this must be a folder, not a link or a file", path=str(folder))
    if status.st_uid != user():
        raise MachineError("this folder belongs to another user", path=str(folder))
    if writable_by_others(status):
        raise MachineError("others may write to this folder", path=str(folder), hint=f"chmod go-w '{folder}'")
    return folder


def writable_by_others(status: os.stat_result) -> bool:
    """Whether other users may write to a file or folder. False on Windows, where the mode does not say so."""
    return os.name == "posix" and bool(status.st_mode & 0o022)


def _short_folder() -> Path:
    folder = "/tmp"
    if os.name != "posix":
        import tempfile  # it imports many modules

        folder = tempfile.gettempdir()
    return Path(folder).absolute() / f"buildtool-{user()}"


def user() -> int:
    """Returns the user ID of this process; 0 on a system without user IDs."""
    return os.getuid() if hasattr(os, "getuid") else 0
