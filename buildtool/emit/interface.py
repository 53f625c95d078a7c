"""Writes the functions of the network's interface, and the variables that they share with its regions.

During an invoke the network may call functions of the application. These must not change the arena or the
weights. So each function of the interface sets `running` while it runs, and functions that would change
something in use return an error while `running` is set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from buildtool.emit import checks
from buildtool.emit.ctext import block
from buildtool.emit.hopping import fill_window
from buildtool.emit.network import Network
from buildtool.graph.topology import filling

BUSY = """\
    if (running != 0U) {
        return NN_ERROR_BUSY;
    }
"""


def state(network: Network) -> str:
    """Returns the variables that the interface's functions share: the arena, the weights, the hooks."""
    row_source = """\
static nn_row_source *row_source;
static void *row_context;
"""
    hook = """
/* Lets the application in, if it asked for that. */
static void between_regions(void) {
    if (yield_hook != NULL) {
        yield_hook(yield_context);
    }
}
"""
    second = "static int8_t *own_second_arena;\n"
    pushed = "static uint8_t pushed; /* a hop waits for an invoke */\n"
    debug_name = f"#define own_second_arena {network.net}_second_arena\n"
    return f"""\
static const nn_image_kind image_kind = {network.macro}_IMAGE_KIND;

#ifdef NN_DEBUG
#define own_arena {network.net}_arena /* by this name a debugger finds it */
{debug_name * network.is_spread}#endif
static int8_t *own_arena; /* NULL: not initialised */
{second * network.is_spread}static const uint8_t *weights;
static volatile uint8_t running; /* a function of the interface is at work */
{pushed * (network.plan.hop is not None)}static void (*yield_hook)(void *context);
static void *yield_context;
{row_source * network.is_streamed}{hook * (len(network.plan.regions) > 1)}"""


def arenas(code: Sequence[str]) -> list[str]:
    """Returns the names of the arena variables that occur in lines of C."""
    words = {word for line in code if not line.startswith("/*") for word in re.findall(r"\w+", line)}
    return [name for name in ("arena", "second_arena") if name in words]


def _local_arenas(names: Sequence[str]) -> str:
    """Returns lines that copy the addresses of the arenas `names` to local variables, which no other function
    changes.
    """
    return "".join(f"    int8_t *const {name} = own_{name};\n" for name in names)


def interface(network: Network, regions: Sequence[Sequence[str]]) -> str:
    """Returns all functions of the interface. `regions` has, for each region's function, the arenas that it
    takes.
    """
    net, macro, is_spread, has_loads = network.net, network.macro, network.is_spread, bool(network.plan.loads)
    check_second = f"""\
    if (second == NULL || second_bytes < {macro}_SECOND_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)second % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
"""
    set_row_source = f"""
nn_status {net}_set_row_source(nn_row_source *deliver, void *context) {{
{BUSY}    row_source = deliver;
    row_context = context;
    return NN_OK;
}}
"""
    set_loader = f"""
nn_status {net}_set_loader(nn_loader with) {{
{BUSY}    if (with.begin == NULL && weights == NULL) {{
        own_arena = NULL; /* the weights came by the loader before */
    }}
    loader = with;
    return NN_OK;
}}
"""
    second = checks.take_arena(network, "own_second_arena", "second", f"{macro}_SECOND_ARENA_BYTES")
    taken = checks.take_arena(network, "own_arena", "memory", f"{macro}_ARENA_BYTES") + second * is_spread
    declared = "static void fill_window(const int8_t *rows);\n\n" * (network.plan.hop is not None)
    return f"""\
{declared}nn_status {net}_init(void *memory, size_t memory_bytes,{_SECOND * is_spread} const void *image) {{
{BUSY}    own_arena = NULL;
    if (memory == NULL || memory_bytes < {macro}_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)memory % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
{check_second * is_spread}    running = 1;
{_CHECK_IMAGE[has_loads]}
    if (status == NN_OK) {{
{taken}        weights = image;
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
{_READ_QUANTIZATION[has_loads]}
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
{set_row_source * network.is_streamed}{set_loader * has_loads}
{_invoke(network, regions)}{checks.functions(network)}"""


_SECOND = " void *second, size_t second_bytes,"
# Code for networks without and with loaded constants: the check in init, and the return of entry
# `first + index` of the weight image's table.
_CHECK_IMAGE = (
    """\
    const nn_status status = nn_image_check_with(image, &image_kind, memory, memory_bytes);""",
    """\
    const nn_status status =
        image == NULL && loader.begin != NULL
            ? nn_image_check_loaded(&loader, memory, memory_bytes, &image_kind)
            : nn_image_check_with(image, &image_kind, memory, memory_bytes);""",
)
_READ_QUANTIZATION = (
    """\
    const nn_quantization *table = (const void *)(weights + sizeof(nn_image_header));
    return table[first + index];""",
    """\
    nn_quantization found;
    const uint8_t before = running; /* a hook may ask in the middle of an invoke */
    running = 1;
    load((int8_t *)&found, (uint32_t)(sizeof(nn_image_header) + sizeof found * (size_t)(first + index)),
         sizeof found);
    loaded();
    running = before;
    return found;""",
)


