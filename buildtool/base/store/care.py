"""Commands about the cache: its size, whether entries are intact, and why something was computed again."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buildtool.base.errors import MachineError, UsageError
from buildtool.base.folders import MODE, cache_folder, most_disk_bytes
from buildtool.base.store import OFF_FILE
from buildtool.base.store import disk as disks
from buildtool.base.store.disk import ASIDE, Disk
from buildtool.base.store.notes import ASKED, COUNTS, LOCK, UNCOUNTED, WALKED, Notes


def folder() -> Path:
    """Returns the cache's folder. Raises UsageError if the user has no cache folder."""
    path = cache_folder()
    if path is None:
        raise UsageError("the cache has no folder", hint="set XDG_CACHE_HOME or BUILDTOOL_CACHE_DIR")
    return path


def stats() -> dict[str, Any]:
    """Returns figures about the cache.

    `levels` has the entries, bytes, hits and misses of each namespace. `places` has hits, misses, errors,
    sent entries and milliseconds of the sessions' memory, the disk and the server. `errors` counts failures
    since the cache was made.
    """
    disk, counts = Disk(folder()), Notes(folder()).counts()
    sizes: dict[str, tuple[int, int]] = {}
    for level, _, size in () if disk.trouble else disk.entries():
        entries, total = sizes.get(level, (0, 0))
        sizes[level] = entries + 1, total + size
    levels: dict[str, dict[str, int]] = {}
    for name in sorted({*sizes, *(name.split()[0] for name in counts if " " in name)}):
        entries, size = sizes.get(name, (0, 0))
        hits, misses = (counts.get(f"{name} {what}", 0) for what in ("hits", "misses"))
        levels[name] = {"entries": entries, "bytes": size, "hits": hits, "misses": misses}
    errors = {name: number for name, number in counts.items() if " " not in name and ":" not in name}
    return {
        "folder": str(disk.folder),
        "trouble": disk.trouble,
        "places": {place: _sum_up(place, counts, errors) for place in ("memory", "disk", "remote")},
        "levels": levels,
        "bytes": sum(level["bytes"] for level in levels.values()),
        "most_bytes": most_disk_bytes(),
        "errors": errors,
    }


def _sum_up(place: str, counts: Mapping[str, int], errors: Mapping[str, int]) -> dict[str, int]:
    """Returns the figures of a place (memory, disk or remote). `errors`, which name no place, count for the
    disk.
    """
    figures = {what: counts.get(f"{place}:{what}", 0) for what in ("hits", "misses", "errors", "sent")}
    if place == "disk":
        figures["errors"] = sum(errors.values())
    return figures | {"milliseconds": round(counts.get(f"{place}:microseconds", 0) / 1000)}


def verify() -> dict[str, Any]:
    """Reads every entry and moves bad ones aside; returns how many were good, bad and unreadable. Counts the
    total of bytes again.
    """
    disk = _open_disk()
    sound = sum(disk.read(level, key) is not None for level, key, _ in list(disk.entries()))
    Notes(disk.folder).evict(disk, most_disk_bytes())
    return {
        "folder": str(disk.folder),
        "entries": sound,
        "bad": disk.counts["bad"],
        "unreadable": disk.counts["unreadable"],
        "aside": str(disk.folder / ASIDE),
    }


def clear() -> dict[str, Any]:
    """Removes every entry and all notes; returns the number and bytes of the entries. Other files in the
    folder stay.
    """
    disk = _open_disk()
    entries = list(disk.entries())
    asked = Notes(disk.folder).asked
    if not asked.trouble:
        asked.empty()
        _remove(asked.folder, disks.LOCK)
    disk.empty()
    left = list(disk.entries())
    _remove(disk.folder, COUNTS, UNCOUNTED, WALKED, LOCK, disks.LOCK, OFF_FILE, "index.sqlite")
    if left and not set(left).isdisjoint(entries):
        hint = "end other commands that use the cache, or check who owns its files; then try again"
        text = f"{len(left):,} entries could not be removed"
        raise MachineError(text, path=str(disk.folder), hint=hint)
    removed = sum(size for _, _, size in entries)
    return {"folder": str(disk.folder), "entries": len(entries), "bytes": removed}


def explain(words: str = "") -> dict[str, Any]:
    """Returns the look-ups (hits and misses) of the last requests whose subject contains all `words`, by
    namespace. `changed` has those parts of the key that differ from the request before, if the entry was
    missing.
    """
    rows: list[dict[str, Any]] = []
    subjects = Notes(folder()).subjects() if (folder() / ASKED).is_dir() else ()
    for subject, reports in subjects:
        if not all(word in subject for word in words.split()):
            continue
        for level, report in sorted(reports.items()):
            with contextlib.suppress(Exception):  # skips a damaged report
                counts = {what: report["counts"].get(what, 0) for what in ("hits", "misses")}
                changed = [{"part": part, "was": was, "now": now} for part, was, now in report["changed"]]
                parts = {name: text for name, (_, text) in report["parts"].items()}
                rows.append(
                    {"subject": subject, "level": level, **counts, "changed": changed, "parts": parts}
                )
    return {"folder": str(folder()), "asked": rows}


def _remove(folder: Path, *names: str) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _open_disk() -> Disk:
    disk = Disk(folder())
    if disk.trouble:
        raise MachineError(f"the cache cannot be used: {disk.trouble}", hint=f"{MODE}=off does without it")
    return disk
