"""Every option that a front takes is written in its messages as the front takes it."""

from __future__ import annotations

from buildtool.api.requests import options_of
from buildtool.fronts.cmake import requests
from buildtool.options import BAZEL, CMAKE, Group, platformio, spell


def test_cmake_writes_each_keyword_of_its_functions() -> None:
    for keyword, option in requests._OPTIONS.items():
        assert CMAKE.name(option.name) == keyword
        assert CMAKE.setting(option.name, 64) == f"{keyword} 64"
        assert CMAKE.setting(option.name, None) == f"without {keyword}"
    assert CMAKE.setting("toolchain", "gcc") == "-DBUILDTOOL_TOOLCHAIN=gcc"
    assert [CMAKE.name(name) for name in ("formats", "sign", "image_version")] == [
        "FORMAT",
        "SIGN",
        "IMAGE_VERSION",
    ]


def test_bazel_writes_each_attribute_of_its_rule() -> None:
    for option in options_of("emit", Group.PLANNING, Group.BUILT):
        assert BAZEL.setting(option.name, 64) == f'{option.name} = "64"'


def test_platformio_writes_each_option_of_its_file() -> None:
    for option in options_of("emit"):
        assert (
            platformio("custom_buildtool_").setting(option.name, 64) == f"custom_buildtool_{option.name} = 64"
        )


def test_options_that_a_front_lacks_are_those_of_the_command_line() -> None:
    for front in (BAZEL, CMAKE, platformio("")):
        assert front.setting("inputs", 3) == spell("inputs", 3) == "--inputs 3"
        assert front.name("inputs") == "--inputs"
    assert BAZEL.setting("threads", 2) == "--threads 2"
