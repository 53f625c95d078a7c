"""Fits a family's cost formulas to counts: python benchmarks/fit_costs.py BOARD... [--write [UNIT]]

The kernels of the boards' families are counted over a spread of shapes (single.py). Each kernel's cost
becomes the sum of terms (cost_terms.toml) with the least relative error and no negative coefficient: in
executed instructions, and in cycles for a core that LLVM has a pipeline model of. Boards of one family that
differ in the length of their vector registers are fitted together. For each kernel the formula, the shapes,
and the largest and the mean error are printed.

Every shape is counted in one call and on windows (windows.py); with `--streamed MODEL...` the layers of
streamed plans are shapes, too. A layer is the sum of its calls, each with the rows and columns that it
computes for oh and ow. A board must have memory for them: tests/support/boards/fe310-large.toml is the
HiFive1's core in large memories.

`--write instructions` writes the formulas of the first family into its catalogue.toml, and those of portable
families' kernels into the table [portable] there. `--write cycles` writes those of all families into their
costs/MODEL.toml. `--write` alone does both. `--kernels NAME...` counts, fits and writes only these kernels.
network_costs.py shows what the formulas predict for whole networks.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import single
import streamed
import windows

from buildtool.base.expression import compiled
from buildtool.base.modes import CostUnit
from buildtool.firmware.run.cycles import find_timer
from buildtool.graph.types import Graph, OpKind
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.models import load_model, read_graph
from buildtool.plan.schedule.costs import Calls, parts, region_calls
from buildtool.plan.schedule.receptive import accumulates
from buildtool.target.catalogue import LEAST_VECTOR_BITS, features, select_all
from buildtool.target.costs import geometry, terms, variables
from buildtool.target.cycle_costs import FIGURES, FOLDER, RATIO
from buildtool.target.family import CATALOGUE, define_names, load_family
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_target
from buildtool.target.types import KernelVariant, Target
from buildtool.target.variables import VECTOR_BITS

TERMS = Path(__file__).resolve().parent / "cost_terms.toml"
DIGITS = 3  # of a coefficient
WIDTH = 112  # characters of a line of a formula
SPARE = 0.02  # of the error, for a term less
ROUNDS = 500  # of a fit; it takes about as many as there are terms
WINDOWS_WEIGHT = 0.7  # of a single operator on windows, beside a layer of a network
LIMITS = (1.0, 1.1)  # on F, of the streamed plans whose layers count


def shapes() -> list[single.Single]:
    """Returns the operators to measure: layers of usual networks, and a few unusual ones.

    As in usual networks, an activation follows convolutions that add channels, depthwise layers and larger
    kernels.
    """
    found = [
        single.conv(side, side, cin, cout, relu=cout > cin)
        for side, cin, cout in [
            *[(48, 8, 16), (40, 16, 48), (24, 16, 96), (24, 32, 32), (20, 24, 72), (20, 96, 24)],
            *[(14, 64, 64), (12, 64, 128), (10, 64, 192), (10, 192, 32), (7, 160, 96), (6, 128, 128)],
            *[(5, 96, 320), (5, 320, 64), (3, 256, 128), (3, 64, 256), (1, 256, 64), (1, 64, 10), (9, 7, 5)],
            *[(22, 40, 200), (22, 200, 40), (11, 96, 480), (11, 480, 96), (36, 8, 48), (36, 96, 8)],
            *[(72, 16, 8), (40, 24, 16), (5, 160, 1280), (6, 192, 1152), (18, 48, 8), (25, 64, 64)],
        ]
    ]
    found += [single.conv(24, 24, 16, 32, 1, 2), single.conv(13, 13, 32, 16, 1, 2)]
    found += [
        single.conv(*dimensions, kernel, stride, relu=True)
        for *dimensions, kernel, stride in [
            *[(96, 96, 3, 8, 3, 2), (48, 48, 3, 16, 3, 2), (32, 32, 3, 16, 3, 1), (49, 10, 1, 64, 3, 2)],
            *[(48, 48, 1, 8, 3, 2), (24, 24, 3, 16, 5, 2), (16, 16, 16, 16, 3, 1), (16, 16, 16, 32, 3, 2)],
            *[(8, 8, 64, 64, 3, 1), (8, 8, 32, 64, 3, 2), (5, 5, 48, 24, 3, 1), (20, 20, 8, 8, 5, 1)],
            *[(12, 12, 10, 12, 3, 1), (28, 28, 6, 16, 5, 1), (14, 14, 4, 24, 7, 2), (6, 6, 32, 20, 3, 1)],
            *[(4, 4, 8, 8, 3, 1), (3, 3, 16, 16, 3, 1), (5, 6, 4, 6, 3, 1), (2, 9, 12, 4, 3, 2)],
            *[(24, 24, 1, 32, 5, 1), (20, 20, 2, 40, 3, 1), (28, 28, 1, 64, 7, 1), (24, 24, 1, 64, 9, 1)],
            *[(20, 20, 2, 64, 7, 2), (12, 12, 4, 16, 3, 1), (40, 40, 1, 64, 4, 2), (50, 50, 3, 16, 3, 2)],
            *[(96, 96, 3, 32, 3, 2), (80, 80, 3, 16, 3, 2), (32, 32, 16, 16, 3, 1), (16, 16, 32, 32, 3, 1)],
        ]
    ]
    found += [
        single.conv(*dimensions, kernel, stride, relu=True, same=False)
        for *dimensions, kernel, stride in [
            *[(60, 60, 1, 8, 5, 2), (44, 44, 8, 16, 3, 1), (28, 28, 1, 6, 5, 1), (32, 32, 3, 32, 3, 1)],
            *[(14, 14, 6, 16, 5, 1), (13, 13, 32, 64, 3, 1), (40, 40, 3, 16, 3, 2), (30, 30, 1, 32, 3, 1)],
            *[(5, 1, 40, 32, (5, 1), 1), (40, 1, 13, 24, (9, 1), 1), (62, 1, 20, 32, (3, 1), 2)],
            *[
                (10, 10, 16, 24, 3, 2),
                (6, 6, 64, 32, 3, 1),
                (25, 25, 4, 12, 7, 2),
                (1, 30, 24, 32, (1, 5), 1),
            ],
        ]
    ]
    found += [
        single.conv(rows, 1, cin, cout, (taps, 1), stride, relu=True)
        for rows, cin, cout, taps, stride in [
            *[(40, 16, 24, 3, 1), (64, 32, 32, 5, 2), (20, 64, 48, 3, 1), (33, 8, 10, 9, 1)],
            *[(12, 3, 7, 4, 2), (100, 24, 64, 3, 1), (7, 48, 96, 3, 1), (24, 12, 3, 7, 1)],
        ]
    ]
    found += [
        single.grouped(*dimensions)
        for dimensions in [
            *[
                (24, 24, 32, 32, 3, 4),
                (24, 24, 64, 64, 1, 2),
                (14, 14, 64, 64, 3, 8),
                (12, 12, 128, 128, 3, 32),
            ],
            *[
                (14, 14, 120, 120, 1, 3),
                (7, 7, 240, 240, 1, 8),
                (20, 20, 24, 24, 5, 3),
                (9, 9, 30, 20, 3, 10),
            ],
            *[(10, 10, 96, 96, 3, 2), (6, 6, 128, 64, 3, 4), (5, 5, 160, 160, 1, 4), (28, 28, 16, 16, 3, 4)],
            *[(20, 20, 32, 64, 1, 16), (11, 11, 72, 36, 3, 2), (8, 8, 48, 96, 5, 3)],
        ]
    ]
    found += [
        single.conv(height, width, cin, cout, kernel, stride)
        for height, width, cin, cout, kernel, stride in [
            *[(14, 14, 37, 1, 3, 1), (20, 20, 64, 1, 1, 1), (9, 12, 59, 3, 3, 2), (24, 24, 16, 2, 5, 1)],
            *[(10, 10, 96, 6, 1, 1), (6, 8, 38, 6, 4, 1), (30, 1, 80, 4, (3, 1), 1), (16, 16, 24, 1, 3, 1)],
        ]
    ]
    found += [
        single.depthwise(height, width, channels, kernel, stride)
        for height, width, channels, kernel, stride in [
            *[(24, 24, 8, 9, 1), (24, 24, 8, 9, 2), (12, 12, 30, 9, 1), (15, 22, 30, (1, 9), 2)],
            *[(9, 9, 48, 8, 1), (20, 23, 3, 9, 2), (30, 40, 4, (3, 8), 1), (7, 15, 16, (2, 9), 1)],
            *[(13, 31, 6, (5, 8), 2), (5, 5, 96, 9, 1)],
        ]
    ]
    found += [
        single.depthwise(side, side, channels, kernel, stride, relu=True)
        for kernel in (3, 5, 7)
        for side, channels, stride in [
            *[(48, 8, 1), (40, 16, 2), (24, 96, 1), (24, 96, 2), (20, 64, 1), (20, 48, 2), (14, 32, 2)],
            *[(12, 64, 1), (10, 96, 1), (10, 144, 2), (7, 160, 1), (6, 128, 1), (5, 192, 1), (3, 256, 1)],
            *[(9, 6, 1), (80, 8, 1), (22, 120, 1), (11, 192, 1), (44, 24, 2), (25, 64, 1), (44, 16, 1)],
            *[
                (72, 8, 2),
                (28, 32, 2),
                (22, 80, 2),
                (12, 96, 2),
                (11, 48, 2),
                (7, 64, 2),
                (6, 160, 2),
                (5, 24, 2),
            ],
        ]
    ]
    found += [
        single.dense(*n)
        for n in [(64, 10), (128, 128), (256, 1000), (1024, 128), (640, 128), (16, 2), (50, 33), (8, 128)]
    ]
    found += [single.dense(128, 640), single.dense(1280, 100), single.dense(160, 2)]
    sizes = [(40, 40, 24), (20, 20, 32), (10, 10, 96), (5, 5, 160), (32, 32, 16), (7, 7, 10), (3, 3, 5)]
    kinds = (OpKind.ADD, OpKind.MUL, OpKind.MAXIMUM, OpKind.MINIMUM)
    found += [single.binary(kind, *size) for kind in kinds for size in sizes]
    found += [
        single.widened(*size)
        for size in [
            *[(48, 48, 28, 24), (32, 32, 42, 36), (16, 16, 56, 48), (24, 24, 32, 16), (8, 8, 96, 88)],
            *[(20, 20, 24, 8), (12, 12, 48, 32, 8), (10, 14, 40, 24, 16), (6, 6, 120, 96), (5, 5, 72, 8)],
        ]
    ]
    found += [
        single.pool(kind, *size)
        for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
        for size in [
            *[(3, 3, 256, 3, 1), (7, 7, 64, 7, 1), (8, 8, 64, 8, 1), (24, 24, 16, 2, 2), (12, 12, 32, 3, 2)],
            *[(25, 5, 64, 5, 5), (20, 20, 10, 2, 2), (9, 9, 32, 3, 1), (12, 12, 96, 2, 2)],
            *[(16, 16, 8, 4, 2), (14, 6, 33, 5, 5), (20, 20, 3, 3, 2), (10, 10, 64, 4, 4)],
        ]
    ]
    found += [
        single.pool(kind, *size)
        for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
        for size in [(24, 24, 3, 2, 2), (16, 16, 1, 2, 2), (12, 12, 2, 3, 1)]
    ]
    found += [
        single.mean(*size) for size in [(5, 5, 1280), (7, 7, 320), (3, 3, 160), (10, 10, 96), (4, 4, 7)]
    ]
    found += [
        single.depthwise(rows, width, channels, (1, kernel), relu=True)
        for rows, width, channels, kernel in [
            *[
                (1, 128, 64, 7),
                (1, 49, 32, 5),
                (1, 200, 16, 8),
                (3, 24, 40, 5),
                (1, 32, 96, 6),
                (1, 20, 24, 7),
            ],
        ]
    ]
    found += [
        single.depthwise(rows, columns, channels, kernel, same=same)
        for rows, columns, channels, kernel, same in [
            *[(5, 1, 32, (5, 1), False), (9, 1, 64, (9, 1), False), (13, 1, 64, (13, 1), False)],
            *[(21, 1, 64, (21, 1), False), (11, 1, 96, (11, 1), False), (7, 1, 30, (7, 1), False)],
            *[(40, 1, 32, (5, 1), False), (49, 1, 40, (9, 1), True), (30, 1, 128, (4, 1), True)],
            *[(25, 1, 64, (15, 1), False), (64, 1, 24, (3, 1), True), (1, 49, 32, (1, 9), True)],
            *[(1, 60, 48, (1, 15), False), (20, 10, 64, (4, 4), True), (25, 5, 8, (10, 8), True)],
            *[(1, 29, 128, (1, 29), False), (96, 1, 16, (13, 1), True), (20, 1, 256, (9, 1), False)],
            *[
                (40, 1, 32, (3, 1), True),
                (60, 1, 16, (2, 1), False),
                (1, 50, 24, (1, 12), True),
                (1, 33, 48, (1, 16), False),
            ],
        ]
    ]
    found += [
        single.multiplied(*dimensions)
        for dimensions in [
            *[(24, 24, 3, 4), (24, 24, 3, 8, 3, 2), (24, 24, 12, 2), (10, 10, 12, 2), (16, 16, 20, 3)],
            *[(5, 5, 33, 2), (14, 14, 2, 8, 5), (12, 12, 16, 2, 5, 2), (8, 8, 40, 2, 7), (3, 3, 6, 4)],
            *[
                (20, 20, 2, 16),
                (7, 7, 64, 2, 3, 2),
                (40, 40, 3, 2, 3, 2),
                (9, 9, 4, 6, 1),
                (6, 6, 16, 4, 4, 3),
            ],
        ]
    ]
    found += [
        single.depthwise(rows, columns, channels, kernel, stride)
        for rows, columns, channels, kernel, stride in [
            *[
                (32, 4, 32, (9, 1), 1),
                (16, 16, 16, (9, 9), 1),
                (20, 20, 24, (11, 11), 2),
                (24, 9, 8, (13, 3), 1),
            ],
            *[
                (12, 30, 20, (3, 29), 1),
                (30, 30, 40, (9, 9), 3),
                (14, 14, 33, (15, 2), 1),
                (25, 5, 64, (12, 1), 2),
            ],
        ]
    ]
    found += [
        single.depthwise(rows, columns, channels, kernel, stride)
        for rows, columns, channels, kernel, stride in [
            *[(24, 24, 3, 3, 1), (24, 24, 2, 3, 2), (20, 30, 1, 5, 1), (12, 12, 3, (3, 1), 1)],
            *[(1, 60, 2, (1, 7), 1), (16, 16, 3, 7, 2), (14, 20, 12, (2, 2), 2), (10, 10, 30, (3, 1), 1)],
            *[(9, 9, 48, 4, 1), (30, 30, 8, (1, 4), 1), (12, 12, 20, (6, 6), 2), (64, 1, 3, (9, 1), 1)],
            *[(1, 40, 20, (1, 4), 1), (1, 49, 24, (1, 9), 2), (30, 1, 12, (5, 1), 2), (5, 20, 72, (1, 4), 1)],
        ]
    ]
    found += [
        single.transpose(*dimensions)
        for dimensions in [
            *[(8, 8, 8, 8, 2), (8, 8, 16, 8, 3), (8, 8, 32, 16, 4), (8, 8, 64, 16, 3), (12, 12, 12, 3, 2)],
            *[
                (5, 5, 96, 64, 3),
                (16, 16, 8, 1, 5),
                (4, 4, 40, 24, 6, 3),
                (6, 9, 24, 20, 4),
                (1, 30, 16, 12, 2),
            ],
            *[(10, 10, 4, 4, 4, 4), (7, 7, 48, 48, 2), (20, 20, 16, 8, 3), (3, 3, 128, 32, 4)],
        ]
    ]
    found += [
        single.joined(axis, *parts)
        for axis, *parts in [
            *[(1, (4, 1, 40), (3, 1, 40)), (1, (8, 1, 64), (1, 1, 64)), (1, (20, 1, 64), (1, 1, 64))],
            *[(3, (12, 12, 32), (12, 12, 16)), (3, (7, 7, 10), (7, 7, 6)), (3, (20, 20, 9), (20, 20, 9))],
            *[(2, (6, 4, 24), (6, 8, 24)), (1, (30, 1, 33), (2, 1, 33)), (3, (5, 5, 96), (5, 5, 32))],
            *[(3, (10, 10, 12), (10, 10, 12), (10, 10, 12)), (1, (12, 40, 1), (3, 40, 1))],
        ]
    ]
    found += [
        single.padded(*sizes)
        for sizes in [
            *[
                (24, 24, 3, 1, 1, 1, 1),
                (24, 24, 16, 1, 1, 1, 1),
                (12, 12, 64, 0, 1, 0, 1),
                (5, 5, 7, 2, 1, 0, 3),
            ],
            *[
                (49, 10, 1, 4, 5, 1, 1),
                (40, 1, 32, 2, 2, 0, 0),
                (10, 10, 96, 1, 1, 1, 1),
                (32, 32, 4, 0, 0, 2, 2),
            ],
        ]
    ]
    found += [
        single.cut(*sizes)
        for sizes in [
            *[((5, 1, 40), (1, 0, 0), (4, 1, 40)), ((21, 1, 64), (1, 0, 0), (20, 1, 64))],
            *[((12, 12, 32), (0, 0, 16), (12, 12, 16)), ((10, 10, 30), (2, 2, 0), (6, 6, 30))],
            *[((49, 10, 1), (3, 0, 0), (46, 10, 1)), ((20, 20, 18), (0, 0, 9), (20, 20, 9))],
            *[((16, 16, 24), (0, 0, 0), (16, 8, 24), 2), ((30, 1, 33), (1, 0, 0), (29, 1, 33))],
        ]
    ]
    found += [
        single.padded(*sizes)
        for sizes in [
            *[
                (24, 24, 3, 1, 1, 1, 1),
                (12, 12, 16, 0, 1, 0, 1),
                (10, 30, 8, 2, 2, 2, 2),
                (7, 12, 49, 2, 0, 0, 1),
            ],
            *[
                (40, 1, 24, 2, 2, 0, 0),
                (48, 48, 4, 0, 1, 0, 1),
                (5, 5, 96, 1, 1, 1, 1),
                (20, 20, 5, 1, 1, 1, 1),
            ],
        ]
    ]
    found += [
        single.turned(*sizes)
        for sizes in [
            *[((12, 12, 16), (0, 3, 1, 2)), ((20, 10, 8), (0, 2, 1, 3)), ((7, 7, 32), (0, 3, 1, 2))],
            *[((2, 3, 1500), (0, 2, 1, 3)), ((3, 2, 700), (0, 2, 1, 3)), ((2, 2, 4800), (0, 2, 1, 3))],
            *[((2, 2, 190), (0, 2, 1, 3)), ((4, 3, 64), (0, 2, 1, 3)), ((2, 2, 77), (0, 2, 1, 3))],
            *[((10, 14, 6), (0, 2, 3, 1)), ((24, 1, 40), (0, 3, 2, 1)), ((6, 8, 64), (0, 2, 1, 3))],
        ]
    ]
    found += [
        single.filled_pool(*size)
        for size in [
            *[(8, 8, 64, 3, 1, 1), (14, 14, 32, 3, 1, 1), (17, 17, 24, 3, 1, 1), (12, 12, 32, 3, 2, 1)],
            *[(7, 7, 96, 2, 2, 1), (9, 9, 20, 5, 1, 2), (5, 5, 10, 3, 1, 1), (16, 16, 16, 2, 1, 1)],
            *[(20, 20, 8, 5, 2, 2), (24, 24, 4, 3, 1, 1), (3, 3, 160, 3, 1, 1), (10, 10, 48, 7, 2, 3)],
        ]
    ]
    found += _wide_shapes()
    found += [single.softmax(n) for n in (2, 10, 100, 1000)]
    found += [single.table(*size) for size in [(20, 20, 32), (5, 5, 96), (1, 1, 10), (40, 40, 8)]]
    return found


def _wide_shapes() -> list[single.Single]:
    """Returns the operators on int16 to measure."""
    sizes = [(24, 24, 16), (20, 20, 24), (10, 10, 96), (5, 5, 160), (7, 7, 10), (3, 3, 5), (30, 1, 33)]
    found = [single.wide("binary", kind, *size) for kind in (OpKind.ADD, OpKind.MUL) for size in sizes]
    found += [
        single.wide("pool", kind, *size)
        for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
        for size in [
            *[(24, 24, 16, 2, 2), (7, 7, 64, 7, 1), (12, 12, 3, 3, 1), (12, 12, 32, 3, 2), (9, 9, 20, 3, 1)],
            *[(20, 20, 10, 2, 2), (5, 5, 96, 5, 1), (16, 16, 8, 4, 4), (20, 20, 7, 20, 1)],
        ]
    ]
    found += [
        single.wide("conv", *size)
        for size in [
            *[(24, 24, 16, 16), (12, 12, 64, 64), (10, 10, 24, 72), (7, 7, 160, 32), (5, 5, 96, 320)],
            *[
                (12, 12, 16, 16, 3),
                (8, 8, 64, 32, 3),
                (20, 20, 3, 16, 3, 2),
                (9, 9, 10, 12, 5),
                (24, 8, 1, 32, 3),
            ],
            *[(30, 1, 13, 24, (3, 1)), (1, 40, 32, 16, (1, 7)), (6, 6, 8, 9, 3), (14, 14, 4, 6)],
        ]
    ]
    found += [
        single.wide("depthwise", *size)
        for size in [
            *[(24, 24, 16, 3), (24, 24, 16, 3, 2), (10, 10, 96, 3), (5, 5, 160, 5), (14, 14, 32, 5, 2)],
            *[(7, 7, 12, 7), (40, 1, 64, (5, 1)), (1, 40, 40, (1, 9)), (3, 3, 5, 3), (20, 20, 8, 1)],
        ]
    ]
    found += [
        single.wide("grouped", *size)
        for size in [
            *[(14, 14, 64, 64, 3, 8), (24, 24, 32, 32, 1, 2), (10, 10, 30, 20, 3, 5), (7, 7, 96, 48, 1, 4)],
            *[(12, 12, 24, 48, 3, 3), (20, 20, 16, 16, 1, 4), (9, 9, 12, 6, 5, 2), (5, 5, 160, 160, 3, 2)],
        ]
    ]
    found += [
        single.wide("transpose", *size)
        for size in [
            (8, 8, 8, 8, 2),
            (8, 8, 16, 8, 3),
            (5, 5, 48, 24, 4),
            (6, 9, 24, 10, 3),
            (1, 20, 16, 12, 2),
        ]
    ]
    found += [
        single.wide("multiplied", *size)
        for size in [
            (16, 16, 12, 2),
            (16, 16, 3, 4),
            (10, 10, 33, 3, 3, 2),
            (12, 12, 6, 2, 5),
            (7, 7, 2, 8, 1),
        ]
    ]
    shapes_ = [((24, 24, 16), (1, 0, 0), (20, 24, 16)), ((12, 12, 32), (0, 0, 8), (12, 12, 16))]
    shapes_ += [((30, 1, 33), (1, 0, 0), (29, 1, 33)), ((16, 16, 24), (0, 0, 0), (16, 8, 24), 2)]
    found += [single.wide("cut", *shape) for shape in shapes_]
    found += [
        single.wide("concat", *size)
        for size in [
            (16, 16, 8, 8),
            (10, 10, 3, 5),
            (7, 7, 33, 20),
            (20, 1, 64, 32),
            (5, 5, 96, 96),
            (2, 2, 4, 4),
            (30, 30, 8, 4),
            (14, 14, 12, 24),
        ]
    ]
    found += [
        single.wide("padded", *size)
        for size in [
            (24, 24, 16, 1, 1, 1, 1),
            (5, 5, 7, 2, 1, 0, 3),
            (40, 1, 32, 2, 2, 0, 0),
            (12, 12, 3, 0, 1, 0, 1),
        ]
    ]
    sizes_of_dense = [(37, 13), (256, 64), (64, 10), (128, 128), (640, 32), (16, 2), (50, 33)]
    return found + [single.wide("dense", *size) for size in sizes_of_dense]


def terms_of(kernel: KernelVariant) -> list[str]:
    """Returns the terms for the kernel's formula.

    They are those of cost_terms.toml for the kernel, or else for its operator; [] if it has neither.
    """
    known = tomllib.loads(TERMS.read_text(encoding="utf-8"))
    found: list[str] = known["kernels"].get(kernel.name) or known["operators"].get(kernel.op, [])
    return found


def fitted(matrix: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns coefficients >= 0 with the least sum of squared relative errors, for as few terms as possible.

    `matrix` has a row of terms for each count, and `weights` how much each counts. Terms are removed one by
    one, each time the least useful one, while the error grows by at most SPARE.
    """
    relative = matrix / counts[:, None] * weights[:, None]
    scale = np.abs(relative).max(axis=0)
    relative = relative / np.where(scale > 0, scale, 1)
    kept = np.flatnonzero(scale > 0)
    values = _least_squares(relative[:, kept], weights)
    allowed = _error(relative[:, kept], values, weights) * (1 + SPARE) + 1e-6
    kept, values = kept[values > 0], values[values > 0]
    while len(kept) > 1:
        fewer = [np.delete(kept, i) for i in range(len(kept))]
        tried = [_least_squares(relative[:, some], weights) for some in fewer]
        errors = [_error(relative[:, some], v, weights) for some, v in zip(fewer, tried, strict=True)]
        best = int(np.argmin(errors))
        if errors[best] > allowed:
            break
        kept, values = fewer[best], tried[best]
    found = np.zeros(matrix.shape[1])
    found[kept] = values / scale[kept]
    return found


