"""The page of TFLite's operators, made from the reader's tables: `python -m buildtool.graph.tflite.page`."""

from __future__ import annotations

import sys

from buildtool.graph.tflite.support import TYPES, Support, table

_HEAD = """\
# TFLite's operators: which are read

This page is made from the tables that the reader uses:
`python -m buildtool.graph.tflite.page > docs/operators.md`. `buildtool ops` prints the same, and which
kernels each operator has on every board; `buildtool ops --json` gives it to programs.

The columns are the data types of an operator's activations. Truth values, which comparisons give and SELECT
takes, are bytes of 0 and 1. Some operators take other types at a network's edges: QUANTIZE reads float32 and
uint8 and writes uint8 as well; DEQUANTIZE writes float32. Networks of uint8 become int8 networks that compute
the same to the bit. Float networks are refused as a whole. Integer operators on constant shapes
(SHAPE, PACK and their like) are folded where only a parameter of another operator reads them.

"""


def page() -> str:
    """The page in Markdown: every built-in operator of the schema, read or refused with the reason."""
    titles = ["operator", *map(str, TYPES)]
    lines = [titles, ["---"] * len(titles), *map(_row, table())]
    return _HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(operator: Support) -> list[str]:
    """An operator's cells; a reason that an earlier type has stands once."""
    cells, seen = [operator.name], {""}
    for reason in operator.refused.values():
        cells.append("read" if not reason else "refused" if reason in seen else f"refused: {reason}")
        seen.add(reason)
    return cells


if __name__ == "__main__":
    sys.stdout.write(page())
