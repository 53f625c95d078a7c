"""Reads which networks a linked firmware image has, with which plans, and compares its weights with a
model's.

The emitted C has a line of text in section .nn_identity (kernels/include/nn_identity.h). The weights are in
the image as they were emitted.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError, ToolError, suggest
from buildtool.firmware.sizes import open_elf

if TYPE_CHECKING:
    from buildtool.emit.image import WeightImage
    from buildtool.plan.types import Plan

MOST_IMAGE_BYTES = 1 << 30
SECTION = ".nn_identity"
TEST_FIRMWARE = "buildtool test firmware 1"
OVER_WIRE = f"{TEST_FIRMWARE} over a wire"
_NETWORK = re.compile(
    "buildtool network (?P<net>[a-z0-9_]+) plan (?P<plan>[0-9a-f]+) layout (?P<layout>[0-9a-f]+)"
    " compiler (?P<compiler>.*)"
)
_CRC = struct.Struct("<I")
_CRC_AT, _LAYOUT_AT = 16, 32  # in the weight image's header (kernels/include/nn_image.h)


@dataclass(frozen=True)
class Linked:
    """A network in a firmware image. `plan` and `layout` (of the weight image) are digests in hexadecimal."""

    net: str
    plan: str
    layout: str
    compiler: str

    def __str__(self) -> str:
        return f"'{self.net}' (plan {self.plan}, layout {self.layout})"


def networks(data: bytes) -> tuple[Linked, ...]:
    """Returns the networks in a firmware image. `data` is an ELF file; raises ToolError for other files."""
    return tuple(
        Linked(**match.groupdict()) for line in _read_lines(data) if (match := _NETWORK.fullmatch(line))
    )


def check_image(
    data: bytes, plan: Plan, weights: WeightImage, path: str, *, over_wire: bool = False
) -> Linked:
    """Returns the network in the image `data` that was made from `plan` and `weights`.

    Raises ToolError if the image has no such network, has other weights, or is not a test firmware, which
    reads inputs and writes outputs: over a link if `over_wire`, otherwise by files. `path` is for errors.
    """
    from buildtool.plan.codec import digest

    try:
        linked = _find_network(data, digest(plan), weights.layout.hex())
        _check_weights(data, weights)
        _check_firmware(_read_lines(data), over_wire)
    except BuildtoolError as error:
        raise error.at(path=path) from None
    return linked


def _check_firmware(lines: list[str], over_wire: bool) -> None:
    """Raises ToolError unless the image is a test firmware that answers over a link (`over_wire`) or by
    files.

    `lines` are those of the image's section .nn_identity.
    """
    if (OVER_WIRE if over_wire else TEST_FIRMWARE) in lines:
        return
    if OVER_WIRE in lines:
        raise ToolError(
            "the firmware image answers over a link, not by files",
            hint=[suggest(on="board"), suggest("in an emulator", wire="serial")],
        )
    if TEST_FIRMWARE in lines:
        text = "the firmware image answers by files, not over a link"
        raise ToolError(text, hint="build it with --wire serial")
    raise ToolError(
        "the firmware image is not a test firmware: it reads no inputs and writes no outputs",
        hint="use the .elf of 'buildtool build', or of NetworkFirmware in SCons",
    )


def _read_lines(data: bytes) -> list[str]:
    section = open_elf(data).get_section_by_name(SECTION)
    text = section.data() if section is not None else b""
    return [line.decode("ascii", "replace") for line in text.split(b"\0") if line]


def _find_network(data: bytes, plan: str, layout: str) -> Linked:
    linked = networks(data)
    if network := next((one for one in linked if (one.plan, one.layout) == (plan, layout)), None):
        return network
    if not linked:
        raise ToolError(
            "the firmware image has no network of buildtool",
            hint="link the emitted C file of the network, and keep section .nn_identity",
        )
    raise ToolError(
        f"the firmware image was not built from this plan: expected plan {plan}, layout {layout}; "
        f"found {', '.join(map(str, linked))}",
        hint="give the .plan that was emitted with the image, and the model it was emitted for",
    )


def _check_weights(data: bytes, weights: WeightImage) -> None:
    """Raises ToolError if the image does not have these weights. The error says which weights it has,
    if any.
    """
    loaded = [
        bytes(section.data())
        for section in open_elf(data).iter_sections()
        if section["sh_flags"] & 2 and section["sh_type"] != "SHT_NOBITS"
    ]
    if any(weights.data in section for section in loaded):
        return
    expected = _CRC.unpack_from(weights.data, _CRC_AT)[0]
    # imported here, as it imports numpy, which the size report does not need
    from buildtool.emit.image import HEADER_BYTES, MAGIC

    headers = (
        section[match.start() : match.start() + HEADER_BYTES]
        for section in loaded
        for match in re.finditer(re.escape(MAGIC), section)
    )
    others = [_CRC.unpack_from(h, _CRC_AT)[0] for h in headers if h[_LAYOUT_AT:].startswith(weights.layout)]
    if expected in others:
        text = "the firmware image's weights are damaged: their CRC-32 is the model's, their bytes are not"
        raise ToolError(text)
    if not others:
        text = "the firmware image has no weights of this network"
        raise ToolError(text, hint="link the emitted NAME_weights.S with it")
    sums = ", ".join(f"{crc:08x}" for crc in others)
    raise ToolError(
        f"the firmware image has other weights than the model: expected CRC-32 {expected:08x}, found {sums}",
        hint="build the image again from this model (touch the model if the build has nothing to do)",
    )
