"""Inputs are const: a view is only read through, and only an output's becomes an address to write to."""

import re

from paths import ROOT

FILES = [*(ROOT / "kernels").rglob("*.[ch]"), *(ROOT / "examples" / "third_party_target").rglob("*.c")]
ANY = re.compile(r"\bnn_out_(?:data|row|pixel)\(([^,)]*)")
OF_AN_OUTPUT = re.compile(r"(?:const nn_view \*|&?(?:\w+->)?)out")


def test_only_outputs_become_writable():
    asked = {(path.name, view) for path in FILES for view in ANY.findall(path.read_text())}
    assert len(asked) > 40
    assert not {(name, view) for name, view in asked if not OF_AN_OUTPUT.fullmatch(view)}


def test_no_kernel_casts_the_const_of_a_view_away():
    """nn_out_data holds the one cast from a view's data to an address that may be written to."""
    cast = re.compile(r"\(int(?:8|16|32)_t \*\)(?:\(\w+ \*\))*\w*->data|\(u?int\w+ \*\)nn_(?:row|pixel)\(")
    assert [path.name for path in FILES if cast.search(path.read_text())] == []
    interface = (ROOT / "kernels" / "include" / "nn.h").read_text()
    assert interface.count("(int8_t *)(uintptr_t)out->data") == 1


def test_every_operand_of_the_interface_is_const():
    kernels = ROOT / "kernels"
    headers = [kernels / "include" / "nn.h", *kernels.glob("*/nn_*.h")]
    text = "".join(path.read_text() for path in headers if path.stem in ("nn", f"nn_{path.parent.name}"))
    operands = re.findall(r"[(,]\s*((?:const )?\w+ \*)in\d?\b", text)
    assert len(operands) > 100
    assert set(operands) <= {"const nn_view *", "const int8_t *"}
