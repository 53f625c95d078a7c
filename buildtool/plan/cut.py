"""Cuts a network: makes a file that ends at other outputs, which a user names.

All operators after these outputs are removed from the file's lists before a reader sees them. So operators
that buildtool refuses may be among them, and LiteRT also runs the network that ends at these outputs. The
user names a tensor as in the file, or a layer by the short name that tables show.
"""

from __future__ import annotations

from collections.abc import Callable

from buildtool.base.errors import BuildtoolError, UsageError, closest
from buildtool.base.layers import short_names

_LISTED = 5  # names that are close to an unknown one


def end_at(data: bytes, outputs: tuple[str, ...], planned: Callable[[], list[str]], *, onnx: bool) -> bytes:
    """Returns the model's file `data` cut so that it ends at `outputs`.

    `planned` returns the names of the layers that are planned, or raises an error if the network is refused.
    Raises UsageError for a name that the network does not have.
    """
    if onnx:
        from buildtool.graph.onnx import cutting
    else:
        from buildtool.graph.tflite import cutting  # type: ignore[no-redef]
    made = cutting.made_tensors(data)
    known = {name.strip(): name for name in made} | {name: name for name in made}
    wanted = [cutting.name_as_read(name) for name in outputs]
    layers = {} if known.keys() >= set(wanted) else _name_layers(made, planned)
    known = {short: long for short, long in layers.items() if long in known} | known
    for name in wanted:
        if name not in known:
            raise _unknown(name, list(known), layers.get(name, ""))
    return cutting.end_at(data, list(dict.fromkeys(known[name] for name in wanted)))


def _name_layers(made: list[str], planned: Callable[[], list[str]]) -> dict[str, str]:
    """Returns the short name of each layer -> the first tensor that the layer writes.

    `made`: the tensors that the file's operators write. The layers are those that are planned. If the network
    is refused, they are the file's operators.
    """
    try:
        names = planned()
    except BuildtoolError:
        names = made
    return dict(zip(short_names(names), names, strict=True))


def _unknown(name: str, known: list[str], part: str) -> UsageError:
    """Returns the error about a name without a tensor.

    `known`: the names that there are. `part`: the whole name of the layer with this short name, or "".
    """
    known = [one for one in known if "," not in one]  # commas separate names
    last = ", ".join(map(repr, known[-_LISTED:]))
    close = closest(name, known, _LISTED) or [one for one in known if name.lower() in one.lower()][:_LISTED]
    if part.rpartition("/")[0] in known:
        close = [part.rpartition("/")[0]]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the last are {last}"
    text = f"no operator of the network writes a tensor or layer called '{name}'"
    if part:
        text = f"the layer '{name}' is a part of an operator of the file, and writes no tensor of the file"
    return UsageError(text, option="outputs", hint=hint)
