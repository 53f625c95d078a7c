"""Writes the checks that a network runs in the field: of guard words beside its arenas, and of the output for
a golden input.

kernels/include/nn_guard.h and nn_golden.h have the parts in C that do not depend on the network.
"""

from __future__ import annotations

import zlib

from buildtool.base.modes import Guards
from buildtool.emit.ctext import numbers
from buildtool.emit.golden import Checks, Golden
from buildtool.emit.network import Network

# ---- guards ---------------------------------------------------------------------------------------------


def arena_bytes(network: Network) -> tuple[int, ...]:
    """Returns the bytes of each arena, including its guards."""
    return tuple(size + 2 * guard_bytes(network) for size in network.plan.arenas)


def guard_bytes(network: Network) -> int:
    """Returns the bytes of a guard, which are the arena's alignment; 0 without guards."""
    return 0 if network.checks.guards is Guards.NONE else network.alignment


def headers(checks: Checks) -> list[str]:
    """Returns the names of the headers that the checks need."""
    names = {"nn_golden.h": checks.golden is not None, "nn_guard.h": checks.guards is not Guards.NONE}
    return [name for name, is_needed in names.items() if is_needed]


def prototypes(network: Network) -> str:
    """Returns the prototypes of the functions for the checks; "" without checks."""
    net, text = network.net, ""
    if network.checks.guards is not Guards.NONE:
        also = "\n * Each invoke ends with it." * (network.checks.guards is Guards.INVOKE)
        text += f"""
/* NN_ERROR_GUARD if a guard word before or after an arena was overwritten; init writes them.{also} */
nn_status {net}_check_guards(void);
"""
    if network.checks.golden is not None:
        resets = ", and the state is reset" * _has_reset(network)
        text += f"""
/* Checks the weights again, and runs the network on its golden input: NN_ERROR_GOLDEN if the output
 * is not the reference's, NN_ERROR_GOLDEN_WEIGHTS if init was given other weights than those built
 * with the firmware. Inputs and outputs are lost{resets}. */
nn_status {net}_self_test(void);
"""
    return text


def take_arena(network: Network, name: str, memory: str, macro: str) -> str:
    """Returns the C statement with which init stores the address of an arena, after its guard.

    `name` is the variable, `memory` C for the address, `macro` that for the arena's size.
    """
    if network.checks.guards is Guards.NONE:
        return f"        {name} = {memory};\n"
    return f"        {name} = nn_guard_set({memory}, {macro}, {network.macro}_ARENA_ALIGNMENT);\n"


def functions(network: Network) -> str:
    """Returns the functions for the checks; "" without checks. The functions of the interface must precede
    them.
    """
    checks = network.checks
    guards = _check_guards(network) if checks.guards is not Guards.NONE else ""
    return guards + (_self_test(network, checks.golden) if checks.golden is not None else "")


def invoked(network: Network) -> str:
    """Returns C for the value that an invoke returns at its end."""
    is_checked = network.checks.guards is Guards.INVOKE
    return f"{network.net}_check_guards()" if is_checked else "NN_OK"


def _check_guards(network: Network) -> str:
    net, macro = network.net, network.macro
    names = [("own_arena", "ARENA_BYTES"), ("own_second_arena", "SECOND_ARENA_BYTES")]
    tests = "".join(
        f"    if (!nn_guard_holds({name}, {macro}_{size}, {macro}_ARENA_ALIGNMENT)) {{\n"
        "        return NN_ERROR_GUARD;\n    }\n"
        for name, size in names[: len(network.plan.arenas)]
    )
    return f"""
nn_status {net}_check_guards(void) {{
    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
{tests}    return NN_OK;
}}
"""


# ---- the self-test --------------------------------------------------------------------------------------


def _has_reset(network: Network) -> bool:
    return bool(network.plan.states) or network.plan.hop is not None


