/* Markers around a known number of instructions, for any architecture that has markers. */
#include "nn_profile.h"

#define WORD __asm volatile(NOP)
#if defined(__arm__)
#define NOP "nop.w"
#else
#define NOP "add x0, x0, x0"
#endif

__attribute__((section(".text.markers"))) void markers(void) {
    WORD;
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(0);
    WORD;
    NN_MARK_END();
    NN_MARK_BEGIN(63);
    WORD;
    WORD;
    NN_MARK_END();
    NN_MARK_BEGIN(64);
    WORD;
    WORD;
    WORD;
    NN_MARK_END();
    WORD;
    NN_MARK_BEGIN(4095);
    WORD;
    WORD;
    WORD;
    WORD;
    NN_MARK_END();
    NN_MARK_INVOKE_END();
    WORD;
}
