"""README.md: one page on how a folder of networks is compiled, linked and called."""

from __future__ import annotations

from buildtool.fronts.bundles.cmake import library
from buildtool.fronts.bundles.types import Folder
from buildtool.schema.builds import BundledNetwork

_TEXT = """\
# Networks for {board}

Made by buildtool; changes are lost at its next run. Nothing here needs buildtool. All files and flags are
listed in `sources.json`. The examples take this folder to be called `networks`.

| network | header | arena | weights | stack of an invoke | image |
| --- | --- | --- | --- | --- | --- |
{rows}

Memory is in bytes. The arena is RAM that the application gives; the weights are read-only. The stack is that
of the compilers that buildtool has figures of, with `-O3`; interrupts and call-backs come on top.
{states}
## Calls

```c
#include "{net}.h"

{macro}_DEFINE_ARENA(arena);
{second}
nn_status run(void) {{
    nn_status status = {net}_init(arena, sizeof arena,{given} {net}_weights); /* once */
{calls}
    return status; /* NN_OK: the result is at {net}_output(0) */
}}
```

The comments in `networks/{net}/{net}.h` say what every function does. C++ includes the same header.

## Flags

- The core: {core}
- With every compiler, for results that equal the reference to the bit: `{exact}`.
- C99 with GNU extensions (`-std=gnu99` or later), by GCC, clang or what is made of them. Use `-O2` or `-O3`.
- Of the C library: `memcpy`, `memmove` and `memset`. There is no heap and no file.
- Weights: `NET_weights.S` takes `NET_weights.bin` in by `.incbin`, found through `-I`. Where the assembler is
  not GNU's, leave this file out and define `NN_WEIGHTS_IN_C` for `NET_weights.c`.

## Make

```make
include networks/sources.mk
CPPFLAGS += $(NN_INCLUDES)

build/nn/%.c.o: $(NN_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(NN_CFLAGS) $(NN_CPPFLAGS) -MMD -MP -c $< -o $@
build/nn/%.S.o: $(NN_DIR)/%.S
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(NN_CPPFLAGS) -c $< -o $@
$(filter %_weights.S.o,$(addprefix build/nn/,$(NN_OBJECTS))): build/nn/%.S.o: $(NN_DIR)/%.bin
build/libnn.a: $(addprefix build/nn/,$(NN_OBJECTS))
	rm -f $@ && $(AR) rcs $@ $^
-include $(addprefix build/nn/,$(NN_OBJECTS:.o=.d))
```

`NN_CORE` has the flags of the core. Make reads no blanks in the names of folders.

## CMake

```cmake
add_subdirectory(networks)
target_link_libraries(app PRIVATE {library})
```

`-DNN_WEIGHTS_IN_C=ON` takes the weights as C. The project's toolchain selects the core.

## An IDE, Zephyr, ESP-IDF

Add every `.c` and `.S` file below `kernels` and `networks` (each `NET_weights.c` is empty unless
`NN_WEIGHTS_IN_C` is defined). Include folders and flags are in `sources.json`. Zephyr and ESP-IDF call the
CMakeLists.txt of this folder from a file of three lines: docs/zephyr-esp-idf.md of buildtool has it.

## Memories

By default the weights are constants and the arena is a variable like others. `nn_sections.ld` is for a linker
script that has memories of their own for them; an arena goes there by
`{macro}_DEFINE_ARENA_IN(arena, ".bss.nn_arena")`.

## Several networks

`buildtool build MODEL --board {board} --name NAME --bundle --out FOLDER` puts another network beside these.
They share the kernels, so a program takes one such folder. Networks that never run at the same time may share
one arena, which is as large as the largest; call `NAME_init` again after another one has run, but never that
of a network with state: it would reset it.
{licenses}"""


def readme(folder: Folder) -> bytes:
    """The page's text."""
    net, first = next(folder.each)
    rows = "\n".join(_row(name, network) for name, network in folder.each)
    core = " ".join([*first["core"], *(f"-D{define}" for define in first["defines"])])
    return _TEXT.format(
        board=first["board"],
        rows=rows,
        net=net,
        library=library(net),
        macro=net.upper(),
        states="".join(_state(name, network) for name, network in folder.each),
        calls="\n".join(_calls(net, first)),
        second=_second(net, first),
        given=" second, sizeof second," if first.get("second_arena_bytes") else "",
        core=f"`{core}`. Kernels are written for it."
        if core
        else "any little-endian one of 32 bits or more.",
        exact=" ".join(first["exact"]),
        licenses=_licenses(folder),
    ).encode()


def _row(net: str, network: BundledNetwork) -> str:
    stack = network["stack_bytes"]
    cells = [
        f"`{net}`",
        f"`{network['sources'][0].removesuffix('.c')}.h`",
        _arenas(network),
        f"{network['weights_bytes']:,}",
        "not known" if stack is None else f"{stack:,}",
        "row by row" if network["streamed"] else "whole",
    ]
    return f"| {' | '.join(cells)} |"


def _arenas(network: BundledNetwork) -> str:
    """The size of the arena, or of both."""
    second = network.get("second_arena_bytes")
    return f"{network['arena_bytes']:,}{f' and {second:,}' if second else ''}"


def _state(net: str, network: BundledNetwork) -> str:
    """What a network keeps between invokes, and who resets it."""
    size = network.get("state_bytes")
    if not size:
        return ""
    return f"""
`{net}` keeps {size:,} bytes between invokes: its own array, beside the arena (section `.bss.nn_state`, or
`{net.upper()}_STATE_SECTION`). `{net}_init` gives it its first values, so init is called once;
`{net}_reset` does where a new sequence begins. Other networks may use the arena in between.
"""


def _second(net: str, network: BundledNetwork) -> str:
    """The line that defines a second arena, in another memory of the board."""
    if not network.get("second_arena_bytes"):
        return ""
    return f'{net.upper()}_DEFINE_SECOND_ARENA_IN(second, ".bss.nn_second_arena");\n'


def _calls(net: str, network: BundledNetwork) -> list[str]:
    """What stands between init and the result."""
    if network["streamed"]:
        before = [f"    {net}_set_row_source(deliver, NULL); /* it writes a row, and returns 0 */"]
    else:
        before = [f"    /* if it is NN_OK: write {net.upper()}_INPUT0_BYTES bytes to {net}_input(0) */"]
    return [
        *before,
        "    if (status == NN_OK) {",
        f"        status = {net}_invoke();",
        "    }",
    ]


def _licenses(folder: Folder) -> str:
    """Under what the copied files stand."""
    lines = []
    for one in folder.licenses:
        what = one["spdx"] or "license not stated"
        where = f", text in `{one['text']}`" if one["text"] else ""
        lines.append(f"- {', '.join(f'`{name}`' for name in one['folders'])}: {what}{where}")
    return "\n## Licenses\n\n" + "\n".join(lines) + "\n"
