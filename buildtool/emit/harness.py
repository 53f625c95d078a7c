"""The glue between a network and the test firmware's harness."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.emit import loading
from buildtool.emit.header import plan_check
from buildtool.emit.network import Network

_LINE = 100  # characters, as the sources are formatted


def harness(network: Network) -> str:
    """harness_net.h."""
    net, macro, graph = network.net, network.macro, network.graph
    inputs, outputs = ([graph.tensors[t].size for t in ends] for ends in (graph.inputs, graph.outputs))
    return f"""\
/* What the test firmware calls {net}.
 * Of plan {network.plan_digest}. */
#ifndef HARNESS_NET_H
#define HARNESS_NET_H

#include "{net}.h"

{chr(10).join(plan_check(network))}
{_init(network)}
#define HARNESS_INVOKE() {net}_invoke()
#define HARNESS_INPUTS {macro}_INPUTS
{_harness_input(network)}#define HARNESS_OUTPUTS {macro}_OUTPUTS
#define HARNESS_OUTPUT(i) {net}_output(i)
#define HARNESS_ARENA_BYTES {macro}_ARENA_BYTES
{_second(network)}{_reset(network)}#define HARNESS_OPERATORS {len(graph.ops)}
#define HARNESS_PLAN "{network.plan_digest}"
#define HARNESS_WEIGHTS {net}_weights
{_harness_rows(network)}{loading.harness_macro(network)}
static inline uint32_t harness_input_bytes(int i) {{
{_chosen(inputs)}
}}

static inline uint32_t harness_output_bytes(int i) {{
{_chosen(outputs)}
}}

#define HARNESS_INPUT_BYTES(i) harness_input_bytes(i)
#define HARNESS_OUTPUT_BYTES(i) harness_output_bytes(i)

#endif"""


def _chosen(sizes: Sequence[int]) -> str:
    """The statement that returns the i-th of `sizes`, 0 beyond: a line where they fit into one."""
    choices = " ".join(f"i == {i} ? {size} :" for i, size in enumerate(sizes))
    line = f"    return {choices} 0;"
    if len(line) <= _LINE:
        return line
    cases = [f"    case {i}:\n        return {size};" for i, size in enumerate(sizes)]
    return "\n".join(["    switch (i) {", *cases, "    default:\n        return 0;\n    }"])


def _init(network: Network) -> str:
    """How the harness gives the network its memory."""
    if not network.is_spread:
        return f"#define HARNESS_INIT(arena, bytes, weights) {network.net}_init((arena), (bytes), (weights))"
    return (
        "#define HARNESS_INIT(arena, bytes, weights) \\\n"
        f"    {network.net}_init((arena), (bytes), second_arena, HARNESS_SECOND_ARENA_BYTES, (weights))"
    )


def _second(network: Network) -> str:
    """The size of the second arena; nothing where there is none."""
    return f"#define HARNESS_SECOND_ARENA_BYTES {network.macro}_SECOND_ARENA_BYTES\n" * network.is_spread


def _reset(network: Network) -> str:
    """How the harness resets what lives between invokes; nothing where there is none."""
    if not network.plan.states:
        return ""
    return f"#define HARNESS_RESET() {network.net}_reset()\n"


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
