"""A step's digest changes only with data that the step reads."""

import dataclasses
from pathlib import Path

import pytest

from buildtool.target import digest, registry
from buildtool.target.types import Contract, Windows

TARGET = registry.load_target("cortex-m4")
STEPS = {
    "plan": digest.planning_digest,
    "emit": digest.emitting_digest,
    "pack": digest.packing_digest,
}


def kernel(**fields):
    """Returns the target with its first kernel changed."""
    first, *others = TARGET.kernels
    return dataclasses.replace(TARGET, kernels=(dataclasses.replace(first, **fields), *others))


def routine(**fields):
    first, *others = TARGET.routines
    return dataclasses.replace(TARGET, routines=(dataclasses.replace(first, **fields), *others))


def board(**fields):
    return dataclasses.replace(TARGET, board=dataclasses.replace(TARGET.board, **fields))


def memory(name, **fields):
    board_ = TARGET.board
    changed = [dataclasses.replace(m, **fields) if m.name == name else m for m in board_.memories]
    return board(memories=tuple(changed))


def core(**fields):
    return board(core=dataclasses.replace(TARGET.board.core, **fields))


CALL = TARGET.kernels[0].call[::-1]
CHANGES = {
    "alignment": (board(alignment=32), "plan"),
    "reserved": (board(reserved_bytes=64), "plan"),
    "arena's size": (memory(TARGET.board.arena, size=1 << 20), "plan"),
    "weights' bandwidth": (memory(TARGET.board.weights, bandwidth=1000), "plan"),
    "stack elsewhere": (board(stack_bytes=8192), ""),
    "arena's base": (memory(TARGET.board.arena, base=0x30000000), ""),
    "weights' size": (memory(TARGET.board.weights, size=1 << 20), ""),
    "title": (board(title="another"), ""),
    "name": (board(name="another"), ""),
    "emulator": (board(emulator=None), ""),
    "toolchains": (board(toolchains=("gcc",)), ""),
    "flags": (core(cflags=("-mcpu=cortex-m7",)), "emit"),  # the header states recorded stacks
    "defines": (core(defines=("X",)), ""),
    "cost": (kernel(cost="1"), "plan"),
    "costs": (dataclasses.replace(TARGET, costs=dataclasses.replace(TARGET.costs, move="7")), "plan"),
    "scratch": (kernel(scratch="1"), "plan"),
    "when": (kernel(when="False"), "plan"),
    "overlap": (kernel(overlap=Contract.NONE), "plan"),
    "windows": (kernel(windows=Windows.WHOLE), "plan"),
    "slices": (kernel(slices="batch == 1"), "plan"),
    "constants": (kernel(constants="16"), "plan pack"),
    "call": (kernel(call=CALL), "plan emit pack"),
    "symbol": (kernel(symbol="other"), "emit"),
    "headers": (kernel(headers=("other.h",)), "emit"),
    "packing": (kernel(packing="other"), "pack"),
    "packer": (kernel(packer=Path("/elsewhere/packing.py")), ""),
    "sources": (kernel(sources=("reference/other.c",)), ""),
    "routine's symbol": (routine(symbol="other"), "emit"),
    "routine's sources": (routine(sources=("reference/other.c",)), ""),
    "families elsewhere": (dataclasses.replace(TARGET, families=()), ""),
    "order of kernels": (dataclasses.replace(TARGET, kernels=TARGET.kernels[::-1]), "plan emit pack"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_step_s_digest_changes_with_what_the_step_reads_and_with_nothing_else(what):
    changed, steps = CHANGES[what]
    assert {step for step, digest_of in STEPS.items() if digest_of(changed) != digest_of(TARGET)} == set(
        steps.split()
    )


def test_the_steps_have_digests_of_their_own_and_the_stack_counts_beside_the_arena():
    assert len({digest_of(TARGET) for digest_of in STEPS.values()}) == len(STEPS)
    stack_in_arena = board(data=TARGET.board.arena)
    assert digest.planning_digest(stack_in_arena) != digest.planning_digest(TARGET)
