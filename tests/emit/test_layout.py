"""Long lines of C are broken as clang-format breaks them, and mean the same."""

import subprocess

import pytest
from needs import needs_tool
from paths import ROOT

from buildtool.emit.ctext import COLUMNS, continued, indented, numbers, wrapped

STYLE = ROOT / ".clang-format"

LONG = [
    "nn_conv2d_s8(&geometry, weights + 123456789, &in, &out, &window, nn_constant(arena + 123456789), more);",
    "const nn_view in1 = nn_repeated(nn_constant(weights + 123456), 123456, 123456, 123456, 123456, 123456);",
    "short_call(a, b);",
]


@pytest.mark.parametrize("line", LONG)
@pytest.mark.parametrize("indent", [0, 4, 8, 16])
def test_a_broken_line_fits_and_says_the_same(line, indent):
    rows = wrapped(line, indent)
    assert all(len(row) <= COLUMNS for row in rows)
    assert " ".join(row.strip() for row in rows).replace("( ", "(") == line
    assert all(row.startswith(" " * indent) for row in rows)


def test_clang_format_would_break_the_lines_alike(tmp_path):
    program = needs_tool("clang-format")
    text = "void f(void) {\n" + "\n".join(indented(LONG)) + "\n}\n"
    done = subprocess.run(
        [program, f"--style=file:{STYLE}"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout == text


def test_numbers_fill_lines():
    rows = numbers((f"0x{i:02X}" for i in range(40)), 4)
    assert all(row.startswith("    0x") and len(row) <= COLUMNS for row in rows)
    assert [int(n, 16) for n in " ".join(rows).replace(",", " ").split()] == list(range(40))


def test_a_macro_that_goes_on_gets_its_backslash():
    body = "    " + "x" * (COLUMNS - 10)
    rows = continued(f"#define A(x)\n    (x)\n#define B(x)\n{body}\n\nint b;")
    assert rows == ["#define A(x) (x)", "#define B(x)".ljust(COLUMNS - 1) + "\\", body, "", "int b;"]
