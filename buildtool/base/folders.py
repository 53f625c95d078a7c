"""Where buildtool keeps what outlives a command, the cache and the daemon's files, and the cache's settings.

Both folders belong to the user alone. One that is a link, another user's or writable by others is refused:
whoever could plant files there would decide what gets built.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from buildtool.base.errors import MachineError, UsageError, did_you_mean
from buildtool.base.store import LEVELS

MODE = "BUILDTOOL_CACHE"  # off: nothing is kept; names of levels, with commas: these alone
CACHE = "BUILDTOOL_CACHE_DIR"  # names another folder for the cache
SIZE = "BUILDTOOL_CACHE_BYTES"  # another bound on the bytes on disk
DISK_BYTES = 512 << 20
STATE = "BUILDTOOL_STATE_DIR"  # the same for the daemon's
MOST_SOCKET_PATH = 100  # bytes; systems allow 104 to 108


def cache_folder() -> Path | None:
    """$BUILDTOOL_CACHE_DIR, $XDG_CACHE_HOME/buildtool/planner, or ~/.cache/…; None without a home."""
    if named := os.environ.get(CACHE):
        return Path(named).absolute()
    return _in_users_cache("planner")


def memo_folder() -> Path | None:
    """Where builds keep what they know of files and boards: $XDG_CACHE_HOME/buildtool/memo, or ~/.cache/…"""
    return _in_users_cache("memo")


def _in_users_cache(name: str) -> Path | None:
    """A folder of buildtool's in the user's folder for caches; None without a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
        if os.environ.get("HOME", "/") in ("", "/") or not base.is_absolute():
            return None  # of a user without a home
    return base / "buildtool" / name


def kept_folder() -> Path | None:
    """The cache's folder; None where nothing is kept."""
    return cache_folder() if cache_levels() != frozenset() else None


def cache_levels() -> frozenset[str] | None:
    """The levels of the cache that are kept, None for all; UsageError for an unknown level."""
    text = os.environ.get(MODE, "").strip().lower()
    if text in ("", "on", "1", "yes"):
        return None
    if text in ("off", "0", "no"):
        return frozenset()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in LEVELS:
            hint = did_you_mean(name, ["on", "off", *LEVELS])
            raise UsageError(f"the cache has no level '{name}' (${MODE})", hint=hint)
    return frozenset(names)


def most_disk_bytes() -> int:
    """The upper limit for entries on disk, in bytes; UsageError for an invalid setting."""
    text = os.environ.get(SIZE, "")
    if not text:
        return DISK_BYTES
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise UsageError(f"'{text}' is not a number of bytes (${SIZE})", hint=f"{SIZE}={DISK_BYTES}")
    return int(text)


def state_folder() -> Path:
    """$BUILDTOOL_STATE_DIR, $XDG_RUNTIME_DIR/buildtool, or a folder of this user in /tmp.
    Not $TMPDIR: builds set it as they like, and each would get a daemon of its own.
    """
    if named := os.environ.get(STATE):
        return Path(named).absolute()
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or ".")
    return base / "buildtool" if base.is_absolute() else _short_folder()


def socket_path(name: str) -> Path:
    """Where the socket of the daemon `name` is: in the state folder, unless the path would be too long."""
    path = state_folder() / f"{name}.sock"
    fits = len(os.fsencode(path)) <= MOST_SOCKET_PATH
    return path if fits else _short_folder() / f"{short_name(str(path))}.sock"


def short_name(text: str) -> str:
    """A name of 16 characters for any text, for a socket's path, which may have 104 bytes."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def private(folder: Path) -> Path:
    """`folder`, made if it is not there. MachineError if it is not this user's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = folder.lstat()
    except OSError as error:
        raise MachineError(f"the system refuses: {error.strerror}", path=str(folder)) from None
    if not stat.S_ISDIR(there.st_mode):
        raise MachineError("this has to be a folder, not a link or a file", path=str(folder))
    if there.st_uid != user():
        raise MachineError("this folder belongs to another user", path=str(folder))
    if there.st_mode & 0o022:
        raise MachineError("others may write to this folder", path=str(folder), hint=f"chmod go-w '{folder}'")
    return folder


def _short_folder() -> Path:
    folder = "/tmp"
    if os.name != "posix":
        import tempfile  # which imports much

        folder = tempfile.gettempdir()
    return Path(folder).absolute() / f"buildtool-{user()}"


def user() -> int:
    """The number of the user that this process runs as; 0 where users have no numbers."""
    return os.getuid() if hasattr(os, "getuid") else 0
