"""Accepted mutants of networks and plans: compiled with sanitizers, run here, compared with two references.

The first reference is buildtool's own executor, the second LiteRT's kernels where they take the file. They
may crash on such files, and run in a process of their own.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fuzz import seeds, workers
from benchmarks.fuzz.attempts import Outcome, mutant
from benchmarks.fuzz.plans import made_by
from buildtool.api.requests.kinds import Validate
from buildtool.base.errors import BuildtoolError, MachineError, ToolError
from buildtool.base.files import File
from buildtool.base.modes import Reference
from buildtool.base.session import Session
from buildtool.emit.sources import Sources
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.compare import Array, difference, referrer
from buildtool.firmware.run.execute import build_temporarily, execute, plan_and_sources
from buildtool.firmware.run.validation import SANITIZERS
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.plan.models import tflite_file

LITERT_SECONDS = 20
_EQUAL, _OTHER, _UNTAKEN = 0, 3, 4  # exit statuses of the process that asks LiteRT
Accepted = tuple[str, int]  # kind and number of a mutant


def sample(
    accepted: Sequence[Accepted], seed: int, count: int
) -> tuple[dict[str, int], list[tuple[str, int, str, str]]]:
    """Runs `count` random accepted mutants; returns the counts of outcomes and a list of the bad ones.

    Each bad one is (kind, number, outcome, detail).
    """
    chosen = random.Random(seed).sample(accepted, min(count, len(accepted)))
    found: Counter[str] = Counter()
    bad = []
    work = functools.partial(_work, chosen, seed)
    for place, outcome in workers.run(work, range(len(chosen))):
        found[outcome.what] += 1
        if not outcome.what.startswith("equal") and outcome.what != "refused":
            bad.append((*chosen[place], outcome.what, outcome.detail))
            print(f"{chosen[place]}: {outcome.what}: {outcome.detail}", file=sys.stderr, flush=True)
    return dict(found), bad


def _work(chosen: Sequence[Accepted], seed: int, place: int, folder: Path) -> Outcome:
    workers.without_limits()
    kind, number = chosen[place]
    try:
        return _compared(*_made(kind, mutant(kind, seed, number), number), number)
    except MachineError:
        raise
    except ToolError as error:  # a sanitizer's report is among these
        return Outcome("failed", error.text[-400:])
    except BuildtoolError as error:
        return Outcome("refused", error.code)
    except Exception as error:
        return Outcome("traceback", f"{type(error).__name__}: {error}")


def _made(kind: str, data: bytes, seed: int) -> tuple[Planned, Sources]:
    """Returns a network with a plan: the mutant is a plan, or a model that is planned here."""
    if kind == "plan":
        return made_by(data, seeds.subjects())
    strategy = ("layerwise", "best")[seed % 2]
    options = PlanOptions(strategy=strategy)
    file = File(f"net.{kind}", data=data)
    return plan_and_sources(Validate(model=file, target=TargetChoice("host"), options=options), Session())


def _compared(made: Planned, sources: Sources, seed: int) -> Outcome:
    """Runs two sets of inputs, and compares their outputs with those of the references.

    The second run begins with the state that the first one left.
    """
    inputs, resets = draw_inputs(made.graph, 2, seed), (True, False)
    with build_temporarily(made, sources, ("-O1", *SANITIZERS)) as image:
        outcome = execute(made, image, inputs, resets=resets)
    refer = referrer(Reference.NUMPY, b"", made.source, made.graph)
    for number, one in enumerate(inputs):
        want = refer(one, resets[number])
        found = difference(made.graph, number, outcome.outputs[number], want)
        if found:
            return Outcome("differs", str(found[0]))
    answer = _litert(made, inputs, outcome.outputs)
    if answer == _OTHER:
        return Outcome("differs from LiteRT")
    return Outcome("equal to both" if answer == _EQUAL else "equal, LiteRT takes it not")


def _litert(made: Planned, inputs: Sequence[Sequence[Array]], outputs: Sequence[dict[int, bytes]]) -> int:
    """Compares the outputs with LiteRT's in a child process; returns its exit status.

    The status is _UNTAKEN if LiteRT does not accept the model or crashes.
    """
    child = os.fork()
    if child == 0:
        status = _UNTAKEN
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # LiteRT says why it takes a file not
            signal.alarm(LITERT_SECONDS)
            file = tflite_file(made.model, made.source)
            same = True
            refer = referrer(Reference.LITERT, file, made.source, made.graph)
            for number, one in enumerate(inputs):
                want = refer(one, number == 0)
                same = same and not difference(made.graph, number, outputs[number], want)
            status = _EQUAL if same else _OTHER
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code in (_EQUAL, _OTHER) else _UNTAKEN
