"""The functions of the network's interface, and the state that they share with its regions."""

from __future__ import annotations

from buildtool.emit import loading
from buildtool.emit.network import Network
from buildtool.emit.states import reset_at_init, reset_function

_HOOK = """
/* Lets the application in, if it asked for that. */
static void between_regions(void) {
    if (yield_hook != NULL) {
        yield_hook(yield_context);
    }
}
"""


_SECOND = """\
static int8_t *second_arena;
"""
_SECOND_PARAMETERS = " void *second, size_t second_bytes,"
_ROW_SOURCE = """\
static void (*row_source)(void *context, int32_t row, int8_t *data);
static void *row_context;
"""

NO_SOURCE = (
    "    if (row_source == NULL) {",
    "        return NN_ERROR_NO_ROW_SOURCE;",
    "    }",
)


def state(network: Network) -> str:
    """What the functions share: the arena, the weights, the hooks."""
    return f"""\
static const uint8_t layout[NN_IMAGE_DIGEST_BYTES] = {network.macro}_LAYOUT;

#ifdef NN_DEBUG
#define arena {network.net}_arena /* by this name a debugger finds it, whatever else is called arena */
{f"#define second_arena {network.net}_second_arena{chr(10)}" if network.is_spread else ""}#endif
static int8_t *arena; /* NULL: not initialised */
{_SECOND if network.is_spread else ""}static const uint8_t *weights;
static void (*yield_hook)(void *context);
static void *yield_context;
{_ROW_SOURCE if network.is_streamed else ""}{_HOOK if len(network.plan.regions) > 1 else ""}"""


def interface(network: Network) -> str:
    """All functions of the interface but the invoke."""
    net, macro, graph, two = network.net, network.macro, network.graph, network.is_spread
    second = _SECOND_PARAMETERS if two else ""
    ended = network.after(network.plan.moves)
    outputs = "".join(
        f"    case {i}:\n        return {ended.address(t)};\n" for i, t in enumerate(graph.outputs)
    )
    return f"""\
nn_status {net}_init(void *memory, size_t memory_bytes,{second} const void *image) {{
    arena = NULL;
    if (memory == NULL || memory_bytes < {macro}_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)memory % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
{_check_second(macro) if two else ""}    const uint32_t payload_bytes = {macro}_PAYLOAD_BYTES;
{loading.check_image(network)}
    if (status == NN_OK) {{
        arena = memory;
{"        second_arena = second;" + chr(10) if two else ""}        weights = image;
{reset_at_init(network)}    }}
    return status;
}}

{reset_function(network)}{_input(network)}const int8_t *{net}_output(int index) {{
    if (arena == NULL) {{
        return NULL;
    }}
    switch (index) {{
{outputs}    default:
        return NULL;
    }}
}}

static nn_quantization quantization(int index, int first, int count) {{
    const nn_quantization none = {{0.0f, 0}};
    if (arena == NULL || index < 0 || index >= count) {{
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
{_set_row_source(net) if network.is_streamed else ""}{loading.set_loader(network)}"""


def _check_second(macro: str) -> str:
    return f"""\
    if (second == NULL || second_bytes < {macro}_SECOND_ARENA_BYTES) {{
        return NN_ERROR_ARENA;
    }}
    if ((uintptr_t)second % {macro}_ARENA_ALIGNMENT != 0) {{
        return NN_ERROR_ARENA;
    }}
"""


def _input(network: Network) -> str:
    """The function that says where to write an input."""
    if not network.held_inputs:
        return ""
    places = enumerate(map(network.address, network.held_inputs))
    cases = "".join(f"    case {i}:\n        return {place};\n" for i, place in places)
    return f"""\
int8_t *{network.net}_input(int index) {{
    if (arena == NULL) {{
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
void {net}_set_row_source(void (*deliver)(void *context, int32_t row, int8_t *data), void *context) {{
    row_source = deliver;
    row_context = context;
}}
"""
