/* The main PLL of STM32F4 and F7, whose registers RCC, PWR and FLASH are alike: see RM0402
 * (STM32F412), RM0385 (STM32F746) and RM0410 (STM32F767).
 *
 * Settings of a board: CHIP_HSE_HZ (the crystal, or the clock that its debugger feeds in, which
 * CHIP_HSE_BYPASS says), CHIP_PLL_M, CHIP_PLL_N, CHIP_PLL_P, CHIP_PLL_Q, CHIP_WAIT_STATES,
 * CHIP_APB1_DIVIDER and CHIP_APB2_DIVIDER (1, 2, 4, 8 or 16), CHIP_SCALE. CHIP_CLOCK_HZ is the
 * board's clock_hz.
 */
#ifndef STM32_PLL_H
#define STM32_PLL_H

#include "stm32_chip.h"

#define RCC_CR STM32_REGISTER(0x40023800)
#define RCC_PLLCFGR STM32_REGISTER(0x40023804)
#define RCC_CFGR STM32_REGISTER(0x40023808)
#define RCC_APB1ENR STM32_REGISTER(0x40023840)
#define PWR_CR STM32_REGISTER(0x40007000)  /* PWR_CR1 of the F7 */
#define PWR_CSR STM32_REGISTER(0x40007004) /* PWR_CSR1 */
#define FLASH_ACR STM32_REGISTER(0x40023C00)

#define HSI_HZ 16000000U
#define CR_HSEON (1U << 16)
#define CR_HSERDY (1U << 17)
#define CR_HSEBYP (1U << 18)
#define CR_PLLON (1U << 24)
#define CR_PLLRDY (1U << 25)
#define PLLCFGR_HSE (1U << 22)
#define PLLCFGR_R_AFTER_RESET (2U << 28) /* reserved, or the divider R: 2 is its least */
#define CFGR_SW_PLL 2U
#define CFGR_SWS (3U << 2)
#define CFGR_SWS_PLL (2U << 2)
#define APB1ENR_PWREN (1U << 28)
#ifndef CHIP_SCALE
/* of the voltage regulator: scale 1; STM32F405 and F407 have one bit for it */
#define CHIP_SCALE 3U
#endif
#define PWR_SCALE_1 (CHIP_SCALE << 14)

#if CHIP_HSE_HZ / CHIP_PLL_M * CHIP_PLL_N / CHIP_PLL_P != CHIP_CLOCK_HZ
#error "the settings of the PLL do not give the board's clock_hz"
#endif
#if CHIP_HSE_HZ / CHIP_PLL_M < 1000000 || CHIP_HSE_HZ / CHIP_PLL_M > 2000000
#error "the PLL's input has to be 1 to 2 MHz: CHIP_PLL_M"
#endif
#if CHIP_HSE_HZ / CHIP_PLL_M * CHIP_PLL_N < 100000000 ||                                           \
    CHIP_HSE_HZ / CHIP_PLL_M * CHIP_PLL_N > 432000000
#error "the PLL's oscillator has to run at 100 to 432 MHz: CHIP_PLL_N"
#endif
#define PRESCALER_(divider)                                                                        \
    ((divider) == 1 ? 0U : (divider) == 2 ? 4U : (divider) == 4 ? 5U : (divider) == 8 ? 6U : 7U)

/* The crystal or the fed-in clock runs; power and PLL are set up, and the PLL is on. */
static inline int stm32_start_pll(void) {
    RCC_APB1ENR |= APB1ENR_PWREN;
    (void)RCC_APB1ENR;
    PWR_CR |= PWR_SCALE_1; /* before the PLL is on */
#ifdef CHIP_HSE_BYPASS
    RCC_CR |= CR_HSEBYP;
#endif
    RCC_CR |= CR_HSEON;
    if (!stm32_becomes(&RCC_CR, CR_HSERDY, CR_HSERDY)) {
        return 0;
    }
    RCC_PLLCFGR = CHIP_PLL_M | CHIP_PLL_N << 6 | (CHIP_PLL_P / 2 - 1) << 16 | PLLCFGR_HSE |
                  CHIP_PLL_Q << 24 | PLLCFGR_R_AFTER_RESET;
    RCC_CR |= CR_PLLON;
    return 1;
}

/* The core runs from the PLL, its flash with the wait states that this needs. `more`: bits of
 * FLASH_ACR. */
static inline int stm32_switch_to_pll(uint32_t more) {
    FLASH_ACR = CHIP_WAIT_STATES | more;
    if (!stm32_becomes(&FLASH_ACR, 15U, CHIP_WAIT_STATES)) {
        return 0;
    }
    RCC_CFGR = PRESCALER_(CHIP_APB1_DIVIDER) << 10 | PRESCALER_(CHIP_APB2_DIVIDER) << 13;
    if (!stm32_becomes(&RCC_CR, CR_PLLRDY, CR_PLLRDY)) {
        return 0;
    }
    RCC_CFGR |= CFGR_SW_PLL;
    return stm32_becomes(&RCC_CFGR, CFGR_SWS, CFGR_SWS_PLL);
}

/* Whether the core runs from the PLL: what the registers say, not what was asked for. */
static inline int stm32_runs_from_pll(void) {
    return (RCC_CFGR & CFGR_SWS) == CFGR_SWS_PLL;
}

static inline uint32_t stm32_bus_hz(int bus, uint32_t wanted) {
    if (stm32_runs_from_pll()) {
        return wanted;
    }
    /* Without the PLL: HSI, by the divider that is set by then. */
    const uint32_t field = RCC_CFGR >> (bus == 1 ? 10 : 13) & 7U;
    return field < 4 ? HSI_HZ : HSI_HZ >> (field - 3);
}

#endif
