"""What is built: the description for build systems, and the answers that carry files."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import BoardFacts, LevelAnswer, NamedBytes


class Place(TypedDict):
    """A file or folder: `path` below a root of the answer (POSIX), or an absolute one where `root` is ""."""

    root: str
    path: str


class Source(TypedDict):
    """A file to compile, and what its object is called below the group's folder.

    `reads`: files that it reads, but not by #include.
    """

    file: Place
    object: str
    reads: list[Place]


class SourceGroup(TypedDict):
    """Sources that are compiled alike; `shared`: once for all networks of a board."""

    name: str
    shared: bool
    includes: list[Place]
    sources: list[Source]


class Tools(TypedDict):
    """Compiler and archiver, each word of a command line by itself.

    compile: cc cflags -I... -c SOURCE -o OBJECT; archive: ar arflags LIBRARY OBJECTS; link: cc cflags
    OBJECTS LIBRARY ldflags -o IMAGE. `incbin` is the flag before a folder in which the assembler looks
    for what a source reads. For another compiler with flags of its own: `exact` are those that it needs as
    well for the reference's bytes and for the headers of libraries, `core` those that select the core,
    `defines` (NAME or NAME=VALUE) what the kernels have to know of it; `cflags` holds all of these. `map` is
    the flag before the file to which the link writes its map. `renames`, of a build for a debugger, is the
    flag before FOLDER=NAME: a build gives its own folders of sources names that are no paths of this machine
    ("": there is no need).
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
    """What is made of a network: `emitted` by the request `emit`, the rest by the build and its commands.

    `binaries`: the files for flash that are asked for. `kernels`: the emitted file that names, a line each, the
    objects of the group `kernels` that the network needs. `weights`: the weight image among the emitted files.
    `apart`: whether it lies in a memory of its own. Then a build should link the program with `reserve` as a
    flag for the assembly, and put the image where `symbol` is: other weights then need no link.
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
    """A linker script: its name, its content, and the flag that its path goes behind."""

    name: str
    data: bytes
    flag: str


class Slot(TypedDict):
    """A word of a command that the build puts in: the path or name of what the slot is called."""

    slot: str


class DescribeAnswer(TypedDict):
    """What a build system has to know.

    `roots`: folders by name. `library`, `image`: the groups that are archived with a network, and those
    that are linked with this archive for its test firmware. `network`: None where no model was named.
    `script`: a file that the build writes, whose path goes behind `ldflags`. `depends`: files that the
    answer and what is emitted depend on besides the model; `digest` stands for buildtool's own code.
    """

    board: str
    roots: dict[str, str]
    tools: Tools
    script: Script | None
    groups: list[SourceGroup]
    library: list[str]
    image: list[str]
    network: NetworkFiles | None
    commands: dict[str, list[str | Slot]]
    depends: list[Place]
    digest: str


class EmitAnswer(TypedDict):
    """The sources of a network, and what has to be compiled with them; paths are absolute.

    `c_files`: which of `files` are to be compiled. `depends`: the files, besides buildtool's own code, that
    decided what they are. `notes`: what was asked for and cannot be, in sentences.
    """

    net: str
    files: dict[str, bytes]
    c_files: list[str]
    kernel_sources: list[str]
    include: str
    kernel_includes: list[str]
    depends: list[str]
    notes: list[str]


class MemorySize(TypedDict):
    """What an image takes of a memory; `size` 0: it has no limit."""

    memory: str
    used: int
    size: int
    sections: list[NamedBytes]


class SizePart(TypedDict):
    """Bytes of an image that are one symbol's, and whose they are; each byte of a memory is in one part.

    `kind`: code, constants, variables, or the initial values that are stored for these. `owner`: network,
    kernels, or application, which is all else. `library`: the archive ("": none, or not known); `file`: the
    object, or the source where only that is known ("": not known); `symbol`: as the linker has it, or in
    brackets what it is instead: padding, an object's section, unnamed.
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
    """The stack of a network's invoke, in bytes, against what the linker script keeps for all firmware.

    `needed`: at most, whatever the input; None: its code moves the stack pointer by what cannot be told. The
    frames of interrupts and of what the network calls back are not in it.
    """

    function: str
    needed: int | None
    reserved: int


class BuildAnswer(BoardFacts, LevelAnswer):
    """The test firmware of a network; `level` is compiled, or less where the chip's compiler is not here."""

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
    """Under what some of the files stand: an SPDX expression ("": none is given), and the file with its text.

    `folders` have the files; `text` is "" where no text was found.
    """

    spdx: str
    text: str
    folders: list[str]


class SecondArena(TypedDict, total=False):
    """Of a network whose arena is in two memories: bytes of the second one; of one with state: bytes of that.

    No keys where there is neither.
    """

    second_arena_bytes: int
    state_bytes: int


class BundledNetwork(SecondArena):
    """A network as other build systems compile it; paths are relative to the folder that it is written to.

    `network` is its name, as the model's file or `--name` has it. `core` are the flags that select the core,
    `exact` those that any compiler needs for the reference's bytes, `defines` (NAME or NAME=VALUE) what the
    kernels have to know of the core. `sources` are the
    network's own C files, `kernels` those that it shares with other networks. `weights` is the image,
    `assembly` links it and is assembled with its folder among the include folders; `array` is the same as C,
    compiled in the place of `assembly` where NN_WEIGHTS_IN_C is defined. `include` is for the application,
    `include_kernels` for the kernels and the network's sources as well. `stack_bytes` is None where it is not
    known. `streamed`: the image comes row by row; `loaded`: the weights may come through a loader. `files`
    are all.
    """

    network: str
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


class BundleAnswer(TypedDict):
    """The sources of a network, and all that has to be compiled with them.

    `files` has the content of those among the network's files that the command line does not write itself.
    """

    net: str
    network: BundledNetwork
    files: dict[str, bytes]


class SizesAnswer(LevelAnswer):
    """What a linked image takes of each memory, and its networks of the stack; `files`: those for flash.

    `files_from`: what says which file a part is of: map (the linker's), symbols (compilers' notes), or "".
    """

    board: str
    sizes: list[MemorySize]
    parts: list[SizePart]
    files_from: str
    stacks: list[StackSize]
    files: dict[str, bytes]
    note: str


class TflmAnswer(TypedDict):
    """A model with arena offsets for TensorFlow Lite Micro, `placed_tensors` of all its `tensors`."""

    model: str
    arena_bytes: int
    arena_bound_bytes: int
    placed_tensors: int
    tensors: int
    files: dict[str, bytes]


class ArenaAnswer(TypedDict):
    """A solved arena problem; height and offsets are None where there is no placement.

    `status` is optimal, feasible, infeasible or unknown; `bound_bytes`: no placement is lower; `nodes`: that
    the search visited; `files`: the problem's table with the offsets.
    """

    problem: str
    status: str
    height_bytes: int | None
    bound_bytes: int
    capacity_bytes: int | None
    nodes: int
    offsets: dict[str, int] | None
    files: dict[str, bytes]
