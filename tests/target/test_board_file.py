import os
import tomllib

import pytest
from loaded import own_board
from mistakes import mistakes

from buildtool.base.errors import TargetError
from buildtool.base.sizes import parse_size
from buildtool.base.toml import place, read_toml
from buildtool.target.registry import board_chain, load_board

WHOLE = """
title = "A board"
family = "cortex_m"
stack_bytes = "4K"
reserved_bytes = 1024
alignment = 32
clock_hz = 16000000
toolchains = ["gcc"]
[core]
name = "cortex-m4"
isa = "armv7e-m"
families = ["reference"]
cflags = ["-mcpu=cortex-m4"]
defines = ["X=1"]
[memory.flash]
kind = "rom"
base = 0x08000000
size = "1M"
bandwidth = 50000000
[memory.ram]
kind = "ram"
base = 0x20000000
size = "128K"
[roles]
code = "flash"
data = "ram"
arena = "ram"
weights = "flash"
[emulator]
kind = "qemu-system-arm"
machine = "netduinoplus2"
options = ["-m", "1"]
"""


def load(tmp_path, text, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text)
    return load_board(str(path))


def test_every_field_of_a_whole_file_arrives(tmp_path):
    board = load(tmp_path, WHOLE)
    assert (board.name, board.title, board.family) == ("mine", "A board", "cortex_m")
    assert (board.stack_bytes, board.reserved_bytes, board.alignment) == (4096, 1024, 32)
    assert (board.clock_hz, board.toolchains) == (16_000_000, ("gcc",))
    core = board.core
    assert (core.name, core.isa, core.families) == ("cortex-m4", "armv7e-m", ("reference",))
    assert (core.cflags, core.defines) == (("-mcpu=cortex-m4",), ("X=1",))
    flash, ram = board.memories
    assert (flash.name, flash.kind, flash.base, flash.size) == ("flash", "rom", 0x08000000, 1 << 20)
    assert (flash.bandwidth, ram.bandwidth) == (50_000_000, 0)
    assert (ram.name, ram.kind, ram.base, ram.size) == ("ram", "ram", 0x20000000, 128 * 1024)
    assert (board.code, board.data, board.arena, board.weights) == ("flash", "ram", "ram", "flash")
    assert board.emulator is not None
    assert (board.emulator.kind, board.emulator.machine) == ("qemu-system-arm", "netduinoplus2")
    assert board.emulator.options == ("-m", "1")


def test_files_may_extend_each_other_by_relative_path_but_not_in_a_circle(tmp_path):
    (tmp_path / "family").mkdir()
    own_board(tmp_path / "family", 'stack_bytes = "2K"\nreserved_bytes = 8', name="base")
    board = load(tmp_path, 'extends = "family/base.toml"\nreserved_bytes = 16\n')
    assert (board.stack_bytes, board.reserved_bytes) == (2048, 16)
    mine = tmp_path / "mine.toml"
    assert board_chain(str(mine))[:2] == (mine, tmp_path / "family/base.toml")
    (tmp_path / "other.toml").write_text('extends = "mine.toml"\n')
    with pytest.raises(TargetError, match=r"mine\.toml -> other\.toml -> mine\.toml"):
        load(tmp_path, 'extends = "other.toml"\n')
    assert board_chain(str(mine)) == (mine, tmp_path / "other.toml")


