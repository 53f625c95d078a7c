"""The glue between a network and the test firmware's harness."""

from __future__ import annotations

from buildtool.emit import loading
from buildtool.emit.header import plan_check
from buildtool.emit.network import Network


def harness(network: Network) -> str:
    """harness_net.h."""
    net, macro, graph = network.net, network.macro, network.graph
    inputs = [f"i == {i} ? {graph.tensors[t].size} :" for i, t in enumerate(graph.inputs)]
    outputs = [f"i == {i} ? {graph.tensors[t].size} :" for i, t in enumerate(graph.outputs)]
    return f"""\
/* What the test firmware calls {net}.
 * Of plan {network.plan_digest}. */
#ifndef HARNESS_NET_H
#define HARNESS_NET_H

#include "{net}.h"

{chr(10).join(plan_check(network))}
#define HARNESS_INIT(arena, bytes, weights) {net}_init((arena), (bytes), (weights))
#define HARNESS_INVOKE() {net}_invoke()
#define HARNESS_INPUTS {macro}_INPUTS
{_harness_input(network)}#define HARNESS_OUTPUTS {macro}_OUTPUTS
#define HARNESS_OUTPUT(i) {net}_output(i)
#define HARNESS_ARENA_BYTES {macro}_ARENA_BYTES
#define HARNESS_OPERATORS {len(graph.ops)}
#define HARNESS_PLAN "{network.plan_digest}"
#define HARNESS_WEIGHTS {net}_weights
{_harness_rows(network)}{loading.harness_macro(network)}
static inline uint32_t harness_input_bytes(int i) {{
    return {" ".join(inputs)} 0;
}}

static inline uint32_t harness_output_bytes(int i) {{
    return {" ".join(outputs)} 0;
}}

#define HARNESS_INPUT_BYTES(i) harness_input_bytes(i)
#define HARNESS_OUTPUT_BYTES(i) harness_output_bytes(i)

#endif"""


def _harness_input(network: Network) -> str:
    """How the harness finds the inputs that it writes to."""
    return f"#define HARNESS_INPUT(i) {network.net}_input(i)\n" if network.held_inputs else ""


def _harness_rows(network: Network) -> str:
    """How the harness delivers a streamed image."""
    if not network.is_streamed:
        return ""
    return f"""\
#define HARNESS_ROWS {network.macro}_ROWS
#define HARNESS_ROW_BYTES {network.macro}_ROW_BYTES
#define HARNESS_SET_ROW_SOURCE(deliver) {network.net}_set_row_source((deliver), NULL)
"""