def _error(matrix: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> float:
    return float(((matrix @ values - wanted) ** 2).sum())


def _least_squares(matrix: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Returns the solution >= 0 of a least-squares problem, by the active set method of Lawson and Hanson."""
    columns = matrix.shape[1]
    values, active = np.zeros(columns), np.zeros(columns, bool)
    for _ in range(ROUNDS):
        gain = matrix.T @ (wanted - matrix @ values)
        if active.all() or (gain[~active] <= 1e-9).all():
            break
        active[np.where(active, -np.inf, gain).argmax()] = True
        while True:
            tried = np.zeros(columns)
            tried[active] = np.linalg.lstsq(matrix[:, active], wanted, rcond=None)[0]
            if (tried[active] > 0).all():
                break
            falling = active & (tried <= 0)
            step = (values[falling] / (values[falling] - tried[falling] + 1e-300)).min()
            values = values + step * (tried - values)
            active &= values > 1e-12
            values[~active] = 0
        values = tried
    return values


def formula(terms: Sequence[str], coefficients: np.ndarray) -> str:
    """Returns the formula: the terms with coefficients above 0, which are rounded."""
    parts = []
    for term, value in zip(terms, coefficients, strict=True):
        if value > 0:
            number = np.format_float_positional(value, DIGITS, unique=False, fractional=False, trim="-")
            parts.append(number if term == "1" else f"{number} * {term}")
    return " + ".join(parts)


@dataclasses.dataclass(frozen=True)
class Sample:
    """A measured layer.

    `calls` has (variables, count) for each kind of kernel call. `weight` is how much it counts in the fit.
    """

    calls: tuple[tuple[Mapping[str, int], int], ...]
    instructions: int
    cycles: float | None
    weight: float = 1.0

    def value(self, expression: str) -> float:
        """Returns the sum of a term, which is an expression, over the layer's calls."""
        formula = compiled(expression)
        return sum(float(formula(known)) * times for known, times in self.calls)

    def counted(self, unit: CostUnit) -> float:
        """Returns the instructions or the cycles that the layer took."""
        found = self.cycles if unit is CostUnit.CYCLES else self.instructions
        assert found is not None
        return float(found)


def served(target: Target, kernels: Sequence[str]) -> list[single.Single]:
    """Returns the shapes that the target computes with one of `kernels`; all shapes if none is named."""
    found = []
    for shape in shapes():
        builder = single.Builder()
        shape(builder)
        chosen = select_all(target, builder.whole())
        if not kernels or any(kernel and kernel.name in kernels for kernel in chosen):
            found.append(shape)
    return found


def samples(
    target: Target, toolchain: str, models: Sequence[str], kernels: Sequence[str] = ()
) -> Iterator[tuple[str, Sample]]:
    """Yields (kernel, sample) for single operators, whole and in windows, and for streamed plans' layers."""
    bits = {VECTOR_BITS: target.board.core.vector_bits or LEAST_VECTOR_BITS}
    wanted = served(target, kernels)
    if not wanted and not models:
        sys.exit(f"no shape here is computed by {' or '.join(kernels)} on {target.board.name}: see shapes()")
    for builder in single.images(wanted):
        graph = builder.whole()
        plan = layerwise(graph, target, in_place="none", image="overwritable")
        instructions, cycles = windows.run(graph, plan, target, toolchain)
        for position, op in enumerate(graph.ops):
            calls = ((features(graph, op) | bits, 1),)
            yield plan.kernels[position], Sample(calls, instructions[position], cycles.get(position))
    for found in windows.count(wanted, target, toolchain):
        calls = _calls(found.graph, found.position, found.calls, bits)
        yield found.kernel, Sample(calls, found.instructions, found.cycles, WINDOWS_WEIGHT)
    for model, pixels, max_f in itertools.product(models, streamed.HAND_OFFS.values(), LIMITS):
        graph = read_graph(load_model(model))[1]
        made = make_plan(graph, target, streamed.options(pixels, max_f))
        instructions, cycles = windows.run(graph, made, target, toolchain)
        for region in made.regions:
            for position, own in region_calls(graph, region, made.image).operators.items():
                if not accumulates(graph, graph.ops[position]):
                    calls = _calls(graph, position, own, bits)
                    yield made.kernels[position], Sample(calls, instructions[position], cycles.get(position))


def _calls(
    graph: Graph, position: int, calls: Calls, bits: Mapping[str, int]
) -> tuple[tuple[Mapping[str, int], int], ...]:
    """Returns (variables, count) for each kind of call of an operator's kernel."""
    of = geometry(graph, graph.ops[position])
    rows, columns = parts(of, 0, calls.rows), parts(of, 1, calls.columns, calls.rings)
    return tuple(
        (variables(of, row, piece) | bits, weight * times * often)
        for row, times in rows
        for column, often in columns
        for piece, weight in terms(column)
    )


Fit = tuple[KernelVariant, str, int, float, float]  # kernel, formula, shapes, largest and mean error


def fit(
    kernels: Sequence[KernelVariant], measured: Mapping[str, list[Sample]], unit: CostUnit
) -> Iterator[Fit]:
    """Yields a formula for each kernel, with its largest and its mean relative error."""
    whole = tomllib.loads(TERMS.read_text(encoding="utf-8"))["whole"]
    for kernel in kernels:
        terms, known = terms_of(kernel), measured.get(kernel.name, [])
        if kernel.name in whole:
            known = [sample for sample in known if sample.weight != WINDOWS_WEIGHT]
        if len(known) < 2 or not terms:
            continue
        matrix = np.array([[sample.value(term) for term in terms] for sample in known])
        counts = np.array([sample.counted(unit) for sample in known])
        weights = np.array([sample.weight for sample in known])
        text = formula(terms, fitted(matrix, counts, weights))
        errors = np.abs([sample.value(text) / sample.counted(unit) - 1 for sample in known])
        yield kernel, text, len(counts), float(errors.max()), float(errors.mean())


# A formula's value in a file, in one line or in several.
VALUE = r'(?:"""[^"]*"""|"[^"\n]*")'


def line(key: str, text: str, names: Mapping[str, str]) -> str:
    """Returns a formula as a file has it: with the catalogue's names, in lines of limited width."""
    for name, expression in sorted(names.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(expression, name)
    terms = re.split(r" (?=\+ [\d.]+(?: |$))", text)
    lines = [terms[0]]
    for term in terms[1:]:
        if len(lines[-1]) + len(term) < WIDTH:
            lines[-1] += f" {term}"
        else:
            lines.append(term)
    if len(lines) == 1:
        return f'{key} = "{text}"'
    return "\n".join([f'{key} = """', *(f"    {one}" for one in lines), '"""'])


def write(family: str, costs: Mapping[str, str]) -> Path:
    """Replaces the costs in the family's catalogue; returns its path."""
    folder = kernels_root() / family
    path, names = folder / CATALOGUE, load_family(folder).names
    text = path.read_text(encoding="utf-8")
    for name, text_cost in costs.items():
        pattern = rf'(name = "{re.escape(name)}"\n(?:(?!\[\[).*\n)*?)cost = {VALUE}'
        made = line("cost", text_cost, names[name])
        text, replaced = re.subn(pattern, lambda found, made=made: found[1] + made, text)
        assert replaced, name
    path.write_text(text, encoding="utf-8")
    return path


def write_portable(family: str, costs: Mapping[str, str]) -> Path:
    """Writes formulas for kernels of portable families to the family's catalogue; returns its path."""
    folder = kernels_root() / family
    path, names = folder / CATALOGUE, define_names(load_family(folder).let)
    text = path.read_text(encoding="utf-8")
    if "[portable]" not in text:
        text = text.replace("[costs]\n", "[portable]\n\n[costs]\n", 1)
    for name, text_cost in costs.items():
        made = line(name, text_cost, names)
        text, replaced = _replaced(text, name, made)
        text = text if replaced else text.replace("[portable]\n", f"[portable]\n{made}\n", 1)
    path.write_text(text, encoding="utf-8")
    return path


def _replaced(text: str, name: str, made: str) -> tuple[str, int]:
    return re.subn(rf"^{re.escape(name)} = {VALUE}$", lambda _: made, text, flags=re.MULTILINE)


def write_some_cycles(family: str, costs: Mapping[str, str], target: Target) -> Path:
    """Replaces or adds some formulas in the family's file of costs in cycles; returns its path."""
    assert target.board.pipeline is not None
    folder = kernels_root() / family
    path, names = folder / FOLDER / f"{target.board.pipeline.model}.toml", load_family(folder).names
    text = path.read_text(encoding="utf-8")
    for name, text_cost in costs.items():
        made = line(name, text_cost, names[name])
        text, replaced = _replaced(text, name, made)
        text += "" if replaced else made + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def write_cycles(family: str, costs: Mapping[str, str], ratio: float, target: Target) -> Path:
    """Writes the family's file of costs in cycles for the core's model; returns its path."""
    board = target.board
    assert board.pipeline is not None
    model = board.pipeline.model
    timer = find_timer(board)
    assert not isinstance(timer, str)
    names = load_family(kernels_root() / family).names
    lines = [
        f"# Cycles by LLVM's model of the pipeline of {model}, an estimate; memories are ideal.",
        f"# Blocks of code ({timer.identity}), with what the board's file says that the model leaves out,",
        "# fitted by benchmarks/fit_costs.py.",
        f"{RATIO} = {ratio:.3g}",
        *(f"{name} = {figure}" for name in FIGURES if (figure := getattr(target.board.pipeline, name))),
        "",
        "[kernels]",
        *(line(name, text, names[name]) for name, text in costs.items()),
    ]
    path = kernels_root() / family / FOLDER / f"{model}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def named(board: str) -> Target:
    """Loads a target; its board is named as on the command line, even if that is a path."""
    name = str(Path(board).resolve()) if board.endswith(".toml") else board
    target = load_target(name)
    return dataclasses.replace(target, board=dataclasses.replace(target.board, name=name))


def main() -> None:
    """Parses the command line, measures, and prints the formulas."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boards", nargs="+", metavar="BOARD")
    parser.add_argument("--toolchain", default="")
    units = ["instructions", "cycles", "both"]
    parser.add_argument("--write", choices=units, nargs="?", const="both", default="")
    parser.add_argument("--streamed", nargs="*", default=[], metavar="MODEL")
    parser.add_argument("--kernels", nargs="*", default=[], metavar="NAME")
    given = parser.parse_args()
    targets = [named(board) for board in given.boards]
    if len({target.board.core.families[0] for target in targets}) > 1:
        parser.error("the boards' first families differ")
    measured: dict[str, list[Sample]] = {}
    for target in targets:
        for name, sample in samples(target, given.toolchain, given.streamed, given.kernels):
            measured.setdefault(name, []).append(sample)
    first = targets[0]
    families = first.board.core.families
    listed = tomllib.loads(TERMS.read_text(encoding="utf-8"))["portable"]
    portable = [family for family in families[1:] if family in listed]
    for unit, wanted in (
        (CostUnit.INSTRUCTIONS, [families[0], *portable]),
        (CostUnit.CYCLES, families),
    ):
        known = [sample for some in measured.values() for sample in some]
        if unit is CostUnit.CYCLES and any(sample.cycles is None for sample in known):
            continue
        for family in wanted:
            costs = _fitted(first, family, measured, unit)
            costs = {name: text for name, text in costs.items() if name in (given.kernels or costs)}
            if given.write not in (unit, "both") or not costs:
                continue
            if unit is CostUnit.CYCLES and given.kernels:
                print(f"written: {write_some_cycles(family, costs, first)}")
            elif unit is CostUnit.CYCLES:
                ratio = float(np.mean([sample.counted(unit) / sample.instructions for sample in known]))
                print(f"written: {write_cycles(family, costs, ratio, first)}")
            elif family in portable:
                print(f"written: {write_portable(families[0], costs)}")
            else:
                print(f"written: {write(family, costs)}")


def _fitted(
    target: Target, family: str, measured: Mapping[str, list[Sample]], unit: CostUnit
) -> dict[str, str]:
    """Prints and returns the formulas of a family's kernels."""
    costs = {}
    names = load_family(kernels_root() / family).names
    own = {kernel.name: kernel for kernel in target.kernels if kernel.name in names}
    for kernel, text, count, largest, mean in fit([*own.values()], measured, unit):
        costs[kernel.name] = text
        error = f"{count} shapes, error {mean:.1%} on average, {largest:.1%} at most"
        print(f"{kernel.name}, {unit}: {text}\n    {error}", flush=True)
    return costs


if __name__ == "__main__":
    main()
