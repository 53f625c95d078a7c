"""The vendor's flash container: an independent reader, made after its format, reads what we write."""

import random
import struct
from itertools import pairwise

import pytest
from buildtool_plugins.xcore.xtc import Entry, pack


class Damaged(Exception):
    """What the file's reader refuses."""


def nibbles(data):
    return bytes(int(f"{byte:02x}"[::-1], 16) for byte in data)


def parts_of(data):
    """Every network of a container's file: its model and what begins behind that, by the offsets alone."""
    memory = nibbles(data)
    if [*memory[:8]] != [0xFF, 0, *[0x0F] * 6] or memory[32:36] != b"\x01\x02\xfe\xfd":
        raise Damaged("the pattern or the version")
    if memory[8:16] != b"\xff\0" * 4 or memory[16:24] != b"\x31\xf7\xce\x08" * 2:
        raise Damaged("the pattern")
    if memory[24:32] != b"\x9c\x63" * 4:
        raise Damaged("the pattern")
    if len(memory) == 36:
        return []
    # The number of networks is not written: the first model begins where the offsets end.
    first = struct.unpack_from("<I", memory, 36)[0]
    count, rest = divmod(first - 36, 16)
    if rest or count < 1 or first > len(memory):
        raise Damaged("the first offset")
    table = [struct.unpack_from("<4I", memory, 36 + 16 * i) for i in range(count)]
    ends = [*(offsets[0] for offsets in table[1:]), len(memory)]
    found = []
    for (model, params, operators, xip), end in zip(table, ends, strict=True):
        if not model + 4 <= params <= operators <= xip <= end:
            raise Damaged("offsets that do not ascend")
        if struct.unpack_from("<I", memory, model)[0] != params - model - 4:
            raise Damaged("the model's length")
        cuts = (model + 4, params, operators, xip, end)
        found.append(tuple(memory[begin:stop] for begin, stop in pairwise(cuts)))
    return found


def as_parts(entry):
    return (entry.model, entry.params, entry.operators, entry.xip)


@pytest.mark.parametrize("seed", range(20))
def test_an_independent_reader_finds_every_part(seed):
    chance = random.Random(seed)

    def some():
        return chance.randbytes(chance.choice((0, 1, 15, 16, 4097)))

    entries = [Entry(some(), some(), some(), some()) for _ in range(chance.randint(0, 5))]
    assert parts_of(pack(entries)) == [as_parts(entry) for entry in entries]


def test_the_bytes_of_one_small_network():
    data = pack([Entry(params=b"\x12\x34", model=b"\xab")])
    pattern = "ff00f0f0f0f0f0f0 ff00ff00ff00ff00 137fec80137fec80 c936c936c936c936"
    rest = "1020efdf 43000000 93000000 b3000000 b3000000 10000000 ba 2143"
    assert data == bytes.fromhex(pattern + rest)


@pytest.mark.parametrize("place", [0, 20, 33, 36, 40, 52, -1])
def test_a_damaged_file_is_refused_or_gives_other_parts(place):
    entry = Entry(b"parameters", b"model")
    data = bytearray(pack([entry]))
    data[place] ^= 0x10
    try:
        assert parts_of(bytes(data)) != [as_parts(entry)]
    except (Damaged, struct.error):
        assert place != -1, "the last byte is of the parameters, which have no checksum"
