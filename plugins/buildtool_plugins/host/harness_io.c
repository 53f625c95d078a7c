/* The harness's files, text and stack measurement on an ordinary operating system. */
#define _GNU_SOURCE
#include "harness_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define MAX_FILES 8
#define STACK_BYTES (1U << 20)
#define STACK_PAINT 0xA5A5A5A5U

static FILE *files[MAX_FILES];

void io_exit(int code) {
    exit(code);
}

void io_print(const char *text) {
    fputs(text, stderr);
}

static int open_file(const char *name, const char *mode) {
    for (int i = 0; i < MAX_FILES; i++) {
        if (files[i] == NULL) {
            files[i] = fopen(name, mode);
            return files[i] == NULL ? -1 : i;
        }
    }
    return -1;
}

int io_open_read(const char *name) {
    return open_file(name, "rb");
}

int io_open_write(const char *name) {
    return open_file(name, "wb");
}

int32_t io_length(int handle) {
    FILE *file = files[handle];
    const long here = ftell(file);
    if (here < 0 || fseek(file, 0, SEEK_END) != 0) {
        return -1;
    }
    const long length = ftell(file);
    if (fseek(file, here, SEEK_SET) != 0 || length > INT32_MAX) {
        return -1;
    }
    return (int32_t)length;
}

int io_seek(int handle, uint32_t offset) {
    return fseek(files[handle], (long)offset, SEEK_SET) != 0;
}

int io_read(int handle, void *data, uint32_t bytes) {
    return fread(data, 1, bytes, files[handle]) != bytes;
}

int io_write(int handle, const void *data, uint32_t bytes) {
    return fwrite(data, 1, bytes, files[handle]) != bytes;
}

void io_close(int handle) {
    if (handle >= 0 && fclose(files[handle]) == 0) {
        files[handle] = NULL;
    }
}

#ifdef WITH_ASAN

/* The sanitizer keeps its own account of stacks: another one would confuse it. */
uint32_t io_call_measured(void (*function)(void)) {
    function();
    return 0;
}

int io_forbid(void *data, uint32_t bytes) {
    __asan_poison_memory_region(data, bytes);
    return 1;
}

#else

static void (*entry)(void);

static void trampoline(void) {
    entry();
}

/* On a stack of its own, painted, with a page below that traps. */
uint32_t io_call_measured(void (*function)(void)) {
    static uint8_t *stack;
    static const uint32_t page = 1U << 16; /* a multiple of every page size there is */
    ucontext_t back, there;
    if (stack == NULL) {
        void *memory = mmap(NULL, page + STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
            io_print("harness: no memory for a stack\n");
            io_exit(1);
        }
        stack = (uint8_t *)memory + page;
    }
    uint32_t *words = (uint32_t *)(void *)stack;
    for (uint32_t i = 0; i < STACK_BYTES / 4; i++) {
        words[i] = STACK_PAINT;
    }
    if (getcontext(&there) != 0) {
        return 0;
    }
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &back;
    entry = function;
    makecontext(&there, trampoline, 0);
    if (swapcontext(&back, &there) != 0) {
        return 0;
    }
    uint32_t untouched = 0;
    while (untouched < STACK_BYTES / 4 && words[untouched] == STACK_PAINT) {
        untouched++;
    }
    return STACK_BYTES - 4 * untouched;
}

int io_forbid(void *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return 0;
}

#endif
