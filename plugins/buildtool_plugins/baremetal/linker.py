"""Linker scripts for bare-metal boards, for ld.lld and GNU ld alike."""

from __future__ import annotations

from buildtool.target import partitions
from buildtool.target.hardware import MemoryKind
from buildtool.target.types import Board

STACK_GUARD_BYTES = 256  # below the stack; the Cortex-M start-up code knows the size


def _place(board: Board) -> str:
    """Weights that follow the firmware begin with an erase block: its place in a linker script."""
    memory = board.memory(board.weights)
    if partitions.weights_start(board) is not None or not memory.erase:
        return ""
    *blocks, (_, last) = partitions.blocks_after(memory)
    choice = f"ALIGN(__code_end, {last:#x})"
    for end, block in reversed(blocks):
        choice = f"__code_end <= {memory.base + end:#x} ? ALIGN(__code_end, {block:#x}) : {choice}"
    return f"({choice}) "


def _second_arena(board: Board) -> str:
    """The section of an arena's second part, which lies in another memory; nothing where there is none."""
    if not board.second:
        return ""
    return f"""\
    .nn_second_arena (NOLOAD) : ALIGN({max(board.alignment, 16)})
    {{
        __nn_second_arena_start = .;
        *(.nn_second_arena .nn_second_arena.* .bss.nn_second_arena .bss.nn_second_arena.*)
        __nn_second_arena_end = .;
    }} > {board.second} :NONE
"""


def linker_script(board: Board, *, guard_bytes: int = STACK_GUARD_BYTES) -> str:
    """The script of a board: one region for each memory, sections by the board's roles.

    `guard_bytes`: aligned bytes below the stack, a power of two, or 0 where an overflow leaves the memory
    anyway. The stack lies at the low end of `data`, so that an overflow leaves the memory instead of
    overwriting globals; cores that can forbid access to the guard do. Xtensa's .literal lies before its code.
    Weights begin at the boundary of an erase block. .nn_state is a network's state between invokes. Sections
    without contents are in no segment, so that a loader leaves them alone.
    """
    found = partitions.regions(board)
    # The title does not end the comment, and is UTF-8 whatever a file's name is.
    title = f"{board.name}: {board.title}".replace("*/", "* /").encode("utf-8", "replace").decode()
    regions = "\n".join(
        f"    {region.name} ({'rwx' if region.memory.kind is MemoryKind.RAM else 'rx'}) :"
        f" ORIGIN = {region.origin:#010x}, LENGTH = {region.size:#x}"
        for region in found
    )
    return f"""\
/* {title} */
ENTRY(reset_handler)

MEMORY
{{
{regions}
}}

PHDRS
{{
    code PT_LOAD FLAGS(5);
    weights PT_LOAD FLAGS(4);
    data PT_LOAD FLAGS(6);
}}

SECTIONS
{{
    .text :
    {{
        KEEP(*(.vectors))
        *(.literal .literal.* .text .text.*)
    }} > {board.code} :code
    .rodata :
    {{
        *(.rodata .rodata.*)
        . = ALIGN(4);
    }} > {board.code} :code

    .stack (NOLOAD) : ALIGN({max(guard_bytes, 16)})
    {{
        __stack_guard = .;
        . += {guard_bytes};
        __stack_bottom = .;
        . += {board.stack_bytes};
        __stack_top = .;
    }} > {board.data} :NONE
    .data : ALIGN(8)
    {{
        __data_start = .;
        *(.data .data.*)
        . = ALIGN(4);
        __data_end = .;
    }} > {board.data} AT> {board.code} :data
    __data_load = LOADADDR(.data);
    __code_end = __data_load + SIZEOF(.data);

    .nn_weights {_place(board)}: AT(ADDR(.nn_weights))
    {{
        __nn_weights_start = .;
        *(.nn_weights .nn_weights.*)
    }} > {partitions.weights_region(board).name} :weights

    .nn_arena (NOLOAD) : ALIGN({max(board.alignment, 16)})
    {{
        __nn_arena_start = .;
        *(.nn_arena .nn_arena.* .bss.nn_arena .bss.nn_arena.*)
        __nn_arena_end = .;
    }} > {board.arena} :NONE
{_second_arena(board)}    .nn_state (NOLOAD) :
    {{
        *(.nn_state .nn_state.* .bss.nn_state .bss.nn_state.*)
    }} > {board.data} :NONE

    .bss (NOLOAD) : ALIGN(8)
    {{
        __bss_start = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(4);
        __bss_end = .;
    }} > {board.data} :NONE

    /DISCARD/ :
    {{
        *(.ARM.exidx .ARM.exidx.* .ARM.extab .ARM.extab.* .eh_frame .eh_frame_hdr)
    }}
}}
"""