MISTAKES = r"""
title = "A board" |  | key 'title' is missing
title = "A board" | titel = "x" | unknown key 'titel' | did you mean 'title'?
title = "A board" | title = 3 | title: must be a string
family = "cortex_m" | family = "cortexm" | no plugin is called 'cortexm' | did you mean 'cortex_m'?
stack_bytes = "4K" |  | key 'stack_bytes' is missing
stack_bytes = "4K" | stack_bytes = "4Q" | stack_bytes: must be a size, not '4Q' | K, M or G
stack_bytes = "4K" | stack_bytes = 4.5 | stack_bytes: must be a size
stack_bytes = "4K" | stack_bytes = true | stack_bytes: must be a size
stack_bytes = "4K" | stack_bytes = -8 | stack_bytes: must be a size
stack_bytes = "4K" | stack_bytes = 1001 | stack_bytes: must be a multiple of 8
stack_bytes = "4K" | stack_bytes = "128K" | do not fit in memory 'ram' of 128K
reserved_bytes = 1024 | reserved_bytes = "124K" | stack_bytes and reserved_bytes: 128K do not fit
alignment = 32 | alignment = 24 | alignment: must be a power of two
toolchains = ["gcc"] | toolchains = "gcc" | toolchains: must be a list of strings
toolchains = ["gcc"] | toolchains = [1] | toolchains: must be a list of strings
isa = "armv7e-m" |  | key 'core.isa' is missing
isa = "armv7e-m" | isa = "" | core.isa: must be a string that is not empty
families = ["reference"] | families = ["../x"] | core.families: '../x' is not a name
defines = ["X=1"] | define = ["X=1"] | unknown key 'core.define' | did you mean 'defines'?
kind = "rom" | kind = "flash" | memory.flash.kind: 'flash' is unknown | known: ram, rom
base = 0x08000000 |  | key 'memory.flash.base' is missing
base = 0x08000000 | base = 0xFFFFFFFF | memory.flash.size: 1048576 bytes at 0xffffffff
base = 0x08000000 | base = 0x20010000 | inside memory 'ram' which ends at 0x20020000
size = "1M" | size = 0 | memory.flash.size
bandwidth = 50000000 | speed = 1 | unknown key 'memory.flash.speed' | known:
[memory.ram] | [memory.'1 x'] | '1 x' is not a name
code = "flash" |  | key 'roles.code' is missing
code = "flash" | code = "flsh" | roles.code: there is no memory 'flsh' | did you mean 'flash'?
data = "ram" | data = "flash" | roles.data: memory 'flash' is rom; it must be ram
arena = "ram" | arena = "flash" | roles.arena: memory 'flash' is rom
weights = "flash" | weight = "flash" | unknown key 'roles.weight' | did you mean 'weights'?
kind = "qemu-system-arm" |  | key 'emulator.kind' is missing
machine = "netduinoplus2" | machine = 3 | emulator.machine: must be a string
machine = "netduinoplus2" | board = "x" | unknown key 'emulator.board'
[emulator] | [[emulator]] | emulator: must be a table | [emulator]
[roles] | [[roles]] | roles: must be a table
title = "A board" | title = "A | not a TOML file
title = "A board" | extends = 3\ntitle = "A" | extends: must be a board's name or a path
title = "A board" | extends = "cortex-m44" | extends: unknown board 'cortex-m44' | 'cortex-m4'
title = "A board" | extends = "none.toml" | cannot read the board file
cflags = ["-mcpu=cortex-m4"] | cflags = ["--version"] | with '--version' the compiler makes no | remove it
cflags = ["-mcpu=cortex-m4"] | cflags = ["-O1", "-E"] | with '-E' the compiler makes no object
cflags = ["-mcpu=cortex-m4"] | cflags = ["-###"] | with '-###' the compiler makes no object
defines = ["X=1"] | vector_bits = 65537 | core.vector_bits: must be 0 or a power of two from 32 to 65536
clock_hz = 16000000 | clock_hz = 1979-02-30 | not a TOML file
defines = ["X=1"] | vector_bits = 2 | core.vector_bits: must be 0 or a power of two
title = "A board" | extends = "a\u0000.toml" | extends: must be a board's name or a path
title = "A board" | title = "a\u0000b" | title: must be one line without control
defines = ["X=1"] | defines = ["X=\u000a1"] | core.defines: must be one line
"""
LARGE = f"""
bandwidth = 50000000 | bandwidth = {"9" * 20} | 99999999999999999999 is too large: at most
clock_hz = 16000000 | clock_hz = {"9" * 20} | clock_hz: 99999999999999999999 is too large
clock_hz = 16000000 | clock_hz = {"9" * 5000} | not a TOML file
clock_hz = 16000000 | clock_hz = 0x{"f" * 5000} | a number of thousands of digits is too large
title = "A board" | title = [{"1, " * 99}] | title: must be a string that is not empty, not [
"""


