"""The keys of a board file, table by table: what `board_file` accepts, with their meaning."""

from __future__ import annotations

from buildtool.target.keys import NEEDED, Key

TOP = (
    Key(
        "extends",
        "a known board, or the path of a board file",
        "none",
        "Its keys hold where this file has none.",
    ),
    Key("title", "text", NEEDED, "What the board is."),
    Key("note", "text", "none", "What a user has to know of results for this board."),
    Key("family", "the name of a plugin", NEEDED, "The plugin that serves the board."),
    Key("stack_bytes", "size, a multiple of 8", NEEDED, "The stack, which lies in the memory of the data."),
    Key("reserved_bytes", "size", "0", "What the application needs of the arena's memory."),
    Key("alignment", "a power of two from 4 to 4096", "16", "Of buffers in the arena, in bytes."),
    Key("clock_hz", "number", "0: not known", "The core's clock."),
    Key("toolchains", "list of names", "none", "The compilers that build for the board, the default first."),
    Key("core", "table", NEEDED, "The processor core."),
    Key(
        "memory",
        "tables by name",
        NEEDED,
        "The memories. Their names are those of the linker script's regions.",
    ),
    Key("roles", "table", NEEDED, "Which memory holds what. A memory may have several roles."),
    Key("emulator", "table", "none", "What runs an image without the board."),
    Key("probe", "table", "none", "How programs reach the board: to flash it, and to debug on it."),
    Key("image", "table", "none", "How firmware and weights lie in flash."),
    Key("uart", "table", "none", "The serial port by which test firmware on the board answers."),
    Key("chip", "table", "none", "What the chip needs after a reset: clock, wait states, caches."),
    Key("estimate", "table", "none", "How fast a board is whose speed cannot be measured here."),
    Key("vector_unit", "table", "none", "How fast the core's vector unit can be, for counts of its issues."),
    Key("published", "table", "none", "A profile that somebody published of the board."),
    Key("pipeline", "table", "none", "The core's timing, for estimates of cycles."),
    Key("cache", "tables by name", "none", "Caches between the core and slower memories."),
)
CORE = (
    Key("name", "text", NEEDED, "The core, as reports call it."),
    Key("isa", "text", NEEDED, "Its instruction set."),
    Key("families", "list of names", NEEDED, "The kernel families that it can run, best first."),
    Key("cflags", "list of flags", "none", "Flags that select the core, for clang and gcc alike."),
    Key(
        "defines",
        "list of macros",
        "none",
        "Macros for every file that is compiled, as `NAME` or `NAME=VALUE`.",
    ),
    Key(
        "vector_bits",
        "0, or a power of two from 32",
        "0",
        "The bits of a vector register, where cores that run the same code differ in it.",
    ),
    Key(
        "threads",
        "1 to 16",
        "1",
        "The threads of the core that share the work of a kernel's call. The option `threads` takes fewer.",
    ),
)
MEMORY = (
    Key("kind", "`ram` or `rom`", NEEDED, "Whether programs write it, or only execute and read it in place."),
    Key("base", "number", NEEDED, "Its first address."),
    Key("size", "size", NEEDED, "Its bytes."),
    Key(
        "bandwidth",
        "bytes a second",
        "0: not a limit",
        "Weights in a memory that has one are loaded into the arena before they are read.",
    ),
    Key(
        "erase_blocks",
        'list of sizes, such as `["4x16K", "64K", "128K"]`',
        "not known",
        "Of flash: what one erase empties, from its start; the last one goes on to the end.",
    ),
    Key(
        "wait_cycles",
        "number, 0 or above",
        "not known: it is taken for ideal",
        "Cycles of the core that an access waits, at `clock_hz`, beyond the cycle that every access takes.",
    ),
    Key("bus_bits", "a power of two from 8 to 1024", "32", "Bits that one beat brings; needs `wait_cycles`."),
    Key(
        "beat_cycles",
        "number, 0 or above",
        "1",
        "Cycles of the core for each further beat of one access; needs `wait_cycles`.",
    ),
    Key("cache", "name of a cache", "none", "The cache that it is read through; needs `wait_cycles`."),
)
CACHE = (
    Key("line_bytes", "a power of two from 4 to 1024", NEEDED, "What is fetched at once."),
    Key("data_bytes", "size", "0", "Bytes that are kept of data."),
    Key("code_bytes", "size", "0", "Bytes that are kept of code."),
    Key("ways", "number", "0: a line may lie anywhere", "Lines of a set, in which an address has its place."),
)
PIPELINE = (
    Key("model", "text", NEEDED, "What LLVM calls its model of the core: the `-mcpu` of `llvm-mca`."),
    Key(
        "taken_branch_cycles",
        "number, 0 or above",
        "0",
        "What a taken branch takes beyond the model, which leaves the refill of the pipeline out.",
    ),
    Key(
        "words_per_cycle",
        "number",
        "0: the model counts them as one word",
        "Words that a load or store of several of them moves in a cycle.",
    ),
    Key("source", "text", NEEDED, "Who says that. It stands beside every estimate."),
)
ROLES = (
    Key("code", "name of a memory", NEEDED, "Code and constants of the program."),
    Key("data", "name of a RAM", NEEDED, "Globals and the stack."),
    Key("arena", "name of a RAM", NEEDED, "The arena."),
    Key("weights", "name of a memory", NEEDED, "The weight image."),
    Key(
        "arenas",
        "list of names of RAMs",
        "every RAM without a bandwidth",
        "The memories that may hold an arena in its place: those whose bytes can be written one by one.",
    ),
)
EMULATOR = (
    Key(
        "kind", "text", NEEDED, "Who runs images, as the plugin understands it: `native`, `qemu-system-arm`."
    ),
    Key("machine", "text", "none", "The emulated machine."),
    Key("options", "list of texts", "none", "Further words of the emulator's command line."),
    Key(
        "bases",
        "addresses by the names of memories",
        "those of the board",
        "Memories that lie elsewhere in the emulated machine.",
    ),
)
ESTIMATE = (
    Key("macs_per_second", "number above 0", NEEDED, "Multiply-accumulates a second."),
    Key("source", "text", NEEDED, "Where the figure is from. It stands beside every estimate."),
)
VECTOR_UNIT = (
    Key("macs", "number above 0", NEEDED, "Multiply-accumulates of one issue, at most."),
    Key("cycles", "number above 0", NEEDED, "Cycles of the core from one issue of a thread to its next one."),
)
PUBLISHED = (
    Key("network", "text", NEEDED, "The network, as reports call it."),
    Key("source", "text", NEEDED, "Who published the profile."),
    Key("macs", "number above 0", NEEDED, "The network's multiply-accumulates, by which it is known again."),
    Key("milliseconds", "number above 0", NEEDED, "The whole time."),
    Key("part", "list of tables", NEEDED, "Its lines."),
)
PART = (
    Key("name", "text", NEEDED, "The line, as reports call it."),
    Key("operators", "list of texts", NEEDED, "Its operator kinds; `LOAD` is loading weights."),
    Key("milliseconds", "number above 0", NEEDED, "Their time."),
)
PROBE = (
    Key("openocd", "list of texts", "none", "The words that OpenOCD needs for this board."),
    Key("pyocd", "list of texts", "none", "Those that pyOCD needs."),
    Key("esptool", "list of texts", "none", "Those that esptool needs."),
    Key("xflash", "list of texts", "none", "Those that XMOS's xflash needs."),
    Key("server", "`openocd` or `pyocd`", "none", "One of these by its name."),
    Key("options", "list of texts", "none", "The words that `server` needs."),
)
UART = (
    Key(
        "driver",
        "name, or path of a .c file",
        NEEDED,
        "The functions of `wire.h` for the port: `cmsdk_uart`, `ns16550`, `sifive_uart`, `stm32_usart`, "
        "`stm32_usart_v2`, or a file of your own, from the board's file on.",
    ),
    Key("base", "number", NEEDED, "The address of the port's registers."),
    Key("clock_hz", "number above 0", NEEDED, "The clock that feeds the port."),
    Key("baud", "number above 0", "115200", "Bits a second."),
    Key("settings", "list of macros", "none", "What else the driver wants to know, as `NAME=VALUE`."),
)
CHIP = (
    Key(
        "start",
        "name, or path of a .c file",
        NEEDED,
        "The functions of `chip.h` for the chip: `stm32f4`, `stm32f7`, or a file of your own.",
    ),
    Key("settings", "list of macros", "none", "What the code wants to know, as `NAME=VALUE`."),
)
IMAGE = (
    Key("uf2_family", "number", "0: it has none", "The chip's number in UF2 files."),
    Key("code_start", "size", "0", "Where the firmware begins in the code's memory, behind a boot loader."),
    Key(
        "weights_start",
        "size",
        "the first erase block that the firmware leaves free",
        "Where the partition of the weights begins in their memory.",
    ),
    Key("slots", "number from 1 to 16", "1", "How many weight images the partition has room for."),
    Key("slot_bytes", "size", "0: all that is left", "Bytes of a slot, in whole erase blocks."),
    Key("mcuboot", "table", "none", "The slot of a boot loader that checks signatures."),
)
MCUBOOT = (
    Key("slot_bytes", "size", NEEDED, "Bytes of MCUboot's slot, which begins at `code_start`."),
    Key(
        "header_bytes", "size, a multiple of 128", "512", "What is kept for MCUboot's header before the code."
    ),
    Key("align", "1, 2, 4, 8, 16 or 32", "8", "What the flash writes at once, in bytes."),
)
# In the order of the reference page: how the table is written in a file, what it is about, its keys.
TABLES = (
    ("", "The file's own keys", TOP),
    ("[core]", "The processor core", CORE),
    ("[memory.NAME]", "One memory; any number of them", MEMORY),
    ("[cache.NAME]", "One cache; any number of them", CACHE),
    ("[pipeline]", "The timing of the core, for estimates of cycles", PIPELINE),
    ("[roles]", "Which memory holds what", ROLES),
    ("[image]", "How firmware and weights lie in flash", IMAGE),
    ("[image.mcuboot]", "A slot of the boot loader MCUboot", MCUBOOT),
    ("[emulator]", "What runs images", EMULATOR),
    ("[probe]", "How programs reach the board, the preferred one first", PROBE),
    ("[uart]", "The serial port of test firmware", UART),
    ("[chip]", "What the chip needs after a reset", CHIP),
    ("[estimate]", "A board that cannot be measured", ESTIMATE),
    ("[vector_unit]", "The limits of a vector unit", VECTOR_UNIT),
    ("[published]", "A published profile", PUBLISHED),
    ("[[published.part]]", "A line of a published profile", PART),
)
