"""Random int8 networks, as `buildtool target check` draws them."""

from buildtool.zoo.drawn import NetBuilder, quant

__all__ = ["NetBuilder", "quant"]
