"""Ends a network earlier: its file with other outputs, which a user names.

Everything behind the outputs is gone from the file's lists before a reader sees it. So an operator that is
refused may stand there, and LiteRT judges the network that ends at these outputs. A name is a tensor's in the
file, or a layer's short name as tables show it.
"""

from __future__ import annotations

from collections.abc import Callable

from buildtool.base.errors import BuildtoolError, UsageError, closest
from buildtool.base.layers import short_names

_LISTED = 5  # names that are close to an unknown one
_MOST_SHOWN = 200  # characters of an unknown name


def end_at(data: bytes, outputs: tuple[str, ...], planned: Callable[[], list[str]], *, onnx: bool) -> bytes:
    """Returns a file that ends at `outputs`. Raises UsageError for a name that the network does not have.

    `planned` returns the names of the layers that are planned, or raises an error if the network is refused.
    """
    if onnx:
        from buildtool.graph.onnx import cutting
    else:
        from buildtool.graph.tflite import cutting  # type: ignore[no-redef]
    made = cutting.made_tensors(data)
    known = set(made)
    layers = {} if known.issuperset(outputs) else _name_layers(made, planned)
    names = [name if name in known else layers.get(name, "") for name in outputs]
    for name, found in zip(outputs, names, strict=True):
        if found not in known:
            raise _unknown(name, list(dict.fromkeys((*layers, *made))))
    return cutting.end_at(data, list(dict.fromkeys(names)))


def _name_layers(made: list[str], planned: Callable[[], list[str]]) -> dict[str, str]:
    """Maps the short name of each layer to the first tensor that the layer writes.

    The layers are those that are planned. Where the network is refused, they are the file's operators.
    """
    try:
        names = planned()
    except BuildtoolError:
        names = made
    return dict(zip(short_names(names), names, strict=True))


def _unknown(name: str, known: list[str]) -> UsageError:
    last = ", ".join(map(repr, known[-_LISTED:]))
    close = closest(name, known, _LISTED) or [one for one in known if name.lower() in one.lower()][:_LISTED]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the last are {last}"
    text = f"no operator of the network writes a tensor or layer called '{name[:_MOST_SHOWN]}'"
    return UsageError(text, option="outputs", hint=hint)
