"""A reader of the pages: a folder with small files in place of those that the commands name."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from litert import run_graph
from onnxnets import Qdq
from pagecommands import Command
from paths import ROOT

from buildtool import zoo
from buildtool.base.folders import CACHE
from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder

SMALL = ("ds_cnn", "resnet8")  # other networks of the zoo stand for the small one
PLACEHOLDERS = {
    **dict.fromkeys(("MODEL", "NETWORK", "FLOAT", "NET"), "net.tflite"),
    **dict.fromkeys(("D", "DATA"), "net.npz"),
    **{"DIR": "out", "ELF": "net.elf", "FILE": "net.npz", "FOLDER": "pictures", "N": "2", "NAME": "net"},
    **{"PLUGIN": "host", "WORD": "plan"},
}
BOARDS = ("cortex-m4", "nucleo-f767zi", "stm32h747i-disco")  # `B` stands for one of these
# Options before the names of files that a command writes.
_OUTPUTS = ("-o", "--out", "--trace", "--sarif", "--depfile", "--stamp")
_MODEL = ("net.tflite", "--board", "cortex-m4")
# Files that buildtool makes: by which command, and whether it prints them.
_MADE = {
    "net.elf": ("build", *_MODEL, "--out", "."),
    "net.plan": ("plan", *_MODEL, "--out", "net.plan"),
    "net.html": ("report", *_MODEL, "--out", "net.html"),
    "net.jsonl": ("sweep", "sweep.toml", "--jobs", "0", "--out", "swept"),
    "net.json": ("profile", *_MODEL, "--json"),
}

_CHIP = """/ { cpu0: cpu@0 { compatible = "arm,cortex-m4f"; };
    sram0: memory@20000000 { compatible = "mmio-sram"; reg = <0x20000000 DT_SIZE_K(192)>; };
    flash0: flash@8000000 { compatible = "soc-nv-flash"; reg = <0x08000000 DT_SIZE_M(3)>; }; };
"""


class Reader:
    """`folder`: where commands run. A code block begins with an empty folder."""

    def __init__(self, place: Path) -> None:
        self.folder, self._kinds = place / "reader", place / "kinds"
        self._session = Session()
        self._block: tuple[str, int] | None = None
        self.asked: set[tuple[object, ...]] = set()  # what an SConstruct was read with
        (self._kinds / "pictures").mkdir(parents=True)
        self._write_network(self._kinds)
        net = Qdq((1, 2, 4, 4))
        model = net.model([net.q(net.node("Relu", [net.conv(net.x, 2, 2)]))])
        (self._kinds / "net.onnx").write_bytes(model.SerializeToString())
        (self._kinds / "net.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,32\n")
        (self._kinds / "net.toml").write_text('extends = "cortex-m4"\n')
        (self._kinds / "sweep.toml").write_text('networks = ["net.tflite"]\nboards = ["cortex-m4"]\n')
        (self._kinds / "net.dtsi").write_text(_CHIP)
        (self._kinds / "net.txt").write_text("0\n1\n")
        with wave.open(str(self._kinds / "net.wav"), "wb") as sound:
            sound.setparams((1, 2, 16000, 0, "NONE", ""))
            sound.writeframes(bytes(3200))

    def _write_network(self, folder: Path) -> None:
        """Writes a network of two classes, and pictures with the classes that it sees in them."""
        net = NetBuilder(26, "wake")
        x = net.conv(net.input((1, 16, 16, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
        graph = net.graph([net.dense(net.mean(net.conv(x, 16)), 2)])
        (folder / "net.tflite").write_bytes(write_model(graph))
        colours = np.random.default_rng(1).integers(-128, 128, (16, 1, 1, 1, 3)).astype(np.int8)
        images = np.tile(colours, (1, 1, 16, 16, 1))
        labels = [int(np.argmax(run_graph(graph, [image])[graph.outputs[0]])) for image in images]
        np.savez(folder / "net.npz", x=images[:, 0], labels=labels)
        for label in (0, 1):
            (folder / f"pictures/{label}").mkdir()
            np.save(folder / f"pictures/{label}/1.npy", images[labels.index(label), 0])

    def run(self, words: Sequence[str], folder: Path | None = None) -> tuple[int, str, str]:
        """Runs a command line of buildtool in this process. Returns its status, its output and its errors."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder or self.folder), pytest.MonkeyPatch.context() as patch:
            if words[0] == "cache":  # never this user's
                patch.setenv(CACHE, str(self._kinds / "cache"))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                status = run(words, self._session)
        return status, out.getvalue(), errors.getvalue()

    def fill(self, words: Sequence[str], board: str) -> list[str]:
        """Returns the words with what stands for placeholders and for large networks."""
        words = [w for word in words for w in (("MODEL", "--board", "B") if word == "..." else (word,))]
        known = {**PLACEHOLDERS, "B": board, **dict.fromkeys(set(zoo.names()) - set(SMALL), "net.tflite")}
        filled = []
        for word in words:
            name, value = re.fullmatch(r"((?:\w+=)?)(.*)", word).groups()  # type: ignore[union-attr]
            if words[0] == "example":  # its folder has to be new
                value = {"NAME": "cmake", "DIR": "new"}.get(value, value)
            assert value in known or not re.fullmatch(r"[A-Z]{2,}", value), f"no rule covers {value}"
            filled.append(name + known.get(value, value).replace("~/", f"{self.folder}/"))
        return filled

    def provide(self, words: Sequence[str], command: Command) -> None:
        """Makes the files that a command reads and no earlier command of the block has written."""
        self._begin(command)
        pairs = [
            (before, w) for before, w in zip(["", *words], words, strict=False) if before not in _OUTPUTS
        ]
        paths = [self.folder / word.rpartition("=")[2] for _, word in pairs]
        for (before, _), path in zip(pairs, paths, strict=True):
            if path.exists() or not (path.suffix or before == "--data"):
                continue
            alike = [p for p in paths if p.suffix == path.suffix and p.is_file()]
            kind = self._kinds / (f"net{path.suffix}" if path.suffix else "pictures")
            if "sweep" in words and path.suffix == ".toml":
                shutil.copy(self._kinds / "net.tflite", self.folder)
                kind = self._kinds / "sweep.toml"
            if (ours := ROOT / path.relative_to(self.folder)).is_file():  # a file of the checkout
                kind = ours
            if "diff" in words and alike:  # of the same kind of answer
                kind = alike[0]
            if kind.name in _MADE and not kind.exists():
                status, out, errors = self.run(_MADE[kind.name], self._kinds)
                assert status == 0, errors
                if kind.suffix == ".jsonl":
                    shutil.copy(self._kinds / "swept/results.jsonl", kind)
                if not kind.exists():
                    kind.write_text(out)
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind.is_dir():
                shutil.copytree(kind, path)
            elif kind.is_file():
                shutil.copy(kind, path)

    def _begin(self, command: Command) -> None:
        """Empties the folder if another code block begins."""
        if self._block != (command.page, command.block):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            self._block = command.page, command.block
