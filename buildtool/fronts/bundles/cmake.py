"""CMakeLists.txt: a folder's networks as static libraries."""

from __future__ import annotations

import json

from buildtool.fronts.bundles.types import Folder
from buildtool.schema.builds import BundledNetwork

_TAKEN = frozenset(
    "all clean edit_cache help install list_install_components nn_kernels package "
    "package_source rebuild_cache test".split()
)

_HEAD = """\
# Networks: {nets}. Made by buildtool; changes are lost at its next run.
#
#     add_subdirectory(networks)
#     target_link_libraries(app PRIVATE {first})
#
# They are compiled by the project's own toolchain, which selects the core:
#     {core}
cmake_minimum_required(VERSION 3.13)
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  project(networks LANGUAGES C)
endif()

option(NN_WEIGHTS_IN_C "Compile the weights as C, where the assembler is not GNU's" OFF)
if(NOT NN_WEIGHTS_IN_C)
  enable_language(ASM)
endif()
if(TARGET nn_kernels)
  message(FATAL_ERROR "There are two folders of networks in this project, each with its own kernels: "
    "write all networks into one folder, by 'buildtool build MODEL --bundle --out' of the same folder.")
endif()

# What the kernels and networks need of any compiler.
set(nn_options "$<$<COMPILE_LANGUAGE:C>:{exact}>")
set(nn_definitions {defines})

add_library(nn_kernels STATIC
  {kernels})
target_include_directories(nn_kernels PUBLIC
  {include_kernels})
target_compile_options(nn_kernels PRIVATE ${{nn_options}})
target_compile_definitions(nn_kernels PRIVATE ${{nn_definitions}})
"""
_NETWORK = """
add_library({net} STATIC
  {sources})
if(NN_WEIGHTS_IN_C)
  target_sources({net} PRIVATE ${{CMAKE_CURRENT_SOURCE_DIR}}/{array})
  target_compile_definitions({net} PRIVATE NN_WEIGHTS_IN_C)
else()
  target_sources({net} PRIVATE ${{CMAKE_CURRENT_SOURCE_DIR}}/{assembly})
  set_source_files_properties(${{CMAKE_CURRENT_SOURCE_DIR}}/{assembly} PROPERTIES
    OBJECT_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/{weights})
endif()
target_include_directories({net} PUBLIC
  {include})
target_compile_options({net} PRIVATE ${{nn_options}})
target_compile_definitions({net} PRIVATE ${{nn_definitions}})
target_link_libraries({net} PRIVATE nn_kernels)
"""


def library(net: str) -> str:
    """The name of a network's target: its own, unless CMake has one of that name."""
    return f"{net}_network" if net in _TAKEN else net


def cmake(folder: Folder) -> bytes:
    """The file's text."""
    common = folder.any
    head = _HEAD.format(
        nets=" ".join(sorted(folder.networks)),
        first=library(min(folder.networks)),
        core=" ".join(common["core"]) or "whatever core the compiler builds for",
        exact=";".join(common["exact"]),
        defines=" ".join(_quoted(define) for define in common["defines"]),
        kernels=_lines(folder.all("kernels")),
        include_kernels=_lines([_here(name) for name in folder.all("include_kernels")]),
    )
    return "".join([head, *(_network(net, network) for net, network in folder.each)]).encode()


def _network(net: str, network: BundledNetwork) -> str:
    return _NETWORK.format(
        net=library(net),
        sources=_lines(network["sources"]),
        array=network["array"],
        assembly=network["assembly"],
        weights=network["weights"],
        include=_lines([_here(name) for name in network["include"]]),
    )


def _here(name: str) -> str:
    return "${CMAKE_CURRENT_SOURCE_DIR}/" + name


def _quoted(word: str) -> str:
    return json.dumps(word)


def _lines(names: list[str]) -> str:
    return "\n  ".join(names)
