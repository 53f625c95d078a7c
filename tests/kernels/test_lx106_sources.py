"""The LX106 kernels compile without a warning, and need no more than the runtime and gcc's own helpers."""

import pytest
from cbuilds import kernel_objects, symbols
from ckernels import KERNELS
from needs import needs_tool

PLAIN = {"nn_add_s8", "nn_mul_s8", "nn_mean_s8"}  # which the catalogue names beside its own
# The kernel of one group, of which that of several is made.
ONE_GROUP = {"nn_conv2d_s8_lx106", "nn_conv2d_s8_lx106_scratch_bytes"}
HELPERS = {"__muldi3", "__umulsidi3", "__ashldi3", "__lshrdi3", "__ashrdi3"}
QUOTIENTS = {"__divsi3", "__modsi3", "__udivsi3", "__umodsi3"}
ALLOWED = {"memcpy", "memset", "memmove", *PLAIN, *ONE_GROUP, *HELPERS, *QUOTIENTS}


@pytest.mark.slow
def test_every_kernel_compiles_without_a_warning_and_needs_nothing(tmp_path):
    needs_tool("xtensa-lx106-elf-gcc")
    files = sorted((KERNELS / "xtensa_lx106").glob("*.c"))
    assert files
    for source, made in zip(files, kernel_objects("esp8266", "", files, tmp_path), strict=True):
        assert symbols(made).needed <= ALLOWED, source.name