@mistakes(MISTAKES + LARGE)
def test_a_mistake_is_told_with_file_key_and_what_is_valid(tmp_path, old, new, says, hint):
    assert old in WHOLE
    with pytest.raises(TargetError) as caught:
        load(tmp_path, WHOLE.replace(old, new, 1))
    assert says in caught.value.text
    assert hint in caught.value.hint
    assert caught.value.path == str(tmp_path / ("none.toml" if "none" in new else "mine.toml"))


def test_files_that_extend_each_other_without_end_are_refused(tmp_path):
    for i in range(40):
        (tmp_path / f"b{i}.toml").write_text(f'extends = "b{i + 1}.toml"\n')
    with pytest.raises(TargetError, match="more than 16 files"):
        load_board(str(tmp_path / "b0.toml"))


def test_what_is_no_plain_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(TargetError, match="not a regular file"):
        load(tmp_path, 'extends = "pipe.toml"\n')
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(TargetError, match="more than 1048576 bytes"):
        load(tmp_path, 'extends = "large.toml"\n')


@pytest.mark.parametrize(
    ("value", "size"),
    [(0, 0), (65536, 65536), ("512", 512), ("512K", 524288), ("4M", 4 << 20), ("1G", 1 << 30)]
    + [(f"64{unit}", 65536) for unit in ("K", "k", "KB", "kb", "KiB", " K", " KB", " KiB")]
    + [("3MiB", 3 << 20), ("2 GB", 2 << 30), ("512 B", 512)]
    + [(v, None) for v in (-1, 1.5, True, None, "", "K", "-4K", "0x10", "4iB", "4KBB", "1.5K", "9" * 30)],
)
def test_sizes(value, size):
    assert parse_size(value) == size


IMAGES = {
    'slots = 2\nslot_bytes = "8K"': "slots after the firmware need a fixed place",
    "slots = 2": "2 slots need a size",
    "slots = 17": "must be from 1 to 16, not 17",
    'weights_start = "70K"': "70K is inside an erase block",
    'weights_start = "0K"': "the firmware lies there",
    'weights_start = "4M"': "4M is after the end of memory 'flash'",
    'code_start = "20K"': "20K is inside an erase block",
    'weights_start = "128K"\nslots = 2\nslot_bytes = "64K"': "64K is not a whole number of erase blocks",
    'weights_start = "896K"\nslots = 2\nslot_bytes = "128K"': "do not fit in memory 'flash'",
    'code_start = "64K"\nweights_start = "16K"\nslots = 4\nslot_bytes = "16K"': "do not fit in memory",
    "uf2_family = 4294967296": "has more than 32 bits",
    "family = 3": "unknown key 'image.family'",
    "[image.mcuboot]": "key 'image.mcuboot.slot_bytes' is missing",
    '[image.mcuboot]\nslot_bytes = "2M"': "do not fit in memory 'flash'",
    '[image.mcuboot]\nslot_bytes = "64K"\nheader_bytes = 100': "must be a multiple of 128",
    '[image.mcuboot]\nslot_bytes = "64K"\nalign = 3': "must be 1, 2, 4, 8, 16 or 32, not 3",
}
BLOCKS = {
    "[]": "must be a list of blocks",
    '"4K"': "must be a list of blocks",
    '["4x"]': "'4x' is not a block",
    "[4096]": "4096 is not a block",
    '["3K"]': "blocks are powers of two",
    '["16K", "64K"]': "blocks are powers of two, at multiples of their size",
}
PLACES = [(f"[image]\n{text}\n", message) for text, message in IMAGES.items()]
PLACES += [(f"[memory.flash]\nerase_blocks = {text}", message) for text, message in BLOCKS.items()]


@pytest.mark.parametrize(("text", "message"), PLACES)
def test_a_place_in_flash_that_cannot_be_is_refused(tmp_path, text, message):
    with pytest.raises(TargetError) as caught:
        load_board(own_board(tmp_path, text, "nucleo-f412zg"))
    assert message in str(caught.value)
    assert caught.value.path.endswith("mine.toml")