def _self_test(network: Network, golden: Golden) -> str:
    net, macro = network.net, network.macro
    reset = f"    (void){net}_reset();\n" * _has_reset(network)
    outputs = "".join(
        f"    crc = nn_crc32(crc, {net}_output({i}), {macro}_OUTPUT{i}_BYTES, NULL);\n"
        for i in range(len(network.graph.outputs))
    )
    before, after = "", ""
    if network.is_streamed:
        before = """\
    nn_row_source *const source = row_source;
    void *const context = row_context;
    row_source = golden_row;
"""
        after = "    row_source = source;\n    row_context = context;\n"
    return f"""
{_golden_input(network, golden)}nn_status {net}_self_test(void) {{
    if (running != 0U) {{
        return NN_ERROR_BUSY;
    }}
    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
    running = 1;
{_check_weights(network)}
    running = 0;
    if (status != NN_OK) {{
        return status;
    }}
    if (payload_crc32 != 0x{zlib.crc32(network.image.data[64:]):08X}U) {{
        return NN_ERROR_GOLDEN_WEIGHTS;
    }}
{reset}{_write_inputs(network, golden)}{before}    status = {net}_invoke();
{after}    if (status != NN_OK) {{
        return status;
    }}
    uint32_t crc = 0;
{outputs}{reset}    return crc == 0x{golden.crc32:08X}U ? NN_OK : NN_ERROR_GOLDEN;
}}
"""


def _check_weights(network: Network) -> str:
    """Returns lines that check the weights as init does: they set `status` to the result, and set
    `payload_crc32`.
    """
    size = network.plan.arenas[0]
    if not network.plan.loads:
        return f"""\
    nn_status status = nn_image_check_with(weights, &image_kind, own_arena, {size});
    const uint32_t payload_crc32 = ((const nn_image_header *)(const void *)weights)->payload_crc32;"""
    return f"""\
    nn_status status =
        weights == NULL ? nn_image_check_loaded(&loader, own_arena, {size}, &image_kind)
                        : nn_image_check_with(weights, &image_kind, own_arena, {size});
    uint32_t payload_crc32 = 0;
    if (status == NN_OK) {{
        load((int8_t *)&payload_crc32, offsetof(nn_image_header, payload_crc32), 4);
        loaded();
    }}"""


def _starts(network: Network) -> list[int]:
    """Returns the offset of each input in the golden input's bytes."""
    sizes = [network.graph.tensors[t].size for t in network.graph.inputs]
    return [sum(sizes[:i]) for i in range(len(sizes))]


def _write(golden: Golden, to: str, start: str, size: str) -> str:
    if golden.data:
        return f"nn_golden_copy({to}, golden_input + {start}, {size});"
    return f"nn_golden_fill({to}, {golden.seed}U, {start}, {size});"


def _write_inputs(network: Network, golden: Golden) -> str:
    """Returns lines that write every golden input, except an image that arrives row by row."""
    lines = []
    for i, (t, start) in enumerate(zip(network.graph.inputs, _starts(network), strict=True)):
        if t in network.held_inputs:
            size = f"{network.macro}_INPUT{i}_BYTES"
            lines.append(f"    {_write(golden, f'{network.net}_input({i})', str(start), size)}\n")
    return "".join(lines)


def _golden_input(network: Network, golden: Golden) -> str:
    """Returns the array of the golden input's bytes, unless these are made from a seed; for an image that
    arrives row by row, also the function that delivers its rows.
    """
    text = ""
    if golden.data:
        rows = ["static const uint8_t golden_input[] = {", *numbers(map(str, golden.data)), "};"]
        text += "\n".join(["/* clang-format off */", *rows, "/* clang-format on */", "", ""])
    if network.is_streamed:
        size = f"{network.macro}_ROW_BYTES"
        start = f"{_starts(network)[network.image_index]}U + (uint32_t)row * {size}"
        text += f"""\
static int golden_row(void *context, int32_t row, int8_t *data) {{
    (void)context;
    {_write(golden, "data", start, size)}
    return 0;
}}

"""
    return text
