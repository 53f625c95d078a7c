/* The semihosting interface that the harness knows, by the simulator calls of Xtensa (SIMCALL). */
#include "semihosting.h"

#include <stddef.h>
#include <string.h>

/* Of the interface; as in baremetal/harness_io.c and semihosting.c. */
enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0A,
    SYS_FLEN = 0x0C,
    SYS_EXIT = 0x18,
    SYS_EXIT_EXTENDED = 0x20
};

/* Of the simulator. */
enum { SIM_EXIT = 1, SIM_READ = 3, SIM_WRITE = 4, SIM_OPEN = 5, SIM_CLOSE = 6, SIM_LSEEK = 19 };
enum { FROM_START = 0, FROM_HERE = 1, FROM_END = 2 };
#define TEXT 1 /* the handle of the simulator's standard output */
#define OPEN_READ 0
#define OPEN_WRITE (1 | 0x40 | 0x200) /* write only, create, truncate: as the host has them */
#define ANYONE 0666
#define FAILED 1 /* the exit code of a run that did not say one */

static intptr_t simcall(uint32_t call, uintptr_t a, uintptr_t b, uintptr_t c) {
    register uintptr_t number __asm("a2") = call;
    register uintptr_t first __asm("a3") = a;
    register uintptr_t second __asm("a4") = b;
    register uintptr_t third __asm("a5") = c;
    __asm volatile("simcall" : "+r"(number), "+r"(first) : "r"(second), "r"(third) : "memory");
    return (intptr_t)number;
}

/* The bytes that were not transferred. */
static intptr_t transfer(uint32_t call, const uintptr_t *block) {
    uintptr_t done = 0;
    while (done < block[2]) {
        const intptr_t now = simcall(call, block[0], block[1] + done, block[2] - done);
        if (now <= 0) {
            break;
        }
        done += (uintptr_t)now;
    }
    return (intptr_t)(block[2] - done);
}

static intptr_t length(uintptr_t handle) {
    const intptr_t here = simcall(SIM_LSEEK, handle, 0, FROM_HERE);
    const intptr_t end = simcall(SIM_LSEEK, handle, 0, FROM_END);
    const intptr_t back = simcall(SIM_LSEEK, handle, (uintptr_t)here, FROM_START);
    return here < 0 || back < 0 ? -1 : end;
}

intptr_t semihosting_call(uint32_t operation, const void *argument) {
    const uintptr_t *block = (const uintptr_t *)argument;
    switch (operation) {
    case SYS_OPEN:
        return simcall(SIM_OPEN, block[0], block[1] < 4 ? OPEN_READ : OPEN_WRITE, ANYONE);
    case SYS_CLOSE:
        return simcall(SIM_CLOSE, block[0], 0, 0);
    case SYS_WRITE0:
        return simcall(SIM_WRITE, TEXT, (uintptr_t)argument, strlen((const char *)argument));
    case SYS_WRITE:
        return transfer(SIM_WRITE, block);
    case SYS_READ:
        return transfer(SIM_READ, block);
    case SYS_SEEK:
        return simcall(SIM_LSEEK, block[0], block[1], FROM_START) == (intptr_t)block[1] ? 0 : -1;
    case SYS_FLEN:
        return length(block[0]);
    case SYS_EXIT_EXTENDED:
        return simcall(SIM_EXIT, block[1], 0, 0);
    case SYS_EXIT:
        return simcall(SIM_EXIT, FAILED, 0, 0);
    default:
        return -1;
    }
}
