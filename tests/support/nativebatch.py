"""Runs many small networks in one native program, under sanitizers, and compares every tensor.

    jobs = [prepare(graph, f"n{i}", seed=i) for i, graph in enumerate(graphs)]
    assert_exact(jobs, folder)

One program has many networks, because linking takes most of the time. It also shows that networks can share a
program. Arenas come from the allocator, so the sanitizer sees every byte outside of them.
"""

import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from cbuilds import WARNINGS
from graphs import inputs_for
from hypothesis import HealthCheck, Phase, settings
from loaded import load_target

from buildtool.emit.sources import Sources, emit, kernel_sources
from buildtool.firmware.firmware import link, write_files
from buildtool.firmware.objects import Compiler, Unit, compile_all
from buildtool.firmware.run.compare import difference, referrer
from buildtool.firmware.run.validation import SANITIZERS
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Plan
from buildtool.target.kernels import kernel_includes
from buildtool.target.registry import plugin
from buildtool.target.types import Target

# Small networks: -O1 saves more compile time than it costs at run time. Emitted code only calls kernels.
FLAGS = ("-O1", "-DNN_TRACE", *SANITIZERS)
EMITTED = (*WARNINGS, "-O0")
TARGET = "host"
LAYERWISE = PlanOptions(strategy="layerwise")
TRACE, OUTPUT, INPUT, ARENA = 0, 1, 2, 3  # kinds of record
# For examples that are batches, each its own program: shrinking would take hours.
BATCHES = settings(
    derandomize=True,
    deadline=None,
    max_examples=2,  # the first one has only the simplest networks
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LONGEST = 600.0  # seconds, for a loop that never ends
JUNK = (0xA5, 0x5A)  # bytes that fill arenas before runs, alternately

MAIN = Path(__file__).resolve().parent / "nativebatch_c" / "main.c"

Planner = Callable[[Graph, Target], Plan]
Change = Callable[[Graph, Target], Graph]


def front_point(chosen: Settings, part: float) -> Planner:
    """Returns a planner for a point of the front. `part`: the point's place, 0 to 1.

    The input image is resident where several operators read it.
    """

    def plan(graph: Graph, target: Target) -> Plan:
        is_whole = len(graph.consumers().get(graph.inputs[0], ())) != 1
        points = front(graph, target, replace(chosen, image="resident") if is_whole else chosen)
        return points.plan(round(part * (len(points.points) - 1)))

    return plan


@dataclass(frozen=True, eq=False)
class Job:
    """A network, planned and emitted, and its sets of inputs."""

    model: bytes
    source: Graph
    graph: Graph
    plan: Plan
    sources: Sources
    inputs: list[list[np.ndarray]]


@dataclass
class Run:
    """The results of one set of inputs: traced tensors and outputs by index, inputs and arena afterwards.

    `computed`: traced bytes of each tensor; a byte that is computed twice counts twice.
    """

    tensors: dict[int, bytearray] = field(default_factory=dict)
    inputs_after: list[bytes] = field(default_factory=list)
    arena: bytes = b""
    computed: dict[int, int] = field(default_factory=dict)
    known: dict[int, bytearray] = field(default_factory=dict)  # 1 where a byte was computed

    def take(self, job: Job, tensor: int, offset: int, part: bytes) -> None:
        """Takes a part of a tensor. Bytes that are computed again must be equal."""
        size = job.graph.tensors[tensor].size
        value = self.tensors.setdefault(tensor, bytearray(size))
        computed = self.known.setdefault(tensor, bytearray(size))
        end = offset + len(part)
        assert end <= size
        again = np.frombuffer(computed, np.uint8)[offset:end] != 0
        equal = np.frombuffer(value, np.uint8)[offset:end] == np.frombuffer(part, np.uint8)
        assert (equal | ~again).all(), (job.sources.net, tensor)
        value[offset:end] = part
        computed[offset:end] = b"\1" * len(part)


def prepare(
    graph: Graph,
    name: str,
    *,
    options: PlanOptions = LAYERWISE,
    seed: int = 0,
    patterns: Sequence[str] = ("random", "extremes"),
    planner: Planner | None = None,
    change: Change | None = None,
) -> Job:
    """Writes, reads, rewrites, plans, checks and emits a network, with a set of inputs for each pattern.

    `planner` makes the plan instead of `options`. `change` alters the rewritten graph before planning.
    """
    model = write_model(graph)
    source = read_model(model)
    target = load_target(TARGET)
    rewritten = rewrite(source)
    rewritten = change(rewritten, target) if change else rewritten
    plan = planner(rewritten, target) if planner else make_plan(rewritten, target, options)
    check(plan, rewritten, target)
    inputs = [inputs_for(rewritten, seed + i, pattern) for i, pattern in enumerate(patterns)]
    return Job(model, source, rewritten, plan, emit(rewritten, plan, target, name), inputs)


def run(jobs: Sequence[Job], folder: Path, flags: Sequence[str] = FLAGS) -> list[list[Run]]:
    """Builds one program of all jobs and runs it. Returns a run for each job and set of inputs."""
    program = build(jobs, folder, flags, _write_main(jobs))
    (folder / "input.bin").write_bytes(
        b"".join(array.tobytes() for job in jobs for one in job.inputs for array in one)
    )
    execute(program)
    return _parse_records(jobs, (folder / "output.bin").read_bytes())


def execute(program: Path) -> str:
    command = [str(program)]
    result = subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stderr[-4000:]}"
    return result.stdout


