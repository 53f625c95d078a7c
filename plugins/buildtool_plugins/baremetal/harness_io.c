/* The harness's files, text and stack measurement by semihosting. */
#include "harness_io.h"

#include "semihosting.h"

#include <string.h>

#define SYS_OPEN 0x01
#define SYS_CLOSE 0x02
#define SYS_WRITE 0x05
#define SYS_READ 0x06
#define SYS_SEEK 0x0A
#define SYS_FLEN 0x0C
#define MODE_READ_BINARY 1
#define MODE_WRITE_BINARY 5
#define STACK_PAINT 0xA5A5A5A5U

extern uint32_t __stack_bottom[]; /* from the linker script */

void io_exit(int code) {
    semihosting_exit(code);
}

void io_print(const char *text) {
    semihosting_print(text);
}

static int open_file(const char *name, uintptr_t mode) {
    const uintptr_t block[3] = {(uintptr_t)name, mode, strlen(name)};
    return (int)semihosting_call(SYS_OPEN, block);
}

int io_open_read(const char *name) {
    return open_file(name, MODE_READ_BINARY);
}

int io_open_write(const char *name) {
    return open_file(name, MODE_WRITE_BINARY);
}

int32_t io_length(int handle) {
    const uintptr_t block[1] = {(uintptr_t)handle};
    return (int32_t)semihosting_call(SYS_FLEN, block);
}

int io_seek(int handle, uint32_t offset) {
    const uintptr_t block[2] = {(uintptr_t)handle, offset};
    return semihosting_call(SYS_SEEK, block) != 0;
}

/* Both give the number of bytes that were not transferred. */
int io_read(int handle, void *data, uint32_t bytes) {
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return semihosting_call(SYS_READ, block) != 0;
}

int io_write(int handle, const void *data, uint32_t bytes) {
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return semihosting_call(SYS_WRITE, block) != 0;
}

void io_close(int handle) {
    const uintptr_t block[1] = {(uintptr_t)handle};
    (void)semihosting_call(SYS_CLOSE, block);
}

/* Everything below the stack pointer is painted: exact to a word, because nothing lies between it
 * and the callee's frame. Volatile, or the compiler would call memset, over its own frame. */
__attribute__((noinline)) uint32_t io_call_measured(void (*function)(void)) {
    volatile uint32_t *bottom = __stack_bottom;
    volatile uint32_t *top;
#if defined(__arm__)
    __asm volatile("mov %0, sp" : "=r"(top));
#elif defined(__xtensa__)
    __asm volatile("mov %0, sp" : "=r"(top));
#else
    __asm volatile("mv %0, sp" : "=r"(top));
#endif
    for (volatile uint32_t *word = bottom; word < top; word++) {
        *word = STACK_PAINT;
    }
    function();
    volatile uint32_t *word = bottom;
    while (word < top && *word == STACK_PAINT) {
        word++;
    }
    return (uint32_t)(top - word) * 4;
}

int io_forbid(void *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return 0;
}
