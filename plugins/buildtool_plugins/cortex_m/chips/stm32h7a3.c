/* STM32H7A3 with its step-down converter (the Q in its name) after a reset: voltage scale 0, its
 * clock from PLL 1, and the core's caches. Written after RM0455, and not run: no board was at hand.
 *
 * Settings of a board: CHIP_HSE_HZ (the clock that its debugger feeds in, 8 to 16 MHz after
 * CHIP_PLL_M), CHIP_PLL_M, CHIP_PLL_N, CHIP_PLL_P, CHIP_WAIT_STATES. CHIP_CLOCK_HZ is the board's
 * clock_hz; the peripheral buses run at half of it.
 */
#include "chip.h"

#include "cortex_m7_caches.h"
#include "stm32_chip.h"

#define RCC_CR STM32_REGISTER(0x58024400)
#define RCC_CFGR STM32_REGISTER(0x58024410)
#define RCC_CDCFGR1 STM32_REGISTER(0x58024418)
#define RCC_CDCFGR2 STM32_REGISTER(0x5802441C)
#define RCC_SRDCFGR STM32_REGISTER(0x58024420)
#define RCC_PLLCKSELR STM32_REGISTER(0x58024428)
#define RCC_PLLCFGR STM32_REGISTER(0x5802442C)
#define RCC_PLL1DIVR STM32_REGISTER(0x58024430)
#define PWR_CSR1 STM32_REGISTER(0x58024804)
#define PWR_CR3 STM32_REGISTER(0x5802480C)
#define PWR_SRDCR STM32_REGISTER(0x58024818)
#define FLASH_ACR STM32_REGISTER(0x52002000)

#define HSI_HZ 64000000U
#define CR_HSEON (1U << 16)
#define CR_HSERDY (1U << 17)
#define CR_HSEBYP (1U << 18)
#define CR_PLL1ON (1U << 24)
#define CR_PLL1RDY (1U << 25)
#define CFGR_SW_PLL1 3U
#define CFGR_SWS (7U << 3)
#define CFGR_SWS_PLL1 (3U << 3)
#define PLLCKSELR_HSE 2U
#define PLLCFGR_WIDE_8_TO_16 (3U << 2)
#define PLLCFGR_DIVP1EN (1U << 16)
#define CR3_SUPPLY 7U
#define CR3_SMPS_ALONE 4U
#define CSR1_ACTVOSRDY (1U << 13)
#define SRDCR_VOS0 (3U << 14)
#define SRDCR_VOSRDY (1U << 13)
#define ACR_WRHIGHFREQ (3U << 4)
#define HALF 4U /* of a peripheral bus' divider */

#if CHIP_HSE_HZ / CHIP_PLL_M * CHIP_PLL_N / CHIP_PLL_P != CHIP_CLOCK_HZ
#error "the settings of the PLL do not give the board's clock_hz"
#endif

static int runs_from_pll(void) {
    return (RCC_CFGR & CFGR_SWS) == CFGR_SWS_PLL1;
}

/* The supply may be chosen once after power came; the voltage follows it. */
static int start_power(void) {
    PWR_CR3 = (PWR_CR3 & ~CR3_SUPPLY) | CR3_SMPS_ALONE;
    if (!stm32_becomes(&PWR_CSR1, CSR1_ACTVOSRDY, CSR1_ACTVOSRDY)) {
        return 0;
    }
    PWR_SRDCR |= SRDCR_VOS0;
    return stm32_becomes(&PWR_SRDCR, SRDCR_VOSRDY, SRDCR_VOSRDY);
}

static int start_pll(void) {
    RCC_CR |= CR_HSEBYP;
    RCC_CR |= CR_HSEON;
    if (!stm32_becomes(&RCC_CR, CR_HSERDY, CR_HSERDY)) {
        return 0;
    }
    RCC_PLLCKSELR = (RCC_PLLCKSELR & ~0x3F3U) | PLLCKSELR_HSE | CHIP_PLL_M << 4;
    RCC_PLLCFGR = (RCC_PLLCFGR & ~15U) | PLLCFGR_WIDE_8_TO_16 | PLLCFGR_DIVP1EN;
    RCC_PLL1DIVR = (CHIP_PLL_N - 1U) | (CHIP_PLL_P - 1U) << 9 | 1U << 16 | 1U << 24;
    RCC_CR |= CR_PLL1ON;
    return stm32_becomes(&RCC_CR, CR_PLL1RDY, CR_PLL1RDY);
}

void chip_start(void) {
    if (start_power() && start_pll()) {
        FLASH_ACR = CHIP_WAIT_STATES | ACR_WRHIGHFREQ;
        if (stm32_becomes(&FLASH_ACR, 15U, CHIP_WAIT_STATES)) {
            RCC_CDCFGR1 = HALF << 4; /* the core and AXI are not divided */
            RCC_CDCFGR2 = HALF << 4 | HALF << 8;
            RCC_SRDCFGR = HALF << 4;
            RCC_CFGR |= CFGR_SW_PLL1;
            (void)stm32_becomes(&RCC_CFGR, CFGR_SWS, CFGR_SWS_PLL1);
        }
    }
    cortex_m7_start_caches();
}

uint32_t chip_core_hz(void) {
    return runs_from_pll() ? CHIP_CLOCK_HZ : HSI_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus;
    return runs_from_pll() ? wanted : (RCC_CDCFGR2 >> 6 & 1U) != 0 ? HSI_HZ / 2 : HSI_HZ;
}
