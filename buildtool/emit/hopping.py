"""Writes the functions for a network on a moving window: they take new rows, and fill the window at the
start.

In each invoke the window advances by some rows (a hop).
"""

from __future__ import annotations

from buildtool.emit.network import Network
from buildtool.graph.types import DType


def _window_rows(network: Network) -> tuple[int, int, int]:
    """Returns the rows of the window, the rows of a hop, and the bytes of a row."""
    (t,) = network.graph.inputs
    fed = network.graph.tensors[t]
    assert network.plan.hop is not None
    return network.window_rows, network.plan.hop.rows, fed.size // network.plan.hop.rows


def hop_macros(network: Network) -> str:
    """Returns the macros for the window's sizes; "" for a network without a moving window."""
    if network.plan.hop is None:
        return ""
    macro = network.macro
    window, rows, row_bytes = _window_rows(network)
    return f"""
/* The input is a window of {macro}_WINDOW_ROWS rows of {macro}_WINDOW_ROW_BYTES bytes. Each invoke takes the
 * next {macro}_HOP_ROWS of them, and its outputs are those of the network on the whole window. */
#define {macro}_WINDOW_ROWS {window}
#define {macro}_WINDOW_ROW_BYTES {row_bytes}
#define {macro}_HOP_ROWS {rows}
"""


def hop_prototypes(network: Network) -> str:
    """Returns the prototypes of the functions that take new rows; "" for a network without a moving
    window.
    """
    if network.plan.hop is None:
        return ""
    net, macro = network.net, network.macro
    return f"""
/* Takes the next `count` rows, a multiple of {macro}_HOP_ROWS (else NN_ERROR_ROWS): writes them to
 * input 0 for the next invoke. Hops before the last one are computed at once, and their outputs
 * are lost. */
nn_status {net}_push(const void *rows, int32_t count);

/* Fills the window with the {macro}_WINDOW_ROWS rows at `window`, the oldest first, as if they had
 * been pushed. The outputs are those of this window. init and {net}_reset fill it with the input's
 * zero points. Either takes the time of {_hops(network)} invokes. */
nn_status {net}_reset_to(const void *window);
"""


def _hops(network: Network) -> int:
    window = network.graph.window
    assert window is not None
    return window.hops


def fill_window(network: Network, arenas: str, run: str) -> str:
    """Returns the function that fills the window by running hops, and the functions for the application; ""
    for a network without a moving window.

    `arenas` are lines that declare the arenas. `run` is the call that runs all regions.
    """
    if network.plan.hop is None:
        return ""
    window, rows, row_bytes = _window_rows(network)
    hops, hop_bytes = _hops(network), rows * row_bytes
    before = hops * hop_bytes - window * row_bytes  # bytes of the first hop that lie before the window
    (t,) = network.graph.inputs
    is_byte = network.graph.tensors[t].dtype in (DType.INT8, DType.UINT8, DType.BOOL)
    zero = "quantization(0, 0, 1).zero_point" if is_byte else "0"
    return f"""
/* Runs the hops that fill the window with `rows`; NULL: with zero points. */
static void fill_window(const int8_t *rows) {{
{arenas}    const int zero_point = {zero};
    pushed = 0; /* what was pushed before belongs to the old window */
    int32_t at = {-before};
    for (int32_t hop = 0; hop < {hops}; hop++, at += {hop_bytes}) {{
        int8_t *const to = {network.address(t)};
        const int32_t begin = at < 0 ? -at : 0;
        memset(to, zero_point, {hop_bytes});
        if (rows != NULL) {{
            memcpy(to + begin, rows + at + begin, (size_t)({hop_bytes} - begin));
        }}
        {run}
    }}
}}
{_reset_to(network)}{_push(network, hop_bytes)}"""


def _reset_to(network: Network) -> str:
    net, reset = network.net, "    reset_state();\n" * bool(network.plan.states)
    return f"""
nn_status {net}_reset_to(const void *window) {{
    if (running != 0U) {{
        return NN_ERROR_BUSY;
    }}
    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
    if (window == NULL) {{
        return NN_ERROR_ROWS;
    }}
    running = 1;
{reset}    fill_window((const int8_t *)window);
    running = 0;
    return NN_OK;
}}
"""


def _push(network: Network, hop_bytes: int) -> str:
    net, macro = network.net, network.macro
    return f"""
nn_status {net}_push(const void *rows, int32_t count) {{
    const int8_t *from = (const int8_t *)rows;
    if (running != 0U) {{
        return NN_ERROR_BUSY;
    }}
    if (own_arena == NULL) {{
        return NN_ERROR_NOT_INITIALISED;
    }}
    if (rows == NULL || count <= 0 || count % {macro}_HOP_ROWS != 0) {{
        return NN_ERROR_ROWS;
    }}
    for (; count > 0; count -= {macro}_HOP_ROWS, from += {hop_bytes}) {{
        if (pushed != 0U) {{
            (void){net}_invoke();
        }}
        memcpy({net}_input(0), from, {hop_bytes});
        pushed = 1;
    }}
    return NN_OK;
}}
"""
