"""How a folder of networks becomes a package of a build system, and which cores each system supports.

All systems render the same description: sources, include folders, flags of the core, defines, weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from buildtool.api.bundling import example_folder
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import System

ANY = "any"  # plain C for every core
_ARM = ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m23", "cortex-m33")
_HELIUM = ("cortex-m52", "cortex-m55", "cortex-m85")
_CHECK = ("nn_check.c", "nn_check.h")


class Package(NamedTuple):
    """A build system's package: its title, its templates by their names in the folder, and its cores."""

    title: str
    templates: tuple[str, ...]
    cores: tuple[str, ...] = ()  # (): every core


PACKAGES: Mapping[System, Package] = {
    System.PLAIN: Package("any build", ("sources.mk", "CMakeLists.txt", "nn_sections.ld")),
    System.RIOT: Package(
        "RIOT",
        ("Makefile", "Makefile.dep", "Makefile.include", "example/Makefile", "example/main.c"),
        (ANY, *_ARM, "riscv", "xtensa"),
    ),
    System.PICO: Package(
        "pico-sdk",
        ("CMakeLists.txt", "example/CMakeLists.txt", "example/main.c"),
        (ANY, "cortex-m0", "cortex-m0plus", "cortex-m33", "riscv"),
    ),
    System.IDF: Package(
        "ESP-IDF",
        (
            "CMakeLists.txt",
            "idf_component.yml",
            "example/CMakeLists.txt",
            "example/main/CMakeLists.txt",
            "example/main/main.c",
        ),
        (ANY, "riscv", "xtensa"),
    ),
    System.ZEPHYR: Package(
        "Zephyr",
        (
            "zephyr/module.yml",
            "zephyr/CMakeLists.txt",
            "zephyr/Kconfig",
            "example/CMakeLists.txt",
            "example/prj.conf",
            "example/main.c",
        ),
        (ANY, *_ARM, *_HELIUM, "riscv", "xtensa"),
    ),
    System.CMSIS_PACK: Package(
        "CMSIS-Pack",
        (
            "buildtool.networks.pdsc",
            "networks.clayer.yml",
            "example/example.csolution.yml",
            "example/example.cproject.yml",
            "example/main.c",
        ),
        (ANY, *_ARM, *_HELIUM),
    ),
}


# Of pico-sdk: the values of PICO_PLATFORM with a core.
_PLATFORMS = {
    "cortex-m0": ("rp2040",),
    "cortex-m0plus": ("rp2040",),
    "cortex-m33": ("rp2350-arm-s",),
    "riscv": ("rp2350-riscv",),
}
# Of ESP-IDF: the chips of our boards.
_TARGETS = {
    **{"esp32": "esp32", "esp32-s3": "esp32s3", "esp32-s3-psram": "esp32s3"},
    **{"esp32-c3": "esp32c3", "esp32-c6": "esp32c6"},
}
# The symbols of Zephyr's Kconfig that cores select, if they are not CPU_ and the core's name.
_SYMBOLS = {ANY: "", "riscv": "RISCV", "xtensa": "XTENSA"}
_V6M = ("cortex-m0", "cortex-m0plus")  # of the same instructions


def facts_of(board: str, core: str) -> dict[str, Any]:
    """Returns variables for the templates: the names that build systems give to a core and to a board.

    The names are "" for the core ANY.
    """
    cores = _V6M if core in _V6M else (core,)
    names = [one.removeprefix("cortex-").upper() for one in cores if one.startswith("cortex-")]
    symbols = [f"CPU_CORTEX_{name}" for name in names] or [_SYMBOLS.get(core, "")]
    mve = ("MVE", "FP_MVE") if core in _HELIUM else ()
    return {
        "core": core,
        "cores": [*cores, *(f"{one}f" for one in cores)],
        "platforms": _PLATFORMS.get(core, ()),
        "targets": [_TARGETS[board]] if board in _TARGETS else [],
        "depends": " || ".join(symbols) + " && ARMV8_1_M_MVEI" * bool(mve),
        "dcores": ["Cortex-" + name.replace("PLUS", "+") for name in names] or ["Cortex-M*"],
        "mve": mve,
        "device": "ARMC" + names[-1].replace("PLUS", "P") if names else "ARMCM0",
    }


def templates_of(system: System) -> dict[str, str]:
    """Returns the files of a folder that list all its networks: name of the file -> name of its template.

    The name of a template for C ends in .jinja, because it is not valid C.
    """
    here = "" if system is System.PLAIN else f"{system}/"
    files = {"README.md": "README.md"} | {name: here + name for name in PACKAGES[system].templates}
    if system is not System.PLAIN:
        files |= {f"{example_folder(system)}/{name}": name for name in _CHECK}
    return {name: path + ".jinja" * path.endswith(".c") for name, path in files.items()}


def core_of(flags: Sequence[str]) -> str:
    """Returns the core that the compiler's flags select: a Cortex-M's name, riscv, riscv-v, xtensa, or ANY.

    riscv-v is RISC-V with the vector extension. No build system here supports a board with such a core.
    """
    for flag in flags:
        if flag.startswith("-mcpu="):
            return flag.removeprefix("-mcpu=").partition("+")[0]
        if flag.startswith("-march=rv"):
            base, *extensions = flag.removeprefix("-march=rv").split("_")
            has_vectors = "v" in base or any(name.startswith("zve") for name in extensions)
            return "riscv-v" if has_vectors else "riscv"
    return "xtensa" if flags else ANY


def refuse_core(system: System, board: str, core: str) -> None:
    """Raises UsageError if the build system has no such core."""
    package = PACKAGES[system]
    if package.cores and core not in package.cores:
        raise UsageError(
            f"{package.title} does not support the core of '{board}' ({core})",
            option="board",
            hint=suggest("plain C for every core", board="host"),
        )
