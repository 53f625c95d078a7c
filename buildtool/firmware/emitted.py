"""The sources and the weight image of a plan, each made once for the same model, plan and target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack

from buildtool.base.session import Level

if TYPE_CHECKING:
    from buildtool.emit.image import WeightImage
    from buildtool.emit.sources import Sources
    from buildtool.firmware.planned import Planned

Text = tuple[dict[str, bytes], tuple[str, ...]]  # files, and which of them are to be compiled


def emitted(made: Planned, name: str) -> Sources:
    """What `buildtool.emit.sources.emit` makes of a planned network; what is known is not made again."""
    from buildtool.emit.ctext import identifier
    from buildtool.emit.sources import Sources, emit
    from buildtool.plan.codec import digest
    from buildtool.target.digest import emitting_digest

    made.session.tell("packing weights and writing sources")
    image = _image(made)
    files: list[Sources] = []

    def text() -> Text:
        files.append(emit(made.graph, made.plan, made.target, name, made.session, image))
        others = {path: data for path, data in files[0].files.items() if not path.endswith(".bin")}
        return others, files[0].c_files

    parts = {
        "model": made.model.digest,
        "plan": digest(made.plan),
        "target": emitting_digest(made.target),
        "name": name,
        "layout": image.layout,
    }
    others, c_files = made.session.keep(_CODE, parts, text)
    if files:
        return files[0]
    net = identifier(name)
    return Sources(net, {**others, f"{net}_weights.bin": image.data}, c_files, image)


def _image(made: Planned) -> WeightImage:
    """The packed weights."""
    from buildtool.emit.image import read_image, weight_image
    from buildtool.graph.topology import topology_digest
    from buildtool.target.digest import packing_digest

    kernels = made.target.named(made.plan.kernels)
    parts = {
        "model": made.model.digest,
        "topology": topology_digest(made.graph),
        "target": packing_digest(made.target),
        "kernels": list(made.plan.kernels),
    }
    level = Level("weights", lambda image: image.data, lambda data: read_image(data, made.graph, kernels))
    return made.session.keep(level, parts, lambda: weight_image(made.graph, kernels))


def _packed(text: Text) -> bytes:
    data: bytes = msgpack.packb([text[0], list(text[1])])
    return data


def _unpacked(data: bytes) -> Text:
    found: Any = msgpack.unpackb(data)
    files, c_files = found
    right = isinstance(files, dict) and all(isinstance(v, bytes) and "/" not in k for k, v in files.items())
    if not right or not all(name in files for name in c_files):
        raise ValueError("not emitted files")
    return files, tuple(c_files)


_CODE: Level[Text] = Level("code", _packed, _unpacked)
