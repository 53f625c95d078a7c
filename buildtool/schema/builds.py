"""The answers for builds: the description for build systems, and the answers that carry files."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import BoardFacts, LevelAnswer, NamedBytes


class Place(TypedDict):
    """A file or folder: `path` below the folder that `root` names (POSIX), or an absolute path (`root` is
    "").
    """

    root: str
    path: str


class Source(TypedDict):
    """A file to compile, and the name of its object below the group's folder.

    `reads` are files that it reads by other directives than #include.
    """

    file: Place
    object: str
    reads: list[Place]


class SourceGroup(TypedDict):
    """Sources that are compiled with the same flags.

    `shared` says whether they are compiled only once for all networks of a board.
    """

    name: str
    shared: bool
    includes: list[Place]
    sources: list[Source]


class SerialPort(TypedDict):
    """The driver of a board's serial port, with the functions of `wire.h`, for applications.

    `flags` are the macros of the driver, and WIRE_CORE_HZ, the clock of the core; in a command line they
    follow `cflags`.
    """

    flags: list[str]
    includes: list[Place]
    sources: list[Source]


class Tools(TypedDict):
    """Compiler and archiver. Each word of a command line is one element of a list.

    The commands are: compile: cc cflags -I... -c SOURCE -o OBJECT; archive: ar arflags LIBRARY OBJECTS; link:
    cc cflags OBJECTS LIBRARY ldflags -o IMAGE.

    - `cflags`: all flags of the board's compiler. It includes the three lists below, which are also needed by
      any other compiler.
    - `exact`: the flags that give the reference's bytes and suit the headers of libraries.
    - `core`: the flags that select the core.
    - `defines`: NAME or NAME=VALUE; they tell the kernels about the core.
    - `incbin`: the flag before a folder in which the assembler looks for included binary files.
    - `map`: the flag before the file to which the linker writes its map.
    - `renames`: the flag before FOLDER=NAME in a build for a debugger. It gives source folders names that do
      not depend on this machine ("": not needed).
    """

    name: str
    identity: str
    cc: str
    ar: str
    cflags: list[str]
    exact: list[str]
    core: list[str]
    defines: list[str]
    arflags: list[str]
    ldflags: list[str]
    incbin: str
    map: str
    renames: str


class NetworkFiles(TypedDict):
    """The names of the files that are made of a network.

    - `emitted`: files that the request `emit` makes. The build and its commands make the others.
    - `binaries`: the requested files for flash.
    - `weights`: the weight image, an emitted file.
    - `kernels`: a list of the kernels' objects that the network needs, one per line, an emitted file.
    - `apart`: whether the weight image lies in a memory of its own. Then the build should give the flag
      `reserve` to the assembly, and put the weight image at the address of `symbol`. New weights then need no
      new link.
    """

    net: str
    emitted: list[str]
    plan: str
    library: str
    image: str
    map: str
    binaries: list[str]
    report: str
    kernels: str
    weights: str
    symbol: str
    reserve: str
    apart: bool


class Script(TypedDict):
    """A linker script: its name, its content, and the flag before its path."""

    name: str
    data: bytes
    flag: str


class Slot(TypedDict):
    """A word of a command. The build replaces it with the path or name that `slot` stands for."""

    slot: str


class DescribeAnswer(TypedDict):
    """All that a build system has to know.

    - `roots`: folders by the names that `Place` uses.
    - `script`: a file that the build writes. Its path is added after `ldflags`.
    - `serial`: None if the board's file names no serial port.
    - `library`: the groups that are archived with a network.
    - `image`: the groups that are linked with this archive into the network's test firmware.
    - `network`: None if the request names no model.
    - `depends`: the files, besides the model, on which this answer and the emitted files depend.
    - `digest`: the digest of buildtool's own code.
    """

    board: str
    roots: dict[str, str]
    tools: Tools
    script: Script | None
    groups: list[SourceGroup]
    serial: SerialPort | None
    library: list[str]
    image: list[str]
    network: NetworkFiles | None
    commands: dict[str, list[str | Slot]]
    depends: list[Place]
    digest: str


class NetworkNeeds(TypedDict):
    """What a planned network needs, as every build prints it in one line.

    - `limit_bytes`: the upper limit for the arena: the option `ram`, or less if the board's memories have
      less for it.
    - `chip_bytes`: the size of these memories if firmware runs here in a model or a simulator of the chip;
      else 0.
    - `state_bytes`: memory that lives between invokes, outside the arena.
    - `weights_bytes`: the size of the weight image.
    - `f`: the plan's work over the network's own work.
    - `channels_removed`: the number of channels, out of `channels`, that are not computed, because they have
      one value or no reader.
    """

    net: str
    arena_bytes: int
    limit_bytes: int
    chip_bytes: int
    state_bytes: int
    weights_bytes: int
    f: float
    channels_removed: int
    channels: int


class EmitAnswer(NetworkNeeds):
    """The sources of a network, and what has to be compiled with them; paths are absolute.

    `c_files` are those of `files` that have to be compiled. `depends` are the files, besides buildtool's own
    code, on which their content depends. `notes` are sentences about options that cannot be satisfied.
    """

    files: dict[str, bytes]
    c_files: list[str]
    kernel_sources: list[str]
    include: str
    kernel_includes: list[str]
    depends: list[str]
    notes: list[str]


class MemorySize(TypedDict):
    """The bytes of a memory that a firmware image uses, out of `size` (0: the memory has no limit)."""

    memory: str
    used: int
    size: int
    sections: list[NamedBytes]


class SizePart(TypedDict):
    """The bytes of one symbol in a firmware image, and their owner; each byte of a memory is in one part.

    - `kind`: code, constants, variables, or the stored initial values of variables.
    - `owner`: network, kernels, or application (all other code).
    - `library`: the archive ("": none, or unknown).
    - `file`: the object, or the source if only that is known ("": unknown).
    - `symbol`: the linker's name, or a description in brackets: padding, an object's section, unnamed.
    """

    memory: str
    section: str
    kind: str
    owner: str
    library: str
    file: str
    symbol: str
    bytes: int


class StackSize(TypedDict):
    """The stack of a network's invoke, in bytes, and the stack that the linker script reserves for all code.

    `needed` is an upper limit for every input. It is None where the code moves the stack pointer by an
    unknown amount. The frames of interrupts and of the network's callbacks are not included.
    """

    function: str
    needed: int | None
    reserved: int


class BuildAnswer(BoardFacts, LevelAnswer):
    """The test firmware of a network.

    `level` is "compiled", or "host" or "model" where the chip's compiler is not installed.
    """

    net: str
    board: str
    compiler: str
    arena_bytes: int
    state_bytes: int
    sizes: list[MemorySize]
    parts: list[SizePart]
    stacks: list[StackSize]
    files: dict[str, bytes]


class License(TypedDict):
    """The license of some of the files, and the file with its text.

    `spdx` is an SPDX expression ("": the files name none). `text` is "" where no text was found. `folders`
    have the files.
    """

    spdx: str
    text: str
    folders: list[str]


class SecondArena(TypedDict, total=False):
    """The memory of a network besides its first arena: a second arena, and state that lives between invokes.

    A network has each key only if it has this memory.
    """

    second_arena_bytes: int
    state_bytes: int


class BundledNetwork(SecondArena):
    """A network for other build systems; paths are relative to the folder of the bundle.

    - `network`: its name, from the model's file or from `--name`.
    - `system`: the build system that the folder is for.
    - `core`: the flags that select the core.
    - `exact`: the flags that give the reference's bytes with any compiler.
    - `defines`: NAME or NAME=VALUE; they tell the kernels about the core.
    - `sources`: the network's own C files.
    - `kernels`: C files that the network shares with other networks.
    - `weights`: the weight image.
    - `assembly`: links the weight image, and needs its own folder among the include folders.
    - `array`: the weight image as C, to compile instead of `assembly` where NN_WEIGHTS_IN_C is defined.
    - `include`: include folders for the application, the kernels and the network's sources.
    - `include_kernels`: further include folders for the kernels and the network's sources.
    - `files`: all files.
    - `stack_bytes`: None if it is not known.
    - `streamed`: whether the input image is delivered row by row.
    - `loaded`: whether the weights may be read through a loader.
    """

    network: str
    system: str
    board: str
    core: list[str]
    exact: list[str]
    defines: list[str]
    plan: str
    arena_bytes: int
    arena_alignment: int
    stack_bytes: int | None
    weights_bytes: int
    streamed: bool
    loaded: bool
    sources: list[str]
    kernels: list[str]
    weights: str
    assembly: str
    array: str
    include: list[str]
    include_kernels: list[str]
    licenses: list[License]
    files: list[str]


class BundleAnswer(NetworkNeeds):
    """The sources of a network, and all that has to be compiled with them.

    `files` has the content of the network's files, except those that the command line writes itself.
    """

    network: BundledNetwork
    files: dict[str, bytes]


class SizesAnswer(LevelAnswer):
    """The bytes that a linked firmware image takes in each memory, and the stacks of its networks.

    `files` are the files for flash. `files_from` says how the file of a part was found: map (the linker's
    map), symbols (the compiler's notes), or "" (not found).
    """

    board: str
    sizes: list[MemorySize]
    parts: list[SizePart]
    files_from: str
    stacks: list[StackSize]
    files: dict[str, bytes]
    note: str


class TflmAnswer(TypedDict):
    """A model with arena offsets for TensorFlow Lite Micro.

    `tensors` is the number of its tensors, and `placed_tensors` the number of those with an offset.
    """

    model: str
    arena_bytes: int
    arena_bound_bytes: int
    placed_tensors: int
    tensors: int
    files: dict[str, bytes]


class ArenaAnswer(TypedDict):
    """A solved arena problem; height and offsets are None where there is no placement.

    `status` is optimal, feasible, infeasible or unknown. `bound_bytes` is a lower bound for the height.
    `nodes` is the number of search nodes. `files` has the problem's table with the offsets.
    """

    problem: str
    status: str
    height_bytes: int | None
    bound_bytes: int
    capacity_bytes: int | None
    nodes: int
    offsets: dict[str, int] | None
    files: dict[str, bytes]
