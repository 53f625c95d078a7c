"""Puts a network into a folder beside other networks, and rewrites the files that list all of them.

The file sources.json of the folder lists buildtool's files. All other files are never overwritten.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import buildtool
from buildtool.base.errors import UsageError
from buildtool.base.modes import System
from buildtool.base.outfiles import alone, holds, refuse_another, write_changed
from buildtool.base.plain import Mismatch, from_plain
from buildtool.emit.ctext import array_lines
from buildtool.fronts.bundles.systems import PACKAGES, core_of, facts_of, refuse_core, templates_of
from buildtool.schema import SCHEMA
from buildtool.schema.builds import BundleAnswer, BundledNetwork, License

LISTING = "sources.json"
WEIGHTS_SECTION = ".rodata.nn_weights"  # the linker scripts of all systems but plain put .rodata.* into flash
_STACK = 2048  # bytes, for a network whose stack is not known
_TAKEN = frozenset(
    "all clean edit_cache help install list_install_components nn_kernels package "
    "package_source rebuild_cache test".split()
)
# Names of CMake targets of the pico-sdk begin like this.
_OF_PICO = ("boot_", "cmsis_", "cyw43_", "hardware_", "pico_", "tinyusb_")


def texts(networks: Mapping[str, BundledNetwork]) -> dict[str, bytes]:
    """Returns the files that list all networks of a folder: name -> content. sources.json comes first."""
    every = dict(sorted(networks.items()))
    first, common = next(iter(every.items()))
    system, core = System(common["system"]), core_of(common["core"])
    refuse_core(system, common["board"], core)
    listing: dict[str, Any] = {
        "schema": SCHEMA,
        "buildtool": buildtool.__version__,
        **{name: common[name] for name in ("system", "board", "core", "exact", "defines")},
        "include": list(dict.fromkeys(_all(every, "include"))),
        "include_kernels": sorted({*_all(every, "include_kernels")}),
        "sources": sorted({*_all(every, "kernels"), *_all(every, "sources")}),
        "assembly": [network["assembly"] for network in every.values()],
        "arrays": [network["array"] for network in every.values()],
        "licenses": _licenses(every),
        "networks": every,
    }
    variables = {
        **listing,
        "first": first,
        "common": common,
        "kernels": sorted({*_all(every, "kernels")}),
        "sources": _all(every, "sources"),
        "weights": [network["weights"] for network in every.values()],
        "alignment": max(network["arena_alignment"] for network in every.values()),
        "stack": max(network["stack_bytes"] or _STACK for network in every.values()),
        "title": PACKAGES[system].title,
        **facts_of(common["board"], core),
        "spdx": " AND ".join(sorted({row["spdx"] for row in listing["licenses"] if row["spdx"]})),
        "weights_section": WEIGHTS_SECTION,
        "weights_bytes": sum(network["weights_bytes"] for network in every.values()),
        "version": buildtool.__version__,
        "second_arenas": any(network.get("second_arena_bytes") for network in every.values()),
    }
    files = {LISTING: (json.dumps(listing, indent=1) + "\n").encode()}
    return files | {name: _make_file(path, variables) for name, path in templates_of(system).items()}


def array(net: str, image: bytes) -> bytes:
    """Returns NET_weights.c, the weight image as a C array, for toolchains without the GNU assembler."""
    return _make_file("weights.c.jinja", {"net": net, "body": "\n".join(array_lines(image))})


def _make_file(name: str, variables: Mapping[str, object]) -> bytes:
    environment = Environment(
        loader=PackageLoader("buildtool.fronts.bundles"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    taken_prefixes = _OF_PICO if variables.get("system") == System.PICO else ()
    environment.filters |= {
        "count": "{:,}".format,
        "define": "-D{}".format,
        "here": "${{CMAKE_CURRENT_SOURCE_DIR}}/{}".format,
        # A network's target for CMake has the network's name, unless CMake or the SDK has such a target.
        "library": lambda net: f"{net}_network" if net in _TAKEN or net.startswith(taken_prefixes) else net,
        "lines": _lines,
        "quoted": json.dumps,
        "suffixed": lambda names, suffix: [name for name in names if name.endswith(suffix)],
    }
    return environment.get_template(name).render(variables).encode()


def _lines(names: list[str]) -> str:
    """Returns names as a list for make, with one name per line if there are several."""
    return names[0] if len(names) == 1 else "".join(f"\\\n    {name} " for name in names).rstrip()


def _all(networks: Mapping[str, BundledNetwork], key: str) -> list[str]:
    """Returns the values of all networks' lists under `key`, network by network."""
    return [name for network in networks.values() for name in network[key]]  # type: ignore[literal-required]


def _licenses(networks: Mapping[str, BundledNetwork]) -> list[License]:
    """Returns the licenses of all networks. Each license text occurs once."""
    folders: dict[tuple[str, str], set[str]] = {}
    for network in networks.values():
        for one in network["licenses"]:
            folders.setdefault((one["text"], one["spdx"]), set()).update(one["folders"])
    return [
        {"spdx": spdx, "text": text, "folders": sorted(names)}
        for (text, spdx), names in sorted(folders.items())
    ]


