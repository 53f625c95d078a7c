/* What C99 does not have: the only place that says how a compiler has it.
 *
 * GCC, clang and Arm Compiler 6 (which is clang) have the first form. IAR's compiler has GCC's
 * attributes and inline assembly in its extended language, and no __builtin functions (IAR C/C++
 * Development Guide: Supported GCC attributes; neither it nor Arm Compiler 6 was tried). -DNN_PLAIN
 * takes the plain form anywhere, as a test does.
 */
#ifndef NN_COMPILER_H
#define NN_COMPILER_H

#if defined(__GNUC__) && !defined(NN_PLAIN)

#define NN_MEMCPY __builtin_memcpy
#define NN_MEMMOVE __builtin_memmove
#define NN_MEMSET __builtin_memset
#define NN_CLZ32 __builtin_clz /* leading zeros; of 0 there is no result */
#define NN_CLZ64 __builtin_clzll
#define NN_ALIGNED_TO(address, bytes) __builtin_assume_aligned((address), (bytes))
#define NN_TRAP() __builtin_trap()

#else

#include <stdint.h>
#include <string.h>

#define NN_MEMCPY memcpy
#define NN_MEMMOVE memmove
#define NN_MEMSET memset
#define NN_CLZ32(value) (nn_zeros64(value) - 32)
#define NN_CLZ64(value) nn_zeros64(value)
#define NN_ALIGNED_TO(address, bytes) ((void *)(uintptr_t)(address))
#define NN_TRAP()                                                                                  \
    for (;;) {                                                                                     \
    }

static inline int32_t nn_zeros64(uint64_t value) {
    int32_t zeros = 0;
    while (zeros < 64 && (value >> (63 - zeros) & 1U) == 0U) {
        zeros++;
    }
    return zeros;
}

#endif

/* The compiler keeps reads and writes of memory on their side of it. */
#if defined(__GNUC__) || defined(__ICCARM__)
#define NN_BARRIER() __asm volatile("" : : : "memory")
#else
#define NN_BARRIER() ((void)0)
#endif

#endif
