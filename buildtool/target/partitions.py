"""Computes where firmware and weights lie in flash: the regions of a linker script, from a board's data."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.target.hardware import FlashImage, Memory
from buildtool.target.types import Board

PARTITION = "_partition"  # suffix of a memory's name: the region of weights in the code's memory


@dataclass(frozen=True)
class Region:
    """A region of a linker script: its memory, its start as an offset there, and its size, in bytes."""

    name: str
    memory: Memory
    start: int
    size: int

    @property
    def origin(self) -> int:
        """The region's first address."""
        return self.memory.base + self.start


def boundary(memory: Memory, at: int) -> int:
    """Returns the smallest offset, `at` or above, at which an erase block of the memory begins; `at` if its
    erase blocks are not known.
    """
    start = 0
    for count, block in memory.erase:
        if (count, block) == memory.erase[-1] or at <= start + count * block:
            return max(start, at + -at % block)
        start += count * block
    return at


def weights_start(board: Board) -> int | None:
    """Returns the offset of the weights' partition in their memory; None if the weights follow the
    firmware.
    """
    return partition_start(board.image, board.memory(board.code), board.memory(board.weights))


def partition_start(image: FlashImage, code: Memory, weights: Memory) -> int | None:
    """Returns the same as `weights_start`, for a flash image and the memories of code and weights."""
    if image.weights_start is not None:
        return image.weights_start
    if weights != code:
        return 0
    if image.mcuboot is not None:
        return boundary(weights, image.code_start + image.mcuboot.slot_bytes)
    return None


def regions(board: Board) -> tuple[Region, ...]:
    """Returns every memory as a region, without the boot loader's part.

    The last region is the weights' partition, if the weights have a fixed place in the code's memory.
    """
    rows, image, start = [], board.image, weights_start(board)
    for memory in board.memories:
        begin, end = 0, memory.size
        weights = start if memory.name == board.weights else None
        if memory.name == board.code:
            begin = image.code_start
            if image.mcuboot is not None:
                end = begin + image.mcuboot.slot_bytes
                begin += image.mcuboot.header_bytes
            elif weights is not None and weights > begin:
                end = weights
        elif weights is not None:
            begin = weights
        rows.append(Region(memory.name, memory, begin, end - begin))
    if board.weights == board.code and start is not None:
        memory = board.memory(board.weights)
        end = memory.size if start >= image.code_start else image.code_start
        rows.append(Region(memory.name + PARTITION, memory, start, end - start))
    return tuple(rows)


def weights_region(board: Board) -> Region:
    """Returns the region of the weights."""
    by_name = {region.name: region for region in regions(board)}
    return by_name.get(board.weights + PARTITION) or by_name[board.weights]


def weights_follow_firmware(board: Board) -> bool:
    """Whether the weights lie directly after the firmware, in the same memory."""
    return board.weights == board.code and weights_start(board) is None


def weights_before_code(board: Board) -> bool:
    """Whether the weights' partition lies before the firmware, in the same memory."""
    start = weights_start(board)
    return board.weights == board.code and start is not None and start < board.image.code_start


def weights_room(board: Board) -> int:
    """Returns the largest possible size of a weight image in bytes: that of its slot, or of its region. If
    the weights follow the firmware in this region, one erase block is left out for the code.
    """
    region = weights_region(board)
    code = boundary(region.memory, region.start + 1) - region.start if weights_follow_firmware(board) else 0
    return board.image.slot_bytes or max(region.size - code, 0)


def blocks_after(memory: Memory) -> tuple[tuple[int, int], ...]:
    """Returns pairs (end, bytes of a block) in ascending order: from the previous `end` up to this one, erase
    blocks have this size.
    """
    rows, at = [], 0
    for count, block in memory.erase:
        at += count * block
        rows.append((at, block))
    return tuple(rows)
