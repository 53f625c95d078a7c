"""The networks of msf-CNN's Table 1 as layer tables, and the table."""

from buildtool.plan.baselines.msf import Layer

# c or d (depthwise), kernel / stride : output channels; padding kernel // 2.
_MBV2 = (
    "c3/2:11 c1/1:11 d3/1:11 c1/1:5 c1/1:30 d3/2:30 c1/1:8 c1/1:48 d3/1:48 c1/1:8 c1/1:48 d3/2:48 "
    "c1/1:11 c1/1:66 d3/1:66 c1/1:11 c1/1:66 d3/1:66 c1/1:11 c1/1:66 d3/2:66 c1/1:22 c1/1:132 "
    "d3/1:132 c1/1:22 c1/1:132 d3/1:132 c1/1:22 c1/1:132 d3/1:132 c1/1:22 c1/1:132 d3/1:132 c1/1:33 "
    "c1/1:198 d3/1:198 c1/1:33 c1/1:198 d3/1:198 c1/1:33 c1/1:198 d3/2:198 c1/1:56 c1/1:336 d3/1:336 "
    "c1/1:56 c1/1:336 d3/1:336 c1/1:56 c1/1:336 d3/1:336 c1/1:112 c1/1:448"
)
_VWW5 = (
    "c3/2:16 d3/1:16 c1/1:8 c1/1:48 d3/2:48 c1/1:16 c1/1:48 d3/1:48 c1/1:16 c1/1:48 d3/1:48 c1/1:16 "
    "c1/1:48 d7/2:48 c1/1:24 c1/1:144 d3/1:144 c1/1:24 c1/1:120 d5/1:120 c1/1:24 c1/1:144 d7/2:144 "
    "c1/1:40 c1/1:240 d7/1:240 c1/1:40 c1/1:240 d3/1:240 c1/1:48 c1/1:192 d3/1:192 c1/1:48 c1/1:240 "
    "d5/2:240 c1/1:96 c1/1:480 d3/1:480 c1/1:96 c1/1:384 d3/1:384 c1/1:96 c1/1:288 d7/1:288 c1/1:160"
)
_320K = (
    "c3/2:16 d3/1:16 c1/1:8 c1/1:24 d7/2:24 c1/1:16 c1/1:80 d3/1:80 c1/1:16 c1/1:80 d7/1:80 c1/1:16 "
    "c1/1:64 d5/1:64 c1/1:16 c1/1:80 d5/2:80 c1/1:24 c1/1:120 d5/1:120 c1/1:24 c1/1:120 d5/1:120 "
    "c1/1:24 c1/1:120 d3/2:120 c1/1:40 c1/1:240 d7/1:240 c1/1:40 c1/1:160 d5/1:160 c1/1:40 c1/1:200 "
    "d5/1:200 c1/1:48 c1/1:240 d7/1:240 c1/1:48 c1/1:240 d3/1:240 c1/1:48 c1/1:288 d3/2:288 c1/1:96 "
    "c1/1:480 d7/1:480 c1/1:96 c1/1:384 d3/1:384 c1/1:96 c1/1:480 d7/1:480 c1/1:160"
)
INF = float("inf")

# P1: limit of F -> (bytes, F as printed). P2: limit of bytes -> the same. None: nothing fits.
_LIMITS_OF_F = (1.1, 1.2, 1.3, 1.4, 1.5, INF)
_LIMITS_OF_BYTES = (16000, 32000, 64000, 128000, 256000)


def _make_column(limits: tuple[float, ...], *cells: tuple[int, float] | None) -> dict:
    return dict(zip(limits, cells, strict=True))


P1 = {
    "MBV2-w0.35": _make_column(
        _LIMITS_OF_F, (67905, 1.1), (67905, 1.1), (21288, 1.3), (15340, 1.38), (15340, 1.38), (7887, 1.68)
    ),
    "MN2-vww5": _make_column(
        _LIMITS_OF_F, (32792, 1.04), (26128, 1.11), (17760, 1.3), (13376, 1.35), (13376, 1.35), (12000, 1.96)
    ),
    "MN2-320K": _make_column(
        _LIMITS_OF_F,
        (190096, 1.04),
        (186736, 1.19),
        (186032, 1.25),
        (156672, 1.37),
        (94184, 1.45),
        (42643, 2.69),
    ),
}
P2 = {
    "MBV2-w0.35": _make_column(
        _LIMITS_OF_BYTES, (15340, 1.38), (25674, 1.25), (63741, 1.23), (83065, 1.02), (181440, 1.0)
    ),
    "MN2-vww5": _make_column(
        _LIMITS_OF_BYTES, (13376, 1.35), (26128, 1.11), (38576, 1.02), (89600, 1.0), (89600, 1.0)
    ),
    "MN2-320K": _make_column(_LIMITS_OF_BYTES, None, None, (62880, 2.02), (94184, 1.45), (247808, 1.0)),
}


def _parse_layers(text: str, side: int) -> tuple[Layer, ...]:
    layers, channels = [], 3
    for word in text.split():
        shape, filters = word[1:].split(":")
        kernel, stride = map(int, shape.split("/"))
        layers.append(
            Layer(kernel, stride, kernel // 2, channels, int(filters), side, side, word[0] == "d"),
        )
        side, channels = layers[-1].rows_out, layers[-1].filters
    return tuple(layers)


TABLES = {
    "MBV2-w0.35": _parse_layers(_MBV2, 144),
    "MN2-vww5": _parse_layers(_VWW5, 80),
    "MN2-320K": _parse_layers(_320K, 176),
}
