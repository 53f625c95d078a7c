"""Builds and runs the packages of `buildtool build --bundle=SYSTEM` with the real systems; prints a table.

    python -m benchmarks.bundles --riot RIOT --pico-sdk PICO --rp2040js RP2040JS --idf IDF
        --pack PACK.xsd --packchk PACKCHK --csolution SCHEMAS --kconfig

RIOT, PICO, RP2040JS and IDF are checkouts (RIOT's and ESP-IDF's own tools have to be in PATH; rp2040js has
`tsx` in its node_modules), PACK.xsd is that of the CMSIS-Pack specification, PACKCHK the program packchk, and
SCHEMAS the folder of csolution's JSON schemas. A system whose option is not given is not tried. Each package
has ds_cnn; its example compares one output with the reference. PICO_WORDS and IDF_WORDS have more arguments
for their CMake.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

NET = "ds_cnn"
SECONDS = 120  # until an example has printed its line
SMALL = ("--image", "stream", "--objective", "ram")
# Board of RIOT -> the board of the package, and the emulator's command (the program follows).
RIOT = {
    "native64": ("host", []),
    "microbit": ("host", ["qemu-system-arm", "-machine", "microbit", "-device", "loader,file=@"]),
    "hifive1": ("hifive1", ["qemu-system-riscv32", "-machine", "sifive_e", "-kernel", "@"]),
}
QEMU = ["-serial", "stdio", "-monitor", "none", "-display", "none"]
SCRIPT = """\
import * as fs from 'fs';
import { Simulator } from '@/src/index.js';
import { bootromB1 } from '@/demo/bootrom.js';
import { loadHex } from '@/demo/intelhex.js';
const mcu = new Simulator();
mcu.rp2040.loadBootrom(bootromB1);
loadHex(fs.readFileSync(process.argv[2], 'utf-8'), mcu.rp2040.flash, 0x10000000);
mcu.rp2040.uart[0].onByte = (value: number) => process.stdout.write(String.fromCharCode(value));
mcu.rp2040.core.PC = 0x10000000;
mcu.execute();
"""


class Row(NamedTuple):
    """What was run of a system, on which machine, and the result."""

    system: str
    tools: str
    target: str
    result: str


def bundle(out: Path, system: str, board: str, *words: str) -> Path:
    """Writes a package and returns its folder."""
    net = ["build", NET, "--board", board, "--name", "wake", f"--bundle={system}", "--out", str(out)]
    run([sys.executable, "-m", "buildtool", *net, *words], out.parent)
    return out


def run(words: Sequence[str], folder: Path, **variables: str) -> str:
    """Returns what a program prints. If it fails, ends this benchmark with the program's output."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def first_line(words: Sequence[str], folder: Path) -> str:
    """Returns the line with which the example reports its result, and ends the example.

    Some examples never end by themselves.
    """
    program = subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    assert program.stdout is not None
    os.set_blocking(program.stdout.fileno(), False)
    said, end = b"", time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            said += program.stdout.read(4096) or b""
            if found := re.search(rb"(?m)wake: (.*(?:EQUAL|DIFFER|status).*)\n", said):
                return found[1].decode().strip()
            time.sleep(0.1)
    finally:
        program.kill()
        program.wait()
    return f"NO LINE: {said[-300:].decode(errors='replace')}"


def riot(path: Path, folder: Path) -> Iterator[Row]:
    """Builds the example with RIOT's make for the host board and two boards of QEMU; yields the results."""
    for board, (ours, emulator) in RIOT.items():
        example = bundle(folder / f"riot-{board}/nn", "riot", ours, *SMALL) / "example"
        libc = {"FEATURES_BLACKLIST": "newlib"} if board == "hifive1" else {}  # Debian has picolibc
        run(["make", "-j2"], example, RIOTBASE=str(path), BOARD=board, **libc)
        elf = f"bin/{board}/nn_example.elf"
        words = [word.replace("@", elf) for word in [*emulator, *QEMU]] if emulator else [elf]
        yield Row(
            "riot",
            "make, gcc",
            f"{board}{', ' + emulator[0] if emulator else ''}",
            first_line(words, example),
        )


def pico(path: Path, rp2040js: Path | None, folder: Path) -> Iterator[Row]:
    """Builds the example with the pico-sdk's CMake for the host and the RP2040; yields the results."""
    example = bundle(folder / "pico/nn", "pico", "host") / "example"
    for name, words in (
        ("host", ["-DPICO_PLATFORM=host"]),
        ("rp2040", ["-DPICO_BOARD=pico", "-DPICO_NO_PICOTOOL=1", *os.environ.get("PICO_WORDS", "").split()]),
    ):
        run(["cmake", "-S", ".", "-B", name, f"-DPICO_SDK_PATH={path}", *words], example)
        run(["cmake", "--build", name, "-j2"], example)
    yield Row("pico", "CMake, gcc", "this machine", first_line(["host/nn_example"], example))
    if rp2040js is None:
        yield Row("pico", "CMake, arm-none-eabi-gcc", "RP2040", "linked, not run")
        return
    script = rp2040js / "nn_example.ts"
    script.write_text(SCRIPT.replace("@", str(rp2040js)))
    line = first_line(["npx", "tsx", str(script), str(example / "rp2040/nn_example.hex")], rp2040js)
    script.unlink()
    yield Row("pico", "CMake, arm-none-eabi-gcc", "RP2040, rp2040js", line)


