"""Makes a .tflite file whose network ends earlier, with other tensors as outputs.

The result is the file's bytes with a shorter list of operators and new lists of inputs and outputs. Tensors
and constants keep their numbers; those that the lists no longer mention are not read.
"""

import contextlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from buildtool.base.errors import ModelError, UsageError
from buildtool.graph.tflite.flat import MALFORMED, MAX_NAME, FlatFile, RawOperator, printable
from buildtool.graph.tflite.schema import tflite

_B = tflite.BuiltinOperator
_INPUTS, _OUTPUTS, _OPERATORS = 6, 8, 10  # places of fields in the schema's SubGraph table
_SIGNATURES = 18  # in its Model table
_WORD = 4  # bytes


def name_as_read(name: str) -> str:
    """Returns a tensor's whole name in the form in which the reader shows it: long names are shortened."""
    return printable(name.encode("utf-8", "surrogatepass")[:MAX_NAME])


def made_tensors(data: bytes) -> list[str]:
    """Returns the names of the tensors that operators write, in the operators' order."""
    with _report_damage():
        file = FlatFile(data)
        return [file.tensor(t).name for op in file.operators for t in op.outputs]


def end_at(data: bytes, names: Sequence[str]) -> bytes:
    """Returns the file with the tensors `names` as its outputs (see `made_tensors`).

    The result has the operators that these outputs need, and the inputs that these operators read. A state
    that they read is updated as before. Raises UsageError if several tensors have one of the names, or if the
    outputs depend on no input.
    """
    with _report_damage():
        return _end_at(FlatFile(data), names)


@contextlib.contextmanager
def _report_damage() -> Iterator[None]:
    """Turns the errors of damaged bytes into ModelError."""
    try:
        yield
    except MALFORMED as error:
        raise ModelError("the file is damaged: an offset or a length points outside the file") from error


def _end_at(file: FlatFile, names: Sequence[str]) -> bytes:
    places: dict[str, list[int]] = {}
    for op in file.operators:
        for t in op.outputs:
            places.setdefault(file.tensor(t).name, []).append(t)
    for name in names:
        if len(places[name]) > 1:
            raise UsageError(f"{len(places[name])} tensors are called '{name}'", option="outputs")
    outputs = [places[name][0] for name in names]
    kept = _needed(file, outputs)
    read = {t for op in kept for t in op.inputs}
    inputs = [t for t in file.inputs if t in read]
    if not inputs:
        raise UsageError("the outputs need no input of the network", option="outputs")
    return _rewritten(file, inputs, outputs, [op.index for op in kept])


def _needed(file: FlatFile, outputs: Iterable[int]) -> list[RawOperator]:
    """Returns the operators that compute `outputs`. Also returns those that update variables they read."""
    variables = _variables(file)
    wanted, names, kept = set(outputs), set[tuple[str, str]](), set[int]()
    grown = True
    while grown:  # an assignment may need operators that stand before those that are kept already
        grown = False
        for op in reversed(file.operators):
            assigns = not op.outputs and op.inputs and variables.get(op.inputs[0]) in names
            initialises = op.code == _B.CALL_ONCE and names
            if op.index not in kept and (assigns or initialises or wanted.intersection(op.outputs)):
                kept.add(op.index)
                wanted.update(op.inputs)
                names.update(variables[t] for t in (*op.inputs, *op.outputs) if t in variables)
                grown = True
    return [op for op in file.operators if op.index in kept]


def _variables(file: FlatFile) -> dict[int, tuple[str, str]]:
    """Maps each tensor that names a variable to the variable's (container, name)."""
    found = {}
    for op in file.operators:
        options = op.options(tflite.VarHandleOptions) if op.code == _B.VAR_HANDLE else None
        if options is not None:
            name = str(options.Container()), str(options.SharedName())
            found.update(dict.fromkeys(op.outputs, name))
    return found


def _rewritten(file: FlatFile, inputs: list[int], outputs: list[int], operators: list[int]) -> bytes:
    """Returns the file's bytes with new lists of inputs, outputs and operators in its first subgraph.

    Signatures are removed, because they name outputs.
    """
    model = tflite.Model.GetRootAs(file.data, 0)
    table = model.Subgraphs(0)._tab
    result = bytearray(file.data) + bytes(-len(file.data) % _WORD)
    _shorten(result, table, _OPERATORS, operators)
    for field, tensors in ((_INPUTS, inputs), (_OUTPUTS, outputs)):
        _append(result, table, field, tensors)
    if model._tab.Offset(_SIGNATURES):
        _shorten(result, model._tab, _SIGNATURES, [])
    return bytes(result)


def _shorten(result: bytearray, table: Any, field: int, kept: Sequence[int]) -> None:
    """Shortens a vector of tables in the file's bytes `result`, so that only the entries `kept` remain.

    The vector is field `field` of `table`, and `kept` is in ascending order. The offset of an entry moves to
    an earlier place. It stays valid, as offsets only point forward.
    """
    start = table.Vector(table.Offset(field))
    entries = [start + _WORD * number for number in kept]
    targets = [entry + struct.unpack_from("<I", result, entry)[0] for entry in entries]
    for number, target in enumerate(targets):
        entry = start + _WORD * number
        struct.pack_into("<I", result, entry, target - entry)
    struct.pack_into("<I", result, start - _WORD, len(kept))


def _append(result: bytearray, table: Any, field: int, values: Sequence[int]) -> None:
    """Appends a vector of int32 to the file, and makes the table's field point to it."""
    offset = table.Offset(field)
    if not offset and not values:
        return
    if not offset:
        raise ModelError("the network has no list of outputs, so it cannot end elsewhere")
    place, end = table.Pos + offset, len(result)
    result += struct.pack(f"<I{len(values)}i", len(values), *values)
    struct.pack_into("<I", result, place, end - place)
