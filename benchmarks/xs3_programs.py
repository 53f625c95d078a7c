"""Compares random C programs, compiled for XS3 and run in the runner, with the same programs on this machine.

    python -m benchmarks.xs3_programs --programs 400

A program is a function of three numbers and 64 words of memory, with loops, switches, calls, tables of
functions, arithmetic on 8 to 64 bits and structs. `-fwrapv` makes overflow the same everywhere. Ten programs
are in one file, which clang compiles at one of five levels of optimisation.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from buildtool_plugins.tools.find import find_host_compiler
from buildtool_plugins.xs3.compiler import compile_c, runtime
from buildtool_plugins.xs3.linker import link
from buildtool_plugins.xs3.machine import Machine

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
WORDS = 64
IN_A_FILE = 10
TYPES = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t")
HEAD = f"""#include <stdint.h>
#include <string.h>
typedef struct {{ int32_t x; int8_t y; uint16_t z[5]; int64_t w; }} record;
static const int32_t table[16] = {{{", ".join(str((k * 2654435761) % 2**32 - 2**31) for k in range(16))}}};
static int32_t state[{WORDS}];
typedef uint32_t program(uint32_t, uint32_t, uint32_t, int32_t *, int);
"""


PLACES = (
    *("r.x", "r.y", "r.z[c & 3]", "r.w"),
    *(f"m[{name} & {WORDS - 1}]" for name in "abc"),
    *(f"table[{name} & 15]" for name in "efg"),
)
TARGETS = ("r.x", "r.y", "r.z[1]", "r.z[b & 3]", "r.w", "state[c & 15]")
EXPRESSIONS = (
    *("({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} & {b})", "({a} | {b})", "({a} ^ {b})"),
    *("(({type})({a}))", "(~{a})", "(-({a}))", "({a} < {b})", "({a} == {b})", "({a} ? {b} : {c})"),
    *("((uint32_t)({a}) > (uint32_t)({b}))", "((int32_t)({a}) >> ({b} & 31))"),
    *("((uint32_t)({a}) >> ({b} & 31))", "((int32_t)({a}) << ({b} & 31))"),
    *("((int64_t)({a}) >> ({b} & 63))", "((int64_t)({a}) << ({b} & 63))"),
    *("((uint32_t)({a}) / ((uint32_t)({b}) | 1))", "((uint64_t)({a}) % ((uint64_t)({b}) | 1))"),
    # GCC makes -(x / (y + 1)) to x / ~y, which traps for the smallest x: it is halved
    *(
        "(((int32_t)({a}) >> 1) / (((int32_t)({b}) & 0xffff) + 1))",
        "((int64_t)(int32_t)({a}) * (int32_t)({b}))",
    ),
    "half({a}, {b})",
)


class _Writer:
    """Writes one random function. `earlier` are functions that it may call."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng, self.number, self.lines, self.loops = rng, number, list[str](), 0
        self.names = ["a", "b", "c", "e", "f", "g"]

    def value(self, depth: int = 0) -> str:
        """Returns a random expression."""
        rng = self.rng
        if depth > 3 or rng.random() < 0.25:
            number = rng.choice([0, 1, 2, 7, 31, 255, 256, 65535, 65536, rng.getrandbits(31)])
            return rng.choice([*self.names, *PLACES, f"state[{rng.randrange(WORDS)}]", str(number)])
        a, b, c = (self.value(depth + 1) for _ in range(3))
        return rng.choice(EXPRESSIONS).format(a=a, b=b, c=c, type=rng.choice(TYPES))

    def statement(self, depth: int, indent: str) -> None:
        rng, add = self.rng, self.lines.append
        kind = rng.randrange(9 if depth < 2 else 5)
        if kind <= 1:
            add(f"{indent}{rng.choice(self.names)} = ({rng.choice(TYPES)})({self.value()});")
        elif kind == 2:
            add(f"{indent}m[({self.value(3)}) & {WORDS - 1}] = (int32_t)({self.value()});")
        elif kind == 3:
            add(f"{indent}{rng.choice(TARGETS)} ^= {self.value()};")
        elif kind == 4:
            self._call(indent)
        elif kind == 5:
            self.loops += 1
            name = f"i{self.loops}"
            add(f"{indent}for (int32_t {name} = 0; {name} < {rng.randrange(1, 9)}; {name}++) {{")
            self._block(depth, indent)
            add(f"{indent}    {rng.choice(self.names)} += {name};")
            add(f"{indent}}}")
        elif kind == 6:
            add(f"{indent}if ({self.value()}) {{")
            self._block(depth, indent)
            add(f"{indent}}} else {{")
            self._block(depth, indent)
            add(f"{indent}}}")
        elif kind == 7:
            cases = rng.randrange(3, 24)
            add(f"{indent}switch ((uint32_t)({self.value()}) % {cases + 1}) {{")
            for case in range(cases):
                add(f"{indent}case {case}:")
                self._block(depth, indent, 1)
                if rng.random() < 0.8:
                    add(f"{indent}    break;")
            add(f"{indent}}}")
        else:
            add(f"{indent}{{ record s = r; s.x += {self.value()}; memcpy(&r, &s, sizeof(r)); }}")

    def _call(self, indent: str) -> None:
        if self.number == 0:
            self.lines.append(f"{indent}a ^= 1;")
            return
        values = ", ".join(f"(uint32_t)({self.value(3)})" for _ in range(3))
        target = f"f{self.rng.randrange(self.number)}"
        if self.rng.random() < 0.5:
            target = f"functions{self.number}[({self.value(3)}) & 1]"
        self.lines.append(
            f"{indent}if (depth < 3) {self.rng.choice(self.names)} += {target}({values}, m, depth + 1);"
        )

    def _block(self, depth: int, indent: str, most: int = 3) -> None:
        for _ in range(self.rng.randrange(1, most + 1)):
            self.statement(depth + 1, indent + "    ")

    def function(self) -> str:
        rng, n = self.rng, self.number
        for _ in range(rng.randrange(4, 12)):
            self.statement(0, "    ")
        pointers = ""
        if n:
            pair = ", ".join(f"f{rng.randrange(n)}" for _ in range(2))
            pointers = f"static program *const functions{n}[2] = {{{pair}}};\n"
        body = "\n".join(self.lines)
        return f"""{pointers}uint32_t f{n}(uint32_t a, uint32_t b, uint32_t c, int32_t *m, int depth) {{
    int32_t e = (int32_t)(a ^ b); int64_t f = c; uint8_t g = (uint8_t)a;
    record r = {{(int32_t)a, (int8_t)b, {{1, 2, (uint16_t)c}}, -5}};
{body}
    return a + b + c + (uint32_t)(e + f + g + r.x + r.y + r.z[1] + r.w);
}}
"""


