"""Writes a C header with a golden input of a network, and the outputs that the reference computes for it.

An application includes the header and compares its own outputs, without a file or a link to this machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from buildtool.api.requests.kinds import Bundle
from buildtool.base.modes import Reference
from buildtool.emit.ctext import array_lines
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.compare import Array
from buildtool.firmware.run.judge import judging

SEED = 0


def golden_header(request: Bundle, planned: Planned, net: str) -> bytes:
    """Returns nn_golden_NET.h, where NET is `net`: random inputs, and the reference's outputs of the first
    invoke after init.

    The arrays have the bytes of the network's tensors, in the order of the C interface.
    """
    graph = planned.graph
    with judging(Reference.AUTO, request.model) as judge:
        judge.set_network(planned.model, planned.source, graph, every=False, hop=planned.hop)
        (inputs,) = draw_inputs(graph, 1, SEED)
        values = judge.refer(inputs, reset=False)
        outputs = [values[t] for t in graph.outputs]
        text = judge.answer()["text"]
    guard = f"NN_GOLDEN_{net.upper()}_H"
    lines = [
        f"/* {net}: a random input of the first invoke, and the outputs that it has to give, in bytes.",
        f" * The outputs are those of {text}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
        *_tables(net, "input", inputs),
        *_tables(net, "output", outputs),
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines).encode()


def _tables(net: str, what: str, arrays: Sequence[Array]) -> list[str]:
    """Returns lines of C: an array for each of the tensors, an array of their addresses, and one of their
    sizes.
    """
    lines = []
    for index, array in enumerate(arrays):
        data = np.ascontiguousarray(array).tobytes()
        name = f"{net}_golden_{what}{index}"
        lines += ["", f"static const uint8_t {name}[{len(data)}] = {{", *array_lines(data), "};"]
    names = [f"{net}_golden_{what}{index}" for index in range(len(arrays))]
    sizes = ", ".join(f"sizeof {name}" for name in names)
    return [
        *lines,
        "",
        f"static const uint8_t *const {net}_golden_{what}s[] = {{{', '.join(names)}}};",
        f"static const size_t {net}_golden_{what}_bytes[] = {{{sizes}}};",
    ]
