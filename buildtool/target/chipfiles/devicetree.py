"""Reads device trees of Zephyr and Linux, as far as they describe cores, memories, clocks and serial ports.

It reads nodes, labels, properties, references (&label), /delete-node/ and #include of files that lie beside
the file or below a folder above it. Other lines of the preprocessor are skipped; of its macros only sizes and
frequencies (DT_SIZE_K and similar) are known. Addresses have one cell; `ranges` are not applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from buildtool.base.errors import UsageError
from buildtool.target.chipfiles.facts import ChipFacts, Region, add_region, evaluate
from buildtool.target.hardware import MemoryKind

MOST_FILES, MOST_DEPTH, MOST_TOKENS = 64, 32, 2_000_000
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"""|(?P<include>^[ \t]*\#[ \t]*include[ \t]*[<"][^>"\n]+[>"]|/include/[ \t]*"[^"\n]+")"""
    r"""|^[ \t]*\#(?!(?:address|size|[a-z-]*cells))[^\n]*|(?P<token>"(?:[^"\\]|\\.)*(?:"|\Z)|<[^>]*(?:>|\Z)"""
    r"""|\[[^\]]*(?:\]|\Z)|/[a-z-]+/|[{};=,:]|&\{[^}]*(?:\}|\Z)|[&\w#@.?+\-/]+(?:,[\w#.+\-]+)*)""",
    re.DOTALL | re.MULTILINE,
)
_MACRO = re.compile(r"\b(DT_SIZE_K|DT_SIZE_M|DT_FREQ_K|DT_FREQ_M)\s*\(\s*([0-9]{1,12})\s*\)")
_UNIT = {"DT_SIZE_K": 1 << 10, "DT_SIZE_M": 1 << 20, "DT_FREQ_K": 1000, "DT_FREQ_M": 1000_000}
_CELL = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\S+")
Find = Callable[[str], bytes | None]


@dataclass
class Node:
    """A node of a device tree: its properties as text, its children by name, its labels, and the node `above`
    it.
    """

    name: str
    properties: dict[str, str] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    above: Node | None = None

    def cells(self, name: str) -> list[int | None]:
        """Returns the numbers in the first <...> list of the property `name`; None for each number that is
        not known.
        """
        lists = re.findall(r"<([^>]*)>", self.properties.get(name, ""))
        text = _MACRO.sub(lambda m: str(int(m[2]) * _UNIT[m[1]]), lists[0] if lists else "")
        return [evaluate(cell) for cell in _CELL.findall(text)]

    def says(self, name: str, text: str) -> bool:
        """Whether the property `name` contains `text`."""
        return text in self.properties.get(name, "")

    def below(self, *, disabled: bool = False) -> Iterator[Node]:
        """Yields the node and all nodes below it. Disabled nodes and those below them are left out, unless
        `disabled`.
        """
        waiting = [self]  # not recursive: &label may nest nodes more deeply than the text does
        while waiting:
            node = waiting.pop()
            if disabled or not node.says("status", '"disabled"'):
                yield node
                waiting.extend(reversed(node.children.values()))


def _tokens(text: str, find: Find, files: list[str]) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if include := match["include"]:
            name = re.split(r'[<"]', include)[1].rstrip('>"')
            data = find(name) if name not in files and len(files) < MOST_FILES else None
            if data is not None:
                files.append(name)
                yield from _tokens(data.decode("utf-8", "replace"), find, files)
        elif match["token"]:
            yield match["token"]


class _Tree:
    """The nodes of a device tree: its root, and the nodes with labels."""

    def __init__(self) -> None:
        self.root = Node("/")
        self.labels: dict[str, Node] = {}

    def read(self, tokens: list[str]) -> None:
        """Adds the nodes in the tokens of a file. Raises UsageError if a node has no end, or nodes are nested
        too deeply.
        """
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token == "/" and tokens[at + 1 : at + 2] == ["{"]:
                at = self._body(self.root, tokens, at + 2, 0)
            elif token.startswith("&") and "{" in tokens[at + 1 : at + 2]:
                node = self.labels.setdefault(token[1:], Node(token))
                at = self._body(node, tokens, at + 2, 0)
            elif token == "/delete-node/":
                self._delete(
                    self.labels.pop(tokens[at + 1].lstrip("&"), None) if at + 1 < len(tokens) else None
                )
                at += 2
            else:  # /dts-v1/; and similar
                at += 1

    def _delete(self, node: Node | None) -> None:
        if node and node.above and node.above.children.get(node.name) is node:
            del node.above.children[node.name]

    def _body(self, node: Node, tokens: list[str], at: int, depth: int) -> int:
        """Reads the body of `node`, whose first token is at the index `at`. Returns the index after its
        closing brace.
        """
        if depth > MOST_DEPTH:
            raise UsageError(f"the device tree is nested more than {MOST_DEPTH} levels deep")
        words: list[str] = []
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == "{":
                at = self._body(self._child(node, words), tokens, at, depth + 1)
                words = []
            elif token == ";":
                self._property(node, words)
                words = []
            elif token == "}":
                return at
            else:
                words.append(token)
        raise UsageError("the device tree ends within a node")

    def _child(self, node: Node, words: list[str]) -> Node:
        name = words[-1] if words else ""
        child = node.children.setdefault(name, Node(name, above=node))
        for label in (word for word, colon in pairwise(words) if colon == ":"):
            self.labels[label] = child
            child.labels.append(label)
        return child

    def _property(self, node: Node, words: list[str]) -> None:
        match words:
            case ["/delete-node/", name]:
                node.children = {
                    child: inner
                    for child, inner in node.children.items()
                    if child != name and name.lstrip("&") not in inner.labels
                }
            case ["/delete-property/", name]:
                node.properties.pop(name, None)
            case [name, "=", *values]:
                node.properties[name] = " ".join(values)
            case [name]:
                node.properties[name] = ""


