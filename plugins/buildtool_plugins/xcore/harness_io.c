/* The harness's files, text and stack measurement: the host's, and for images of the XS3 runner its
 * services. */
#ifndef __xcore__
#include "../host/harness_io.c"
#else
#include "harness_io.h"
#include "nn_parallel.h"

extern uint32_t __stack_bottom[]; /* from the linker: what lies below is not the stack's */

#define STACK_PAINT 0xA5A5A5A5U

/* `kcall number`, see xs3/services.h. */
#define SERVICE(number, first, second, third)                                                      \
    __extension__({                                                                                \
        register int32_t r0 __asm("r0") = (int32_t)(first);                                        \
        register int32_t r1 __asm("r1") = (int32_t)(second);                                       \
        register int32_t r2 __asm("r2") = (int32_t)(third);                                        \
        __asm volatile("kcall " #number : "+r"(r0), "+r"(r1), "+r"(r2) : : "memory");              \
        r0;                                                                                        \
    })

int main(void);
void _start(void);

void _start(void) {
    io_exit(main());
}

void io_exit(int code) {
    (void)SERVICE(0, code, 0, 0);
    for (;;) {
    }
}

void io_print(const char *text) {
    while (*text != '\0') {
        (void)SERVICE(1, *text++, 0, 0);
    }
}

int io_open_read(const char *name) {
    return SERVICE(2, name, 0, 0);
}

int io_open_write(const char *name) {
    return SERVICE(2, name, 1, 0);
}

void io_close(int handle) {
    (void)SERVICE(3, handle, 0, 0);
}

int32_t io_length(int handle) {
    return SERVICE(4, handle, 0, 0);
}

int io_seek(int handle, uint32_t offset) {
    return SERVICE(5, handle, offset, 0) != 0;
}

int io_read(int handle, void *data, uint32_t bytes) {
    return SERVICE(6, handle, data, bytes) != 0;
}

int io_write(int handle, const void *data, uint32_t bytes) {
    return SERVICE(7, handle, data, bytes) != 0;
}

/* Everything below the stack pointer is painted, which is the frame's address. */
__attribute__((noinline)) uint32_t io_call_measured(void (*function)(void)) {
    volatile uint32_t *const top = (volatile uint32_t *)__builtin_frame_address(0);
    volatile uint32_t *const bottom = __stack_bottom;
    for (volatile uint32_t *at = bottom; at < top; at++) {
        *at = STACK_PAINT;
    }
    function();
    volatile uint32_t *at = bottom;
    while (at < top && *at == STACK_PAINT) {
        at++;
    }
    if (at == bottom) {
        io_print("harness: stack overflow\n");
        io_exit(1);
    }
    return (uint32_t)(top - at) * 4;
}

/* Weights come from flash by another thread, which takes none of this one's issue slots. */
void io_load(void *to, const void *from, uint32_t bytes) {
    (void)SERVICE(11, to, from, bytes);
}

/* In the place of kernels/runtime's: the runner is told of each thread's piece. */
void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    (void)SERVICE(10, 0, 0, 0);
    for (int32_t piece = 0; piece < pieces; piece++) {
        (void)SERVICE(10, 1, 0, 0);
        job(context, piece);
        (void)SERVICE(10, 2, 0, 0);
    }
    (void)SERVICE(10, 3, 0, 0);
}

int io_forbid(void *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return 0;
}

#endif