def idf(path: Path, folder: Path) -> Iterator[Row]:
    """Builds the example with ESP-IDF's CMake for its target linux; yields the result."""
    example = bundle(folder / "idf/nn", "idf", "host") / "example"
    words = [
        "cmake",
        "-G",
        "Ninja",
        "-S",
        ".",
        "-B",
        "build",
        "-DIDF_TARGET=linux",
        "-DPYTHON_DEPS_CHECKED=1",
    ]
    words += os.environ.get("IDF_WORDS", "").split()
    run(words, example, IDF_PATH=str(path), IDF_COMPONENT_MANAGER="0")
    run(["cmake", "--build", "build"], example, IDF_PATH=str(path), IDF_COMPONENT_MANAGER="0")
    yield Row("idf", "CMake, gcc", "target linux", first_line(["build/nn_example.elf"], example))


def pack(schema: Path, packchk: Path | None, folder: Path) -> Iterator[Row]:
    """Checks the descriptions of packs with PACK.xsd and packchk; yields the results."""
    xmlschema: Any = importlib.import_module("xmlschema")
    judge = xmlschema.XMLSchema(str(schema))
    for board in ("host", "cortex-m4", "cortex-m55"):
        out = bundle(folder / f"pack-{board}/nn", "cmsis-pack", board)
        errors = [error.reason for error in judge.iter_errors(str(out / "buildtool.networks.pdsc"))]
        yield Row("cmsis-pack", f"PACK.xsd {judge.version}", f"pdsc of {board}", "; ".join(errors) or "valid")
        if packchk is not None:
            shown = run([str(packchk), str(out / "buildtool.networks.pdsc"), "--xsd", str(schema)], folder)
            *_, found = re.findall(r"Found (.*)\.", shown)
            yield Row("cmsis-pack", "packchk", f"pack of {board}", found)


def csolution(schemas: Path, folder: Path) -> Iterator[Row]:
    """Checks layer, solution and project with the JSON schemas of csolution; yields the results."""
    yaml: Any = importlib.import_module("yaml")
    jsonschema: Any = importlib.import_module("jsonschema")
    referencing: Any = importlib.import_module("referencing")
    read = {path.name: json.loads(path.read_text()) for path in schemas.glob("*.schema.json")}
    draft7 = importlib.import_module("referencing.jsonschema").DRAFT7
    resources = []
    for name, text in read.items():
        resource = referencing.Resource.from_contents(text, default_specification=draft7)
        base = str(text.get("$id", "")).rpartition("/")[0]
        resources += [
            (place, resource) for place in (name, f"./{name}", f"{base}/{name}", text.get("$id", name))
        ]
    registry = referencing.Registry().with_resources(resources)
    out = bundle(folder / "csolution/nn", "cmsis-pack", "cortex-m4")
    for path in sorted(out.rglob("*.yml")):
        schema = read[f"{path.name.split('.')[-2]}.schema.json"]
        judge = jsonschema.Draft7Validator(schema, registry=registry)
        errors = [error.message[:200] for error in judge.iter_errors(yaml.safe_load(path.read_text()))]
        yield Row("cmsis-pack", "csolution's schemas", path.name, "; ".join(errors) or "valid")


def kconfig(folder: Path) -> Iterator[Row]:
    """Reads the Kconfig with Zephyr's parser; yields the value that a network's option gets from the
    menu's.
    """
    kconfiglib: Any = importlib.import_module("kconfiglib")
    out = bundle(folder / "zephyr/nn", "zephyr", "host")
    options = kconfiglib.Kconfig(str(out / "zephyr/Kconfig"))
    options.syms["NN_NETWORKS"].set_value(2)
    value = options.syms["NN_NETWORK_WAKE"].str_value
    yield Row(
        "zephyr",
        f"kconfiglib {'.'.join(map(str, kconfiglib.VERSION))}",
        "Kconfig",
        f"NN_NETWORK_WAKE={value}",
    )


def main() -> None:
    """Runs the systems whose options are given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("riot", "pico-sdk", "rp2040js", "idf", "pack", "packchk", "csolution"):
        parser.add_argument(f"--{name}", type=lambda text: Path(text).resolve(), metavar="PATH")
    parser.add_argument("--kconfig", action="store_true")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows += riot(args.riot, folder) if args.riot else []
        rows += pico(args.pico_sdk, args.rp2040js, folder) if args.pico_sdk else []
        rows += idf(args.idf, folder) if args.idf else []
        rows += pack(args.pack, args.packchk, folder) if args.pack else []
        rows += csolution(args.csolution, folder) if args.csolution else []
        rows += kconfig(folder) if args.kconfig else []
    print("\n".join(f"| {' | '.join(row)} |" for row in [Row("system", "tools", "target", "result"), *rows]))


if __name__ == "__main__":
    main()
