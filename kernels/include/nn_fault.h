/* How a kernel stops the program where going on would give a wrong result or write where it may
 * not.
 *
 * It executes an undefined instruction. On Arm that is `udf #0x4e` with the address of an nn_fault
 * in r0, from which a fault handler can tell what was wrong; without one the program stops all the
 * same.
 */
#ifndef NN_FAULT_H
#define NN_FAULT_H

#include "nn_compiler.h"

#include <stdint.h>

typedef struct {
    const char *what; /* "bytes of scratch of conv2d_cmsis_nn" */
    int32_t wanted, given;
} nn_fault;

#define NN_FAULT_OPCODE 0xDE4EU /* of the instruction, in Thumb */

__attribute__((noreturn)) static inline void nn_stop(const nn_fault *fault) {
#if defined(__thumb__)
    register const nn_fault *why __asm__("r0") = fault;
    __asm__ volatile("udf #0x4e" : : "r"(why), "m"(*fault) : "memory");
#else
    (void)fault;
#endif
    NN_TRAP();
}

#endif