def _addresses(network: Network) -> str:
    """Returns the functions that give the application the addresses of inputs and outputs."""
    net, final = network.net, network.after(network.plan.moves)
    outputs = _address_function(
        f"const int8_t *{net}_output", list(map(final.address, network.graph.outputs))
    )
    held = network.held_inputs
    if not held:
        return outputs
    inputs = [network.address(t) if t in held else "NULL" for t in network.graph.inputs]
    return _address_function(f"int8_t *{net}_input", inputs) + "\n" + outputs


def _address_function(function: str, places: Sequence[str]) -> str:
    """Returns a C function that returns the address `places[index]`, or NULL for a wrong index. `function` is
    its declaration without parameters.
    """
    cases = "".join(f"    case {i}:\n        return {place};\n" for i, place in enumerate(places))
    return f"""\
{function}(int index) {{
{_local_arenas(arenas(places))}    if (own_arena == NULL) {{
        return NULL;
    }}
    switch (index) {{
{cases}    default:
        return NULL;
    }}
}}
"""


def _invoke(network: Network, regions: Sequence[Sequence[str]]) -> str:
    """Returns the function NET_invoke, which runs all regions in order.

    For an image that arrives row by row, it also returns `abandon`, which ends an invoke early. For a moving
    window, it also returns the functions that fill the window. `regions` is that of `interface`.
    """
    arena_names = [name for name in ("arena", "second_arena") if any(name in names for names in regions)]
    calls = []
    for index, names in enumerate(regions):
        call = f"region_{index}({', '.join(names)})"
        if network.takes_rows(network.plan.regions[index]):
            calls += [f"const int code = {call};", *block("if (code != 0)", ["return abandon(code);"])]
        else:
            calls.append(f"{call};")
        calls += ["between_regions();"] if index + 1 < len(regions) else []
    lines = "".join(f"    {line}\n" for line in calls)
    wait = "    loaded();\n" * bool(network.plan.loads)
    abandon = f"""\
/* Ends an invoke in its middle: nothing is under way any more, and the next one begins anew. */
static nn_status abandon(int code) {{
{wait}{_reset_call(network, 4)}    NN_MARK_INVOKE_END();
    running = 0;
    return (nn_status)code;
}}

"""
    check_source = """\
    if (row_source == NULL) {
        return NN_ERROR_NO_ROW_SOURCE;
    }
"""
    functions, hops = abandon * network.is_streamed, ""
    if network.plan.hop is not None:
        run = f"run_regions({', '.join(arena_names)})"
        functions = _run_regions(arena_names, lines)
        hops = fill_window(network, _local_arenas(arena_names), f"{run};")
        lines = f"    {run};\n    pushed = 0;\n"
    return f"""\
{functions}nn_status {network.net}_invoke(void) {{
{_local_arenas(arena_names)}{BUSY}    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
{check_source * network.is_streamed}    running = 1;
    NN_MARK_INVOKE_BEGIN();
{lines}    NN_MARK_INVOKE_END();
    running = 0;
    return {checks.invoked(network)};
}}
{hops}"""


def _run_regions(arena_names: Sequence[str], lines: str) -> str:
    """Returns the function that runs all regions once, for a network on a moving window. `lines` are the
    calls.
    """
    parameters = ", ".join(f"int8_t *const {name}" for name in arena_names) or "void"
    return f"static void run_regions({parameters}) {{\n{lines}}}\n\n"


# ---- what lives between invokes ---------------------------------------------------------------------------


def state_memory(network: Network) -> list[str]:
    """Returns lines with the memory of the network's state, and the function that sets its initial values."""
    plan = network.plan
    if not plan.states:
        return []
    net, macro = network.net, network.macro
    rows, values, fill = [], list[str](), list[str]()
    for state, buffer, place in zip(
        network.graph.states, plan.states, network.image.places.states, strict=True
    ):
        rows.append(f" *   {buffer.offset:>8}  {buffer.size:>8}  {network.describe_tensor(state.before)}")
        target = f"{net}_state + {buffer.offset}"
        if filling(state) is None:
            values += _fetch_bytes(network, target, place, buffer.size)
        elif plan.loads:
            fill = ["int8_t fill[16];"]
            values += [
                *_fetch_bytes(network, "fill", place, 16),
                f"memset({target}, fill[0], {buffer.size});",
            ]
        else:
            values.append(f"memset({target}, weights[{place}], {buffer.size});")
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
        *(f"    {line}" for line in [*fill, *values]),
        "}",
        "",
    ]


def _fetch_bytes(network: Network, target: str, place: int, size: int) -> list[str]:
    """Returns statements that copy bytes of the weight image, and wait until the copy has ended.

    `target`: C for the address to which they are copied. `place`: their offset in the weight image. `size`:
    their number.
    """
    if network.plan.loads:
        return [f"load({target}, {place}, {size});", "loaded();"]
    return [f"memcpy({target}, weights + {place}, {size});"]


def _reset_call(network: Network, indent: int) -> str:
    """Returns lines that reset the state and fill a moving window; "" for a network without either."""
    calls = ["reset_state();"] if network.plan.states else []
    calls += ["fill_window(NULL);"] if network.plan.hop else []
    return "".join(f"{' ' * indent}{call}\n" for call in calls)


def _reset_function(network: Network) -> str:
    """Returns the interface's function that resets the network; "" for one without state or moving window."""
    if not network.plan.states and network.plan.hop is None:
        return ""
    return f"""\
nn_status {network.net}_reset(void) {{
{BUSY}    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
    running = 1;
{_reset_call(network, 4)}    running = 0;
    return NN_OK;
}}

"""
