"""nn_sections.ld: where weights and arenas lie, for a GNU linker script."""

from __future__ import annotations

from buildtool.fronts.bundles.types import Folder

_TEXT = """\
/* The sections of the networks, for the linker script of an application (GNU ld, ld.lld). It is needed where
 * weights or arenas lie in memories of their own. Name those before SECTIONS, and include this file in it,
 * before the sections that take .rodata and .bss:
 *
 *     REGION_ALIAS("NN_WEIGHTS", FLASH)
 *     REGION_ALIAS("NN_ARENA", RAM)
 *     SECTIONS
 *     {{
 *         ...
 *         INCLUDE nn_sections.ld
 *
 * The linker finds it by -L with its folder, before -T.
 *
 * Weights: {weights} bytes. Arenas: {arenas}. An array that is to lie in NN_ARENA has a section whose name
 * begins with .bss.nn_arena; nothing has to clear it. */
.nn_weights : ALIGN(16)
{{
    *(.nn_weights .nn_weights.*)
}} > NN_WEIGHTS
.nn_arena (NOLOAD) : ALIGN({alignment})
{{
    *(.nn_arena .nn_arena.* .bss.nn_arena .bss.nn_arena.*)
}} > NN_ARENA
"""


_SECOND = """\
/* Of networks whose arena is in two memories: name the other one by REGION_ALIAS("NN_SECOND_ARENA", DTCM). */
.nn_second_arena (NOLOAD) : ALIGN({alignment})
{{
    *(.nn_second_arena .nn_second_arena.* .bss.nn_second_arena .bss.nn_second_arena.*)
}} > NN_SECOND_ARENA
"""


def sections(folder: Folder) -> bytes:
    """The file's text."""
    arenas = ", ".join(f"{network['arena_bytes']} bytes for {net}" for net, network in folder.each)
    alignment = max(network["arena_alignment"] for _, network in folder.each)
    spread = any(network.get("second_arena_bytes") for _, network in folder.each)
    text = _TEXT.format(
        weights=sum(network["weights_bytes"] for _, network in folder.each),
        arenas=arenas,
        alignment=alignment,
    )
    return (text + (_SECOND.format(alignment=alignment) if spread else "")).encode()
