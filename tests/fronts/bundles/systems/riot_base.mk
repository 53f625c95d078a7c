all: $(SRC:%.c=$(BINDIR)/$(MODULE)/%.o) $(ASSMSRC:%.S=$(BINDIR)/$(MODULE)/%.o)
$(SRC:%.c=$(BINDIR)/$(MODULE)/%.o): $(BINDIR)/$(MODULE)/%.o: %.c
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(INCLUDES) -c $< -o $@
$(ASSMSRC:%.S=$(BINDIR)/$(MODULE)/%.o): $(BINDIR)/$(MODULE)/%.o: %.S
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(INCLUDES) -c $< -o $@