def read_device_tree(text: str, find: Find) -> ChipFacts:
    """Returns the facts in the text of a .dts or .dtsi file. `find` returns the content of an included file,
    or None.

    Raises UsageError if the text is not a device tree.
    """
    missing: list[str] = []

    def search(name: str) -> bytes | None:
        data = find(name)
        if data is None and name.endswith((".dtsi", ".dts")):
            missing.append(name)
        return data

    tree, tokens = _Tree(), []
    for token in _tokens(text, search, []):
        tokens.append(token)
        if len(tokens) > MOST_TOKENS:
            raise UsageError("the device tree is too large")
    tree.read(tokens)
    regions, labels = _regions(tree.root)
    remarks = (f"Included, and not found beside the file: {', '.join(missing[:6])}.",) if missing else ()
    if not regions and not tree.root.children:
        raise UsageError("this is not a device tree: it has no nodes", hint="; ".join(remarks))
    chosen = tree.root.children.get("chosen", Node(""))
    core, fpu = _core(tree.root)
    return ChipFacts(
        chip=_chip(tree.root),
        core=core,
        fpu=fpu,
        clock_hz=_clock(tree),
        regions=tuple(regions),
        code=labels.get(chosen.properties.get("zephyr,flash", "").lstrip("&"), ""),
        arena=labels.get(chosen.properties.get("zephyr,sram", "").lstrip("&"), ""),
        uarts=tuple(_uarts(tree.root)),
        remarks=remarks,
    )


def _regions(root: Node) -> tuple[list[Region], dict[str, str]]:
    """Returns the memories, and a table from the labels of their nodes to the memories' names."""
    regions: list[Region] = []
    names: dict[str, str] = {}
    for node in root.below():
        is_flash = node.says("compatible", "nv-flash") or re.match(r"flash\d*@", node.name)
        is_ram = (
            node.says("compatible", "mmio-sram")
            or node.says("device_type", '"memory"')
            or node.says("compatible", "tcm")
            or re.match(r"(memory|sram\d*)@", node.name)
        )
        reg = node.cells("reg")
        if not (is_flash or is_ram) or len(reg) < 2 or reg[0] is None or reg[1] is None:
            continue
        kind = MemoryKind.ROM if is_flash and not is_ram else MemoryKind.RAM
        erase = next(iter(node.cells("erase-block-size")), 0) or 0
        before = len(regions)
        add_region(regions, (node.labels or [node.name.partition("@")[0]])[0], kind, reg[0], reg[1], erase)
        if len(regions) > before:
            names |= dict.fromkeys(node.labels, regions[-1].name)
    return regions, names


def _core(root: Node) -> tuple[str, str]:
    """Returns the name of the core, and that of its floating-point unit; "" for what is not known."""
    for node in root.below():
        if match := re.search(r'"arm,cortex-m([0-9]+)(\+|plus)?(f?)"', node.properties.get("compatible", "")):
            return f"cortex-m{match[1]}{'plus' if match[2] else ''}", ""
        if isa := re.search(r'"(rv(?:32|64)[a-z]+)', node.properties.get("riscv,isa", "")):
            return isa[1], ""
    return "", ""


def _chip(root: Node) -> str:
    """Returns the name, without the vendor, in the root's property `compatible`; "" if there is none."""
    match = re.search(r'"[^",]*,([A-Za-z0-9_.-]+)"', root.properties.get("compatible", ""))
    return match[1] if match else ""


def _clock(tree: _Tree) -> int:
    """Returns the frequency of the core's clock, in Hz: that of a cpu node, or of the node `rcc`; 0 if it is
    not known.
    """
    cpus = tree.root.children.get("cpus", Node(""))
    for node in (*cpus.below(), *filter(None, [tree.labels.get("rcc")])):
        if hz := next(iter(node.cells("clock-frequency")), None):
            return hz
    return 0


def _uarts(root: Node) -> Iterator[tuple[str, int]]:
    for node in root.below(disabled=True):
        base = next(iter(node.cells("reg")), None)
        if base and re.match(r"(serial|uart|usart)\d*@", node.name):
            yield (node.labels or [node.name])[0], base
