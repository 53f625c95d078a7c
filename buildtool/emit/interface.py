"""The functions of the network's interface, and the state that they share with its regions.

While one of them is at work, `running` is set, and every other one that would change what it uses is
refused: a function that is called back by a network cannot take its arena or its weights away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from buildtool.emit import loading
from buildtool.emit.network import Network
from buildtool.graph.topology import filling

_HOOK = """
/* Lets the application in, if it asked for that. */
static void between_regions(void) {
    if (yield_hook != NULL) {
        yield_hook(yield_context);
    }
}
"""


_SECOND = """\
static int8_t *own_second_arena;
"""
_SECOND_PARAMETERS = " void *second, size_t second_bytes,"
_ROW_SOURCE = """\
static nn_row_source *row_source;
static void *row_context;
"""

BUSY = """\
    if (running) {
        return NN_ERROR_BUSY;
    }
"""
_NO_SOURCE = """\
    if (row_source == NULL) {
        return NN_ERROR_NO_ROW_SOURCE;
    }
"""


def state(network: Network) -> str:
    """What the functions share: the arena, the weights, the hooks."""
    return f"""\
static const nn_image_kind image_kind = {network.macro}_IMAGE_KIND;

#ifdef NN_DEBUG
#define own_arena {network.net}_arena /* by this name a debugger finds it */
{f"#define own_second_arena {network.net}_second_arena{chr(10)}" if network.is_spread else ""}#endif
static int8_t *own_arena; /* NULL: not initialised */
{_SECOND if network.is_spread else ""}static const uint8_t *weights;
static volatile uint8_t running; /* a function of the interface is at work */
static void (*yield_hook)(void *context);
static void *yield_context;
{_ROW_SOURCE if network.is_streamed else ""}{_HOOK if len(network.plan.regions) > 1 else ""}"""


def arenas(code: Sequence[str]) -> list[str]:
    """The arenas, by the names of variables, that lines of C refer to."""
    words = {word for line in code if not line.startswith("/*") for word in re.findall(r"\w+", line)}
    return [name for name in ("arena", "second_arena") if name in words]


def _own(names: Sequence[str]) -> str:
    """Lines of a function that refers to these arenas: what no call changes while it is at work."""
    return "".join(f"    int8_t *const {name} = own_{name};\n" for name in names)


def interface(network: Network, regions: Sequence[Sequence[str]]) -> str:
    """All functions of the interface; `regions`: the arenas that each region's function takes."""
    net, macro, two = network.net, network.macro, network.is_spread
    second = _SECOND_PARAMETERS if two else ""
    return f"""\
nn_status {net}_init(void *memory, size_t memory_bytes,{second} const void *image) {{
{BUSY}    own_arena = NULL;
    if (memory == NULL || memory_bytes < {macro}_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)memory % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
{_check_second(macro) if two else ""}    running = 1;
{loading.check_image(network)}
    if (status == NN_OK) {{
        own_arena = memory;
{"        own_second_arena = second;" + chr(10) if two else ""}        weights = image;
{_reset_call(network, 8)}    }}
    running = 0;
    return status;
}}

{_reset_function(network)}{_addresses(network)}
static nn_quantization quantization(int index, int first, int count) {{
    const nn_quantization none = {{0.0f, 0}};
    if (own_arena == NULL || index < 0 || index >= count) {{
        return none;
    }}
{loading.read_quantization(network)}
}}

nn_quantization {net}_input_quantization(int index) {{
    return quantization(index, 0, {macro}_INPUTS);
}}

nn_quantization {net}_output_quantization(int index) {{
    return quantization(index, {macro}_INPUTS, {macro}_OUTPUTS);
}}

void {net}_set_yield(void (*hook)(void *context), void *context) {{
    yield_hook = hook;
    yield_context = context;
}}
{_set_row_source(net) if network.is_streamed else ""}{loading.set_loader(network)}
{_invoke(network, regions)}"""


def _check_second(macro: str) -> str:
    return f"""\
    if (second == NULL || second_bytes < {macro}_SECOND_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)second % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
"""


def _addresses(network: Network) -> str:
    """The functions that say where to write an input, and where an output is."""
    net, ended = network.net, network.after(network.plan.moves)
    outputs = _places(f"const int8_t *{net}_output", list(map(ended.address, network.graph.outputs)))
    if not network.held_inputs:
        return outputs
    return _places(f"int8_t *{net}_input", list(map(network.address, network.held_inputs))) + "\n" + outputs


def _places(function: str, places: Sequence[str]) -> str:
    """A function that returns one of some addresses by its number, and NULL where there is none."""
    cases = "".join(f"    case {i}:\n        return {place};\n" for i, place in enumerate(places))
    return f"""\
{function}(int index) {{
{_own(arenas(places))}    if (own_arena == NULL) {{
        return NULL;
    }}
    switch (index) {{
{cases}    default:
        return NULL;
    }}
}}
"""


def _set_row_source(net: str) -> str:
    return f"""
nn_status {net}_set_row_source(nn_row_source *deliver, void *context) {{
{BUSY}    row_source = deliver;
    row_context = context;
    return NN_OK;
}}
"""


def _invoke(network: Network, regions: Sequence[Sequence[str]]) -> str:
    """The invoke, which calls one region after the other, and what ends it in its middle."""
    used = [name for name in ("arena", "second_arena") if any(name in names for names in regions)]
    calls = []
    for index, names in enumerate(regions):
        call = f"region_{index}({', '.join(names)})"
        if network.takes_rows(network.plan.regions[index]):
            calls += [
                f"    const int code = {call};",
                "    if (code != 0) {",
                "        return abandon(code);",
            ]
            calls.append("    }")
        else:
            calls.append(f"    {call};")
        if index + 1 < len(regions):
            calls.append("    between_regions();")
    return f"""\
{_abandon(network) if network.is_streamed else ""}nn_status {network.net}_invoke(void) {{
{_own(used)}{BUSY}    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
{_NO_SOURCE if network.is_streamed else ""}    running = 1;
    NN_MARK_INVOKE_BEGIN();
{chr(10).join(calls)}
    NN_MARK_INVOKE_END();
    running = 0;
    return NN_OK;
}}"""


def _abandon(network: Network) -> str:
    """What a network does when its row source ends an invoke."""
    return f"""\
/* Ends an invoke in its middle: nothing is under way any more, and the next one begins anew. */
static nn_status abandon(int code) {{
{"    loaded();" + chr(10) if network.plan.loads else ""}{_reset_call(network, 4)}    NN_MARK_INVOKE_END();
    running = 0;
    return (nn_status)code;
}}

"""


# ---- what lives between invokes ---------------------------------------------------------------------------


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


def _reset_call(network: Network, indent: int) -> str:
    """A line that gives what lives between invokes its first values; nothing where nothing does."""
    return " " * indent + "reset_state();\n" if network.plan.states else ""


def _reset_function(network: Network) -> str:
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
