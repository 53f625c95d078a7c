"""sources.mk: a folder's sources and flags for a makefile."""

from __future__ import annotations

from buildtool.fronts.bundles.types import Folder


def make(folder: Folder) -> bytes:
    """The file's text."""
    common = folder.any
    own = [name for _, network in folder.each for name in network["sources"]]
    assembly = [network["assembly"] for _, network in folder.each]
    arrays = [network["array"] for _, network in folder.each]
    images = [network["weights"] for _, network in folder.each]
    include = list(dict.fromkeys(name for _, network in folder.each for name in network["include"]))
    defines = "".join(f"NN_CPPFLAGS += -D{define}\n" for define in common["defines"])
    text = f"""\
# Networks: {" ".join(sorted(folder.networks))}. Made by buildtool; changes are lost at its next run.
#
# A makefile that includes this file compiles NN_SOURCES; README.md has the rules. NN_OBJECTS are their names,
# relative to NN_DIR, with .o behind them. NN_WEIGHTS_IN_C=1 takes the weights as C, for other assemblers.

ifdef NN_SOURCES
$(error There are two folders of networks: write all networks of a program into one)
endif
ifndef NN_DIR
NN_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
endif
NN_WEIGHTS_IN_C ?=

# For the application, and for the kernels and networks besides.
NN_INCLUDES := $(addprefix -I$(NN_DIR)/,{" ".join(include)})
NN_CPPFLAGS := $(NN_INCLUDES) $(addprefix -I$(NN_DIR)/,{" ".join(folder.all("include_kernels"))})
{defines}
# Of any compiler for the reference's bytes; the core that the networks are for ({common["board"]}).
NN_CFLAGS := {" ".join(common["exact"])}
NN_CORE := {" ".join(common["core"])}

NN_C := {_words([*folder.all("kernels"), *own])}
NN_WEIGHTS := {_words(images)}

ifeq ($(NN_WEIGHTS_IN_C),)
NN_C_AND_S := $(NN_C) {_words(assembly)}
else
NN_C_AND_S := $(NN_C) {_words(arrays)}
NN_CPPFLAGS += -DNN_WEIGHTS_IN_C
endif

NN_SOURCES := $(addprefix $(NN_DIR)/,$(NN_C_AND_S))
NN_OBJECTS := $(addsuffix .o,$(NN_C_AND_S))
"""
    return "\n".join(line.rstrip() for line in text.split("\n")).encode()


def _words(names: list[str]) -> str:
    """Names as a list that make reads, one a line where there are several."""
    return names[0] if len(names) == 1 else "".join(f"\\\n    {name} " for name in names).rstrip()
