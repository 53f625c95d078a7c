"""What lives between invokes in the emitted C: its memory, its first values, what resets it."""

from __future__ import annotations

from buildtool.emit.network import Network
from buildtool.graph.topology import filling


def state_macros(network: Network) -> str:
    """Of the header: how much state there is; nothing where there is none."""
    if not network.plan.states:
        return ""
    macro = network.macro
    return f"""
/* What lives from one invoke to the next: memory of its own, which no arena has any of. It is a
 * static array in section .bss.nn_state; compiled with {macro}_STATE_SECTION="name",
 * in that one. */
#define {macro}_STATE_BYTES {network.plan.state_bytes}
"""


def reset_prototype(network: Network) -> str:
    """Of the header: the function that resets state."""
    if not network.plan.states:
        return ""
    net = network.net
    return f"""
/* Gives what lives between invokes its initial values, as init does: for where a new sequence
 * begins. They are read from the weight image. */
nn_status {net}_reset(void);
"""


def state_memory(network: Network) -> list[str]:
    """At file scope: the state, and what gives it its initial values."""
    plan = network.plan
    if not plan.states:
        return []
    net, macro = network.net, network.macro
    rows = [
        f" *   {b.offset:>8}  {b.size:>8}  {network.called(network.graph.states[i].before)}"
        for i, b in enumerate(plan.states)
    ]
    return [
        "/* What lives between invokes, in memory that nothing else uses:",
        " *",
        " *     offset     bytes  holds",
        *rows,
        " */",
        f"#ifndef {macro}_STATE_SECTION",
        f'#define {macro}_STATE_SECTION ".bss.nn_state"',
        "#endif",
        f"__attribute__((section({macro}_STATE_SECTION)))",
        f"__attribute__((aligned({macro}_ARENA_ALIGNMENT))) static int8_t {net}_state[{macro}_STATE_BYTES];",
        "",
        "static void reset_state(void) {",
        *(f"    {line}" for line in _values(network)),
        "}",
        "",
    ]


def _values(network: Network) -> list[str]:
    """Statements that bring every state's initial value."""
    net, lines, filled = network.net, list[str](), False
    for state, buffer, place in zip(
        network.graph.states, network.plan.states, network.image.places.states, strict=True
    ):
        target = f"{net}_state + {buffer.offset}"
        if filling(state) is None:
            lines += _brought(network, target, place, buffer.size)
        elif network.plan.loads:
            lines += [*_brought(network, "fill", place, 16), f"memset({target}, fill[0], {buffer.size});"]
            filled = True
        else:
            lines.append(f"memset({target}, weights[{place}], {buffer.size});")
    return [*(["int8_t fill[16];"] if filled else []), *lines]


def _brought(network: Network, target: str, place: int, size: int) -> list[str]:
    """Statements that bring bytes of the weight image, and wait for them."""
    if network.plan.loads:
        return [f"load({target}, {place}, {size});", "loaded();"]
    return [f"memcpy({target}, weights + {place}, {size});"]


def reset_call(network: Network, indent: int) -> str:
    """A line that gives what lives between invokes its first values; nothing where nothing does."""
    return " " * indent + "reset_state();\n" if network.plan.states else ""


def reset_function(network: Network) -> str:
    """The function of the interface."""
    if not network.plan.states:
        return ""
    return f"""\
nn_status {network.net}_reset(void) {{
    if (running) {{
        return NN_ERROR_BUSY;
    }}
    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
    running = 1;
    reset_state();
    running = 0;
    return NN_OK;
}}

"""
