"""The files that describe a folder of networks: what `templates/` makes of the networks' descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import buildtool
from buildtool.schema import SCHEMA
from buildtool.schema.builds import BundledNetwork, License

LISTING = "sources.json"
TEMPLATES = ("sources.mk", "CMakeLists.txt", "nn_sections.ld", "README.md")
COMMON = (LISTING, *TEMPLATES)  # what names all networks of a folder
_COLUMNS = 100  # of an array's lines
_TAKEN = frozenset(
    "all clean edit_cache help install list_install_components nn_kernels package "
    "package_source rebuild_cache test".split()
)


def texts(networks: Mapping[str, BundledNetwork]) -> dict[str, bytes]:
    """The files that name all networks of a folder; the listing comes first."""
    every = dict(sorted(networks.items()))
    first, common = next(iter(every.items()))
    listed: dict[str, Any] = {
        "schema": SCHEMA,
        "buildtool": buildtool.__version__,
        **{name: common[name] for name in ("board", "core", "exact", "defines")},
        "include": list(dict.fromkeys(_all(every, "include"))),
        "include_kernels": sorted({*_all(every, "include_kernels")}),
        "sources": sorted({*_all(every, "kernels"), *_all(every, "sources")}),
        "assembly": [network["assembly"] for network in every.values()],
        "arrays": [network["array"] for network in every.values()],
        "licenses": _licenses(every),
        "networks": every,
    }
    given = {
        **listed,
        "first": first,
        "common": common,
        "kernels": sorted({*_all(every, "kernels")}),
        "sources": _all(every, "sources"),
        "weights": [network["weights"] for network in every.values()],
        "alignment": max(network["arena_alignment"] for network in every.values()),
        "second_arenas": any(network.get("second_arena_bytes") for network in every.values()),
    }
    found = {LISTING: (json.dumps(listed, indent=1) + "\n").encode()}
    return found | {name: _made(name, given) for name in TEMPLATES}


def array(net: str, image: bytes) -> bytes:
    """NET_weights.c: the weight image as a C array, for toolchains whose assembler is not GNU's."""
    lines, line = [], ""
    for number in map(str, image):
        if len(line) + len(number) + 1 > _COLUMNS:
            lines.append(line)
            line = ""
        line += number + ","
    return _made("weights.c.jinja", {"net": net, "body": "\n".join([*lines, line])})


def _made(name: str, given: Mapping[str, object]) -> bytes:
    environment = Environment(
        loader=PackageLoader("buildtool.fronts.bundles"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": "{:,}".format,
        "define": "-D{}".format,
        "here": "${{CMAKE_CURRENT_SOURCE_DIR}}/{}".format,
        "library": _library,
        "lines": _lines,
        "quoted": json.dumps,
    }
    return environment.get_template(name).render(given).encode()


def _library(net: str) -> str:
    """The name of a network's target for CMake: its own, unless CMake has one of that name."""
    return f"{net}_network" if net in _TAKEN else net


def _lines(names: list[str]) -> str:
    """Names as a list that make reads, one a line where there are several."""
    return names[0] if len(names) == 1 else "".join(f"\\\n    {name} " for name in names).rstrip()


def _all(networks: Mapping[str, BundledNetwork], key: str) -> list[str]:
    """What the networks list under a key, in their order."""
    return [name for network in networks.values() for name in network[key]]  # type: ignore[literal-required]


def _licenses(networks: Mapping[str, BundledNetwork]) -> list[License]:
    """Those of all networks, each text once."""
    found: dict[tuple[str, str], set[str]] = {}
    for network in networks.values():
        for one in network["licenses"]:
            found.setdefault((one["text"], one["spdx"]), set()).update(one["folders"])
    return [
        {"spdx": spdx, "text": text, "folders": sorted(names)}
        for (text, spdx), names in sorted(found.items())
    ]
