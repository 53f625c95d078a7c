/* Registers of an STM32, and the wait for their bits. */
#ifndef STM32_CHIP_H
#define STM32_CHIP_H

#include <stdint.h>

#define STM32_REGISTER(address) (*(volatile uint32_t *)(address))
#define PATIENCE 1000000U /* looks at a flag: some 100 ms at 16 MHz */

/* Whether the bits of a register become `wanted` in time. */
static inline int stm32_becomes(volatile uint32_t *where, uint32_t bits, uint32_t wanted) {
    for (uint32_t i = 0; i < PATIENCE; i++) {
        if ((*where & bits) == wanted) {
            return 1;
        }
    }
    return 0;
}

#endif
