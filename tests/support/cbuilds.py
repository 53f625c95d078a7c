"""Compilers and flags with which all C of the project must compile without a warning."""

from __future__ import annotations

import shutil

import pytest

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
_M4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-ffreestanding")
_M55 = ("-mcpu=cortex-m55", "-mfloat-abi=hard", "-ffreestanding")
BUILDS = {
    "gcc host": ("gcc",),
    "clang host": ("clang-22",),
    "gcc cortex-m4": ("arm-none-eabi-gcc", "-mthumb", *_M4),
    "gcc cortex-m55": ("arm-none-eabi-gcc", "-mthumb", *_M55),
    "clang cortex-m4": ("clang-22", "--target=thumbv7em-none-eabihf", *_M4),
    "clang cortex-m55": ("clang-22", "--target=thumbv8.1m.main-none-eabihf", *_M55),
}


def need(program: str) -> str:
    """A program's path; skips the test, naming it, where it is not installed."""
    found = shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not installed")
    return found
