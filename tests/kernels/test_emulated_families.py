"""On emulated boards each family's kernels give the plain kernels' bytes, in every placement."""

import functools

import numpy as np
import pytest
from boardcalls import BOARDS, LARGE_LX106, M0_MUL32, M3_MUL32, M3_RISCV, PLACED, collect, record, recording
from kernelcases import means, pairs
from kernelcases import windowed as small
from largecases import (
    column_pools,
    deep_convolutions,
    depthwise_3x3,
    depthwise_rows,
    extreme,
    grouped,
    large_windows,
    one_column,
    spread_depthwise,
    taps,
)
from largecases import windowed as large
from loaded import load_target
from wholecalls import whole_call

from buildtool.graph.types import OpKind

slow = pytest.mark.slow


STRATEGIES = {
    **{kind: small[kind] for kind in ("convolution", "depthwise", "dense", "elementwise", "pool", "table")},
    "deep": deep_convolutions(),
    "depthwise_3x3": depthwise_3x3(),
    "depthwise_rows": depthwise_rows(),
    "grouped": grouped(),
    "large factors": large["large factors"],
    "filled pool": large["filled pool"],
    "spread depthwise": spread_depthwise(),
    "transpose_convolution": small["transpose_convolution"],
    "wide": large["elementwise"],
    **extreme,
}
EXTREMES = pairs((OpKind.MAXIMUM, OpKind.MINIMUM))
OF_DSP = ("convolution", "depthwise", "transpose_convolution", "dense", "elementwise", "pool")
OF_MVE = (
    *("convolution", "depthwise", "transpose_convolution", "dense", "elementwise", "table", "softmax"),
    "pool",
)
LINES = {
    "one column": taps([(rows, 1, 1) for rows in (2, 3, 5, 8, 9, 14)], (40, 1), (1, 1, 2, 4)),
    "one row": taps([(1, columns, 1) for columns in (4, 5, 6, 7, 8, 11, 16)], strides=(1, 1, 2, 4)),
}
KINDS = {
    "cortex_m_dsp": {
        **{f"small {kind}": small[kind] for kind in OF_DSP},
        **{f"large {kind}": strategy for kind, strategy in large.items()},
        "extremes": EXTREMES,
        "grouped": grouped(),
        "spread": taps([(3, 3, 3), (5, 5, 2), (7, 7, 2), (9, 1, 1), (2, 5, 3)]),
        **extreme,
    },
    "cortex_m_mve": {
        **{f"small {kind}": small[kind] for kind in OF_MVE},
        **{f"large {kind}": strategy for kind, strategy in large.items()},
        "extremes": EXTREMES,
        "grouped": grouped(),
        "column pool": column_pools(),
        "large windows": large_windows(),
        "multipliers": spread_depthwise(),
        "convolved column": one_column(OpKind.CONV_2D, 1),
        **LINES,
        "spread": taps([(3, 3, 3), (2, 3, 2), (5, 5, 2), (1, 5, 2), (4, 7, 3)]),
        **extreme,
    },
    "riscv": STRATEGIES | {"extremes": EXTREMES, "one column": one_column(OpKind.DEPTHWISE_CONV_2D)},
    "riscv_v": STRATEGIES | {"extremes": EXTREMES, "one column": one_column(OpKind.DEPTHWISE_CONV_2D)},
    "mul32": {
        kind: strategy
        for kind, strategy in STRATEGIES.items()
        if kind not in ("table", "spread depthwise", "transpose_convolution")
    },
}
# Every core and every compiler; two cores have both: the cores' instructions are the same, but clang tells
# kernels that the core is a Cortex-M7. Vector kernels run with both sizes of vector registers.
IMAGES = {
    "cortex_m_dsp": (
        *(("cortex-m4", "clang"), ("cortex-m4", "gcc")),
        *(("mps2-an500", "clang"), ("mps2-an500", "gcc"), ("mps2-an505", "clang")),
    ),
    "cortex_m_mve": (("cortex-m55", "clang"), ("cortex-m55", "gcc")),
    "riscv": (("qemu-virt-rv32", ""), (M3_RISCV, "clang")),
    "riscv_v": (("qemu-virt-rv32v", ""), ("qemu-virt-rv32v256", "")),
    "mul32": (
        *((LARGE_LX106, ""), (M0_MUL32, "clang"), (M0_MUL32, "gcc")),
        *((M3_MUL32, "clang"), (M3_MUL32, "gcc")),
    ),
}


@slow
@pytest.mark.parametrize("family", KINDS)
def test_every_placement_leaves_the_same_bytes(family):
    """A convolution's scratch also equals that of its size function and of the catalogue."""
    with recording(family) as recorder:
        for kind in sorted(KINDS[family]):
            count = PLACED if "pool" in kind else 24  # few windows of any size are squares
            assert record(recorder, KINDS[family][kind], count) > 1, kind
        recorder.choose_in_turn()
        for kind in ("convolution", "depthwise", "dense", "elementwise"):
            record(recorder, small[kind], 24)
    assert any(r.twin is not None and r.formula > 0 for r in recorder.recorded)
    for board, toolchain in IMAGES[family]:
        recorder.check(toolchain, board)


@functools.cache
def mean_calls(family):
    """Returns calls for means over any axes, which read whole tensors."""
    target, calls = load_target(BOARDS[family]), []
    collect(means(), 60, lambda case: calls.append(whole_call(target, case.graph, case.inputs, len(calls))))
    family_calls = [call for call in calls if call.kernel.sources[0].startswith(family + "/")]
    assert len(family_calls) > 40
    return family_calls


@slow
@pytest.mark.parametrize(
    ("family", "board", "toolchain"),
    [(family, *image) for family, images in IMAGES.items() for image in images],
)
def test_means_over_any_axes(family, board, toolchain):
    with recording(family) as recorder:
        firmware = recorder.firmware(toolchain, board)
    results = firmware.run([whole.call for whole in mean_calls(family)])
    for whole, result in zip(mean_calls(family), results, strict=True):
        assert whole.left(result) == whole.wanted
        ((first, end),) = whole.written
        changed = result.changed()
        assert np.all((changed >= first) & (changed < end))