_LOCKED = "networks"  # the subfolder to lock: every folder has it, and all its files are buildtool's


def put(answer: BundleAnswer, out: Path) -> tuple[list[str], list[str]]:
    """Writes a network's files into `out`. Returns the names of changed files and of removed files.

    Raises UsageError if the new network does not fit the folder's other networks, or if it would overwrite a
    file that is not buildtool's.
    """
    with _alone(out):
        present = _read_networks(out)
        if (old := present.get(answer["net"])) is not None:
            refuse_another(old["network"], answer["network"]["network"], out, answer["net"])
        others = {net: network for net, network in present.items() if net != answer["net"]}
        _refuse_others(answer, others, out)
        networks = {**others, answer["net"]: answer["network"]}
        image = answer["files"][answer["network"]["weights"]]
        own = {**answer["files"], answer["network"]["array"]: array(answer["net"], image)}
        files = {**texts(networks), **own}
        listed = _files_of(present)
        for name, data in files.items():
            path = out / name
            if name not in listed and (path.exists() or path.is_symlink()) and not holds(path, data):
                raise UsageError(
                    "this file is not one of buildtool's, and it would be overwritten",
                    path=str(path),
                    hint="write to an empty folder",
                )
        changed = write_changed(files, out)
        unused = listed - _files_of(networks)
        return changed, [name for name in sorted(unused) if _remove(out, name)]


# ---- the folder's networks ---------------------------------------------------------------------------


def _read_networks(out: Path) -> dict[str, BundledNetwork]:
    """Returns the networks of a folder, by name; {} if it has no sources.json.

    Raises UsageError if sources.json cannot be read.
    """
    path = out / LISTING
    again = "write to another folder, or remove this one and write its networks again"
    try:
        listing: Any = json.loads(path.read_bytes())
        networks = listing["networks"]
        schema = listing["schema"]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", path=str(path)) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(
            "this is not a listing of a folder of networks", path=str(path), hint=again
        ) from None
    if schema != SCHEMA or not _is_well_formed(networks):
        what = "another version of buildtool wrote the folder, or its listing was changed"
        raise UsageError(what, path=str(path), hint=again)
    listed: dict[str, BundledNetwork] = networks
    return listed


def _is_well_formed(networks: Any) -> bool:
    """Whether the content of sources.json has the right types, and all its files lie inside the folder."""
    if not isinstance(networks, dict) or not networks:
        return False
    try:
        for network in networks.values():
            from_plain(network, BundledNetwork, "network")
    except Mismatch:
        return False
    return all(
        isinstance(name, str)
        and name
        and not {"\0", "\\"} & set(name)
        and not PurePosixPath(name).is_absolute()
        and ".." not in PurePosixPath(name).parts
        for network in networks.values()
        for name in network["files"]
    ) and all(network["system"] in {*System} for network in networks.values())


def _files_of(networks: Mapping[str, BundledNetwork]) -> set[str]:
    """Returns all files of these networks, and the files that list them."""
    own = {name for network in networks.values() for name in network["files"]}
    systems = {System(network["system"]) for network in networks.values()}
    return own | {name for system in systems for name in (LISTING, *templates_of(system))}


# ---- networks that do not fit together ---------------------------------------------------------------


def _refuse_others(answer: BundleAnswer, others: Mapping[str, BundledNetwork], out: Path) -> None:
    """Raises UsageError if another network has other flags, or another version of a file that both need.

    `answer` has the new network.
    """
    new = answer["network"]
    for net, network in others.items():
        if network["system"] != new["system"]:
            raise UsageError(
                f"the folder is for {PACKAGES[System(network['system'])].title}",
                path=str(out),
                hint="use one folder for each build system",
            )
        if any(network[key] != new[key] for key in ("core", "defines", "exact")):
            raise UsageError(
                f"the folder has the network '{net}' for the core of '{network['board']}', "
                f"and '{answer['net']}' is for the core of '{new['board']}'",
                path=str(out),
                hint="use one folder for each core",
            )
    for net, network in others.items():
        for name in network["files"]:
            if name in answer["files"] and not holds(out / name, answer["files"][name]):
                raise UsageError(
                    f"the network '{net}' in this folder has another {name}: it is from another version of "
                    "buildtool, or was changed by hand",
                    path=str(out),
                    hint="remove the folder, and write all of its networks again",
                )


def _remove(out: Path, name: str) -> bool:
    """Removes a file that no network needs any more, and the folders that are then empty.

    Returns whether the file existed.
    """
    path = out / name
    try:
        path.unlink()
    except OSError:
        return False
    for folder in path.relative_to(out).parents[:-1]:
        with contextlib.suppress(OSError):
            (out / folder).rmdir()
    return True


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """A context in which no other process writes networks into the folder, if the system supports locks."""
    locked = out / _LOCKED
    missing = [folder for folder in (locked, *locked.parents) if not folder.exists()]
    try:
        locked.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", path=str(out)) from None
    except ValueError:  # a null character
        raise UsageError("cannot write: this is not a path", path=repr(str(out))) from None
    try:
        with alone(locked):
            yield
    finally:
        for folder in missing:  # inner ones first; they are empty only if nothing was written
            with contextlib.suppress(OSError):
                folder.rmdir()
