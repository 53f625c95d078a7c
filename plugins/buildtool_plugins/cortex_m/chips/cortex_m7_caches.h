/* The caches of a Cortex-M7, which are off after a reset. */
#ifndef CORTEX_M7_CACHES_H
#define CORTEX_M7_CACHES_H

#include <stdint.h>

#define CORE_REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_CCR CORE_REGISTER(0xE000ED14)
#define SCB_CCSIDR CORE_REGISTER(0xE000ED80)
#define SCB_CSSELR CORE_REGISTER(0xE000ED84)
#define SCB_ICIALLU CORE_REGISTER(0xE000EF50)
#define SCB_DCISW CORE_REGISTER(0xE000EF60)
#define CCR_INSTRUCTIONS (1U << 17)
#define CCR_DATA (1U << 16)

static inline void barrier(void) {
    __asm volatile("dsb\n isb" : : : "memory");
}

/* Both caches are invalid before they are on: what is in them after a reset is not known. */
static inline void cortex_m7_start_caches(void) {
    SCB_CSSELR = 0; /* the data cache */
    barrier();
    const uint32_t size = SCB_CCSIDR, sets = size >> 13 & 0x7FFF, ways = size >> 3 & 0x3FF;
    for (uint32_t set = 0; set <= sets; set++) {
        for (uint32_t way = 0; way <= ways; way++) {
            SCB_DCISW = way << 30 | set << 5; /* 4 ways, lines of 32 bytes */
        }
    }
    SCB_ICIALLU = 0;
    barrier();
    SCB_CCR |= CCR_INSTRUCTIONS | CCR_DATA;
    barrier();
}

#endif