def test_a_memory_that_begins_inside_an_erase_block_is_refused(tmp_path):
    """Erase blocks are counted from the memory's base, but the linker aligns addresses."""
    text = '[memory.flash]\nbase = 0x08008000\nsize = "512K"'
    with pytest.raises(TargetError, match="0x8008000 is inside an erase block of 128K") as caught:
        load_board(own_board(tmp_path, text, "nucleo-f412zg"))
    assert "code_start" in caught.value.hint


# ---- places of mistakes ------------------------------------------------------------------------------


TEXT = '''\
# title = "no"
title = "a = b [c]" # d = 1
"quoted key" = 'x'
list = [ # e = 1
  { kind = "ram", "odd \\" one" = [1, 2] },
  "f = 1", 'g',
]
long = """
h = 1
[i]
"""
other = \'\'\'
j = 1\'\'\'

[core] # [k]
name.first = 1
  cflags = ["-a", "]"]
[memory . "ram"]
size = "2K"
at = 1979-05-27 07:32:00
[[kernel]]
op = { a = { b = 1 } }
'''


def keys(value, before=""):
    if not isinstance(value, dict):
        return []
    entries = [(f"{before}{key}", inner) for key, inner in value.items()]
    return [key for name, inner in entries for key in (name, *keys(inner, f"{name}."))]


def test_every_key_is_found_where_it_stands():
    lines = TEXT.splitlines()
    places = {key: place(TEXT, key) for key in keys(tomllib.loads(TEXT))}
    assert {key: lines[line - 1][column - 1 :].split()[0] for key, (line, column) in places.items()} == {
        "title": "title",
        "quoted key": '"quoted',
        "list": "list",
        "long": "long",
        "other": "other",
        "core": "core]",
        "core.name": "name.first",
        "core.name.first": "name.first",
        "core.cflags": "cflags",
        "memory": "memory",
        "memory.ram": "memory",
        "memory.ram.size": "size",
        "memory.ram.at": "at",
        "kernel": "kernel]]",
    }
    assert place(TEXT, "kernel.op.a.b")[0] == lines.index("op = { a = { b = 1 } }") + 1


def test_every_beginning_of_a_file_is_searched_to_its_end():
    for end in range(len(TEXT)):
        assert place(TEXT[:end], "memory.ram.size") in ((0, 0), (19, 1))
    assert place("a = " + "[" * 10_000, "b") == (0, 0)


@pytest.mark.parametrize(
    ("text", "at", "error"),
    [
        ('extends = "cortex-m4"\n[memory.psram]\n  size = "2Q"\n', (3, 3), "memory.psram.size: must be"),
        ('extends = "cortex-m4"\n\nstack_bites = 1\n', (3, 1), "unknown key 'stack_bites'"),
        ('extends = "cortx-m4"\n', (1, 1), "extends: unknown board"),
        ('extends = "cortex-m4"\n[memory.extra]\nkind = "ram"\n', (2, 2), "key 'memory.extra.base' is miss"),
        ('extends = "cortex-m4"\nstack_bytes = = 4\n', (2, 15), "not a TOML file: Invalid value"),
        ('extends = "cortex-m4"\ntitle = "', (2, 10), "not a TOML file: Unterminated string"),
        ('extends = "cortex-m4"\nroles = {code = "x"}\n', (2, 10), "roles.code: there is no memory 'x'"),
    ],
)
def test_an_error_of_a_board_has_the_line_and_the_column(tmp_path, text, at, error):
    with pytest.raises(TargetError) as caught:
        load(tmp_path, text)
    place = f"{tmp_path / 'mine.toml'}:{at[0]}:{at[1]}"
    assert caught.value.message().startswith(f"{place}: error: {error}")


def test_a_key_of_a_board_that_is_extended_has_no_line_in_this_one(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "cortex-m4"\nstack_bytes = 7\n')
    path = tmp_path / "mine.toml"
    path.write_text('extends = "base.toml"\n')
    with pytest.raises(TargetError) as caught:
        load_board(str(path))
    assert caught.value.message().startswith(f"{path}: error: stack_bytes: must be a multiple of 8")
    assert read_toml(path, "file") == {"extends": "base.toml"}
