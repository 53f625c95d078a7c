# Networks: {{ networks | join(" ") }}. Made by buildtool; changes are lost at its next run.
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
NN_INCLUDES := $(addprefix -I$(NN_DIR)/,{{ include | join(" ") }})
NN_CPPFLAGS := $(NN_INCLUDES) $(addprefix -I$(NN_DIR)/,{{ include_kernels | join(" ") }})
{% for define in common.defines %}
NN_CPPFLAGS += -D{{ define }}
{% endfor %}

# Of any compiler for the reference's bytes; the core that the networks are for ({{ common.board }}).
NN_CFLAGS := {{ common.exact | join(" ") }}
NN_CORE :={{ " " ~ common.core | join(" ") if common.core }}

NN_C := {{ (kernels + sources) | lines }}
NN_WEIGHTS := {{ weights | lines }}

ifeq ($(NN_WEIGHTS_IN_C),)
NN_C_AND_S := $(NN_C) {{ assembly | lines }}
else
NN_C_AND_S := $(NN_C) {{ arrays | lines }}
NN_CPPFLAGS += -DNN_WEIGHTS_IN_C
endif

NN_SOURCES := $(addprefix $(NN_DIR)/,$(NN_C_AND_S))
NN_OBJECTS := $(addsuffix .o,$(NN_C_AND_S))
