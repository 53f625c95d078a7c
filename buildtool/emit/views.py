"""C for views of tensors: of bytes in the short form, of wider elements with the bytes of one said.

Strides of a view are bytes, its channels are elements; of a tensor of bytes both are one number.
"""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.partviews import parts
from buildtool.graph.types import DType, Graph


def whole(address: str, height: int, width: int, channels: int, dtype: DType) -> str:
    """A view of a whole tensor (one image of it)."""
    numbers = f"{address}, {height}, {width}, {channels}"
    return f"nn_whole({numbers})" if dtype.size == 1 else f"nn_whole_wide({numbers}, {dtype.size})"


def repeated(address: str, own: tuple[int, int, int], height: int, width: int, dtype: DType) -> str:
    """A view of an operand of `own` rows, columns and channels that repeats itself over rows and columns."""
    numbers = f"{address}, {own[0]}, {own[1]}, {own[2]}, {height}, {width}"
    return f"nn_repeated({numbers})" if dtype.size == 1 else f"nn_repeated_wide({numbers}, {dtype.size})"


def part(view: str, first: str, channels: str, dtype: DType) -> str:
    """A view of some of the channels of another one; `view`: C of its address."""
    numbers = f"{view}, {first}, {channels}"
    return f"nn_part({numbers})" if dtype.size == 1 else f"nn_part_wide({numbers}, {dtype.size})"


def operand(graph: Graph, tensor: int, name: str, whole: Callable[[int], str]) -> list[str]:
    """Declares the view `name` of a tensor, which may be some channels of another one.

    `whole`: C of a view of all of a tensor that lies in memory by itself.
    """
    lies = parts(graph).get(tensor)
    if lies is None:
        return [f"const nn_view {name} = {whole(tensor)};"]
    of = graph.tensors[tensor]
    taken = part(f"&{name}_all", str(lies.first), str(of.nhwc[3]), of.dtype)
    return [f"const nn_view {name}_all = {whole(lies.whole)};", f"const nn_view {name} = {taken};"]


def trace(tensor: int, dtype: DType) -> str:
    """The statement that hands out the window of a tensor that was just computed, in a trace build."""
    numbers = f"{tensor}, &tensor_{tensor}, &window"
    return f"NN_TRACE_WINDOW({numbers});" if dtype.size == 1 else f"NN_TRACE_WIDE({numbers}, {dtype.size});"
