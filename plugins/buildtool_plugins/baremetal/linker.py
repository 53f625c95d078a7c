"""Writes linker scripts for bare-metal boards, for both ld.lld and GNU ld."""

from __future__ import annotations

import re

from buildtool.target import partitions
from buildtool.target.hardware import MemoryKind
from buildtool.target.types import Board

STACK_GUARD_BYTES = 256  # below the stack; the Cortex-M start-up code has the same size


_SCRIPT = """\
/* @title@ */
ENTRY(reset_handler)

MEMORY
{
@regions@
}

PHDRS
{
@headers@    code PT_LOAD FLAGS(5);
    weights PT_LOAD FLAGS(4);
    data PT_LOAD FLAGS(6);
}

SECTIONS
{
@kernels@    .text :
    {
        KEEP(*(.vectors))
        *(.literal .literal.* .text .text.*)
    } > @code@ :code
    .rodata :
    {
        *(.rodata .rodata.*)
        . = ALIGN(4);
    } > @code@ :code

    .stack (NOLOAD) : ALIGN(@stack_alignment@)
    {
        __stack_guard = .;
        . += @guard_bytes@;
        __stack_bottom = .;
        . += @stack_bytes@;
        __stack_top = .;
    } > @data@ :NONE
    .data : ALIGN(8)
    {
        __data_start = .;
        *(.data .data.*)
        . = ALIGN(4);
        __data_end = .;
    } > @data@ AT> @code@ :data
    __data_load = LOADADDR(.data);
    __code_end = __data_load + SIZEOF(.data);

@weights@
@arenas@    .nn_state (NOLOAD) :
    {
        *(.nn_state .nn_state.* .bss.nn_state .bss.nn_state.*)
    } > @data@ :NONE

    .bss (NOLOAD) : ALIGN(8)
    {
        __bss_start = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(4);
        __bss_end = .;
    } > @data@ :NONE

    /DISCARD/ :
    {
        *(.ARM.exidx .ARM.exidx.* .ARM.extab .ARM.extab.* .eh_frame .eh_frame_hdr)
    }
}
"""
# Kernels that run from a RAM. The names of their files begin with nn_; linkers write those in archives with a
# colon. The code that copies them is `.text.boot.*`, behind the vectors.
_KERNELS_HEADERS = "    boot PT_LOAD FLAGS(5);\n    kernels PT_LOAD FLAGS(5);\n"
_KERNELS = """\
    .boot :
    {
        KEEP(*(.vectors))
        *(.text.boot.*)
    } > @code@ :boot
    .nn_kernels : ALIGN(16)
    {
        __nn_kernels_start = .;
        *nn_*.o(.text .text.*)
        *nn_*.obj(.text .text.*)
        *:nn_*.o(.text .text.*)
        *:nn_*.obj(.text .text.*)
        *(.text.memcpy .text.memmove .text.memset .text.__aeabi_mem*)
        . = ALIGN(4);
        __nn_kernels_end = .;
    } > @kernels@ AT> @code@ :kernels
    __nn_kernels_load = LOADADDR(.nn_kernels);

"""
_WEIGHTS = """\
    .nn_weights @place@: AT(ADDR(.nn_weights))
    {
        __nn_weights_start = .;
        *(.nn_weights .nn_weights.*)
    } > @weights@ :weights
"""
_COPIED_WEIGHTS = """\
    .nn_weights : ALIGN(16)
    {
        __nn_weights_start = .;
        *(.nn_weights .nn_weights.*)
        . = ALIGN(4);
        __nn_weights_end = .;
    } > @weights@ AT> @code@ :weights
    __nn_weights_load = LOADADDR(.nn_weights);
"""
_ARENA = """\
    .@section@ (NOLOAD) : ALIGN(@alignment@)
    {
        __@section@_start = .;
        *(.@section@ .@section@.* .bss.@section@ .bss.@section@.*)
        __@section@_end = .;
    } > @memory@ :NONE
"""


def _weights_start(board: Board) -> str:
    """Returns the address of .nn_weights in linker script syntax, for weights that follow the firmware in
    flash.

    The weights begin at the first erase block after the firmware. If their memory has no erase blocks, the
    text is "", and they follow the firmware directly.
    """
    memory = board.memory(board.weights)
    if partitions.weights_start(board) is not None or not memory.erase:
        return ""
    *blocks, (_, last) = partitions.blocks_after(memory)
    choice = f"ALIGN(__code_end, {last:#x})"
    for end, block in reversed(blocks):
        choice = f"__code_end <= {memory.base + end:#x} ? ALIGN(__code_end, {block:#x}) : {choice}"
    return f"({choice}) "


def linker_script(board: Board, guard_bytes: int = STACK_GUARD_BYTES, *, copies_weights: bool) -> str:
    """Returns the linker script of a board: one region for each memory, sections by the board's roles.

    The stack lies at the low end of `data`, so that an overflow leaves the memory and does not overwrite
    globals. Below it is a guard of `guard_bytes` (a power of two, or 0), aligned to its size; cores that can
    forbid access to the guard do so. Xtensa's .literal lies before its code. Weights begin at the boundary of
    an erase block. What start-up code copies into a RAM (kernels, weights) is stored with the code. .nn_state
    is a network's state between invokes. Sections without contents are not in a segment, so that a loader
    does not write them.
    """
    regions = (
        f"    {region.name} ({'rwx' if region.memory.kind is MemoryKind.RAM else 'rx'}) :"
        f" ORIGIN = {region.origin:#010x}, LENGTH = {region.size:#x}"
        for region in partitions.regions(board)
    )
    sections = zip(("nn_arena", "nn_second_arena"), board.holders, strict=False)
    alignment = max(board.alignment, 16)
    arenas = (
        _fill_template(_ARENA, section=section, memory=memory, alignment=alignment)
        for section, memory in sections
    )
    kernels = _fill_template(_KERNELS, code=board.code, kernels=board.kernels) if board.kernels else ""
    return _fill_template(
        _SCRIPT,
        headers=_KERNELS_HEADERS if kernels else "",
        kernels=kernels,
        # The title must not end the comment, and must be valid UTF-8 for any file name.
        title=f"{board.name}: {board.title}".replace("*/", "* /").encode("utf-8", "replace").decode(),
        regions="\n".join(regions),
        code=board.code,
        data=board.data,
        weights=_fill_template(
            _COPIED_WEIGHTS if copies_weights else _WEIGHTS,
            weights=partitions.weights_region(board).name,
            place=_weights_start(board),
            code=board.code,
        ),
        arenas="".join(arenas),
        stack_alignment=max(guard_bytes, 16),
        guard_bytes=guard_bytes,
        stack_bytes=board.stack_bytes,
    )


def _fill_template(template: str, **values: str | int) -> str:
    """Returns the template with its @words@ replaced by `values`."""
    return re.sub(r"@(\w+)@", lambda word: str(values[word[1]]), template)