def source(seed: int, count: int = IN_A_FILE) -> str:
    """Returns a C file with functions f0, f1 ... and `many`, which has arguments on the stack."""
    rng = random.Random(seed)
    helper = "static inline int32_t half(int64_t a, int64_t b) { return (int32_t)((a >> 1) + (b >> 1)); }\n"
    functions = [_Writer(rng, number).function() for number in range(count)]
    return HEAD + helper + "\n".join(functions)


def differences(seed: int, level: str, count: int = IN_A_FILE, inputs: int = 3) -> list[str]:
    """Returns the functions of a file whose results differ, with their inputs."""
    text = source(seed, count)
    compiled = compile_c(text, (level, "-fwrapv", "-Wno-everything"))
    machine = Machine(link([compiled, *runtime()], [f"f{k}" for k in range(count)]))
    rng, wrong = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.so"
        words = [
            find_host_compiler(),
            "-std=gnu99",
            "-O1",
            "-fwrapv",
            "-w",
            "-shared",
            "-fPIC",
            "-x",
            "c",
            "-",
            "-o",
        ]
        subprocess.run([*words, str(path)], input=text, text=True, check=True)
        library = ctypes.CDLL(str(path))
        for k in range(count):
            function = getattr(library, f"f{k}")
            function.restype = ctypes.c_uint32
            function.argtypes = [*[ctypes.c_uint32] * 3, ctypes.c_void_p, ctypes.c_int]
            for _ in range(inputs):
                numbers = [int(x) for x in rng.integers(0, 2**32, 3) >> int(rng.integers(0, 32))]
                memory = rng.integers(-(2**31), 2**31, WORDS).astype(np.int32)
                machine.reset()
                at = machine.place(memory)
                got = machine.call(f"f{k}", *numbers, at, 0)
                want = function(*numbers, memory.ctypes.data, 0)
                if got != want or not np.array_equal(machine.read(at, WORDS, np.int32), memory):
                    wrong.append(f"f{k}{tuple(numbers)} of seed {seed} at {level}: {got:#x}, here {want:#x}")
    return wrong


def main() -> None:
    """Prints the differences, and how many programs were compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong: list[str] = []
    for k in range(0, args.programs, IN_A_FILE):
        found = differences(args.seed + k, LEVELS[k // IN_A_FILE % len(LEVELS)])
        wrong += found
        for line in found:
            print(line, flush=True)
    print(f"{args.programs} programs, {len(wrong)} results differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
