LAST_MAKEFILEDIR = $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
MODULES := $(foreach dir,$(EXTERNAL_MODULE_DIRS),$(foreach name,$(USEMODULE),$(wildcard $(dir)/$(name))))
-include $(MODULES:%=%/Makefile.dep)
-include $(MODULES:%=%/Makefile.include)
export CFLAGS += -Wall -Wextra -Werror -DTHREAD_STACKSIZE_DEFAULT=1 -DTHREAD_EXTRA_STACKSIZE_PRINTF=1
export INCLUDES := $(USEMODULE_INCLUDES:%=-I%)
export BINDIR := $(CURDIR)/bin
export RIOTBASE
.PHONY: app
app:
	for one in $(MODULES); do $(MAKE) -C $$one MODULE=nn || exit 1; done
	$(CC) $(CFLAGS) $(INCLUDES) *.c $$(find $(BINDIR) -name '*.o') -o app