def build(jobs: Sequence[Job], folder: Path, flags: Sequence[str], main_c: str) -> Path:
    """Builds one program of all jobs. `main_c`: the text of its main.c."""
    target = load_target(TARGET)
    tools = plugin(target.board).toolchain(target.board, "")
    emitted, objects = folder / "src", folder / "obj"
    objects.mkdir(parents=True)
    kernels = kernel_includes(target)
    units, sources = [], set()
    for job in jobs:
        own = emitted / job.sources.net
        write_files(job.sources.files, own)
        units += [Unit(own / name, (own, *kernels), EMITTED) for name in job.sources.c_files]
        sources.update(kernel_sources(job.plan, target))
    main = emitted / "main.c"
    main.write_text(main_c)
    folders = tuple(emitted / job.sources.net for job in jobs)
    weights = emitted / "weights.S"  # one file for all networks: the compiler starts once
    nets = [job.sources.net for job in jobs]
    weights.write_text("".join(f'#include "{net}/{net}_weights.S"\n' for net in nets))
    units.append(Unit(weights, folders))
    units += [Unit(path, kernels) for path in sorted(sources)]
    units.append(Unit(main, (*folders, *kernels)))
    compiler = Compiler(tools.cc, tools.identity, (*tools.cflags, *flags))
    program = folder / "program"
    link(tools, compile_all(compiler, units, objects), program, target, flags)
    return program


def _write_main(jobs: Sequence[Job]) -> str:
    """Returns the networks' headers, their rows of the table, and MAIN."""
    rows = []
    for job in jobs:
        net, macro = job.sources.net, job.sources.net.upper()
        sizes = []
        for word, tensors in (("INPUT", job.graph.inputs), ("OUTPUT", job.graph.outputs)):
            names = "".join(f"{macro}_{word}{i}_BYTES, " for i in range(len(tensors)))
            sizes.append(f"(const uint32_t[]){{{names}0}}")
        by_rows = job.plan.image == "stream"
        fields = [f"{net}_init", "NULL" if by_rows else f"{net}_input", f"{net}_output", f"{net}_invoke"]
        fields += [f"{net}_weights", f"{macro}_ARENA_BYTES", f"{macro}_ARENA_ALIGNMENT"]
        fields += [str(len(job.inputs)), *sizes]
        fields += [f"{net}_set_row_source", f"{macro}_ROW_BYTES"] if by_rows else ["NULL", "0"]
        fields += [f"{net}_reset", str(reset_at(job))] if job.graph.states else ["NULL", "0"]
        rows.append(f"{{{', '.join(fields)}}}, ")
    includes = "".join(f'#include "{job.sources.net}.h"\n' for job in jobs)
    return f"{includes}#define NETWORKS {''.join(rows)}\n{MAIN.read_text()}"


def reset_at(job: Job) -> int:
    """Returns the set of inputs before which states are reset, -1 without states."""
    return len(job.inputs) * 2 // 3 if job.graph.states else -1


def _parse_records(jobs: Sequence[Job], data: bytes) -> list[list[Run]]:
    results = [[Run()] for _ in jobs]
    place = 0
    while place < len(data):
        number, kind, index, offset, size = struct.unpack_from("<5I", data, place)
        value = data[place + 20 : place + 20 + size]
        place += 20 + size
        job, runs = jobs[number], results[number]
        if kind != INPUT and runs[-1].inputs_after:
            runs.append(Run())
        if kind == INPUT:
            runs[-1].inputs_after.append(value)
        elif kind == ARENA:
            runs[-1].arena = value
        else:
            if kind == TRACE:
                runs[-1].computed[index] = runs[-1].computed.get(index, 0) + size
            runs[-1].take(job, job.graph.outputs[index] if kind == OUTPUT else index, offset, value)
    return results


def differences(job: Job, runs: Sequence[Run]) -> list[str]:
    """Returns a text for each difference to LiteRT's reference kernels or to our executor."""
    assert len(runs) == len(job.inputs)
    texts = []
    results = {t for op in job.graph.ops for t in op.outputs}
    which = ("numpy", "litert")
    referrers = [referrer(name, job.model, job.source, job.graph) for name in which]
    for number, (one, values) in enumerate(zip(runs, job.inputs, strict=True)):
        assert set(job.graph.outputs) <= set(one.tensors) <= results | set(job.graph.outputs)
        partial = {t: bytes(known) for t, known in one.known.items() if not all(known)}
        # Bytes that nothing reads may be left out inside a streamed region only.
        assert not partial.keys() & set(job.graph.outputs)
        assert not partial or any(region.is_streamed for region in job.plan.regions)
        for name, refer in zip(which, referrers, strict=True):
            expected = refer(values, number == reset_at(job))
            assert set(job.graph.outputs) <= set(expected)
            for wrong in difference(job.graph, number, one.tensors, expected, partial):
                texts.append(f"{job.sources.net} against {name}: {wrong.json()}")
    return texts


def assert_exact(jobs: Sequence[Job], folder: Path) -> list[list[Run]]:
    """Builds one program of all jobs and runs it. Fails if any tensor differs."""
    results = run(jobs, folder)
    for job, runs in zip(jobs, results, strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)
    return results


def streamed_kinds(jobs: Sequence[Job], groups: int = 1) -> set[OpKind]:
    """Returns the operator kinds inside streamed regions of at least `groups` groups."""
    return {
        job.graph.ops[position].kind
        for job in jobs
        for region in job.plan.regions
        if region.is_streamed and len(region.groups) >= groups
        for position in region.ops
    }
