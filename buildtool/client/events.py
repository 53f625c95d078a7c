"""Which folders send events of their files, and which have to be looked at."""

from __future__ import annotations

import contextlib
from pathlib import Path

# File systems of another machine, or of another kernel: what is written there is not told here.
FOREIGN = frozenset("nfs nfs4 cifs smb3 smbfs 9p fuse.sshfs vboxsf afs ceph lustre".split())


def file_system(folder: str) -> str:
    """The kind of file system that a folder is on, as Linux calls it; "" where that is not known."""
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
            _, point, found, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            inside = folder == point or folder.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, found
    return kind
