/* STM32U5 after a reset: its clock from PLL 1, and the cache of the flash; without TrustZone.
 * Written after RM0456, and not run: no board was at hand.
 *
 * Settings of a board: CHIP_PLL_M, CHIP_PLL_N and CHIP_PLL_R (of the internal oscillator's 4 MHz),
 * CHIP_WAIT_STATES. CHIP_CLOCK_HZ is the board's clock_hz.
 */
#include "chip.h"

#include "stm32_chip.h"

#define RCC_CR STM32_REGISTER(0x46020C00)
#define RCC_CFGR1 STM32_REGISTER(0x46020C1C)
#define RCC_PLL1CFGR STM32_REGISTER(0x46020C28)
#define RCC_PLL1DIVR STM32_REGISTER(0x46020C34)
#define RCC_AHB3ENR STM32_REGISTER(0x46020C94)
#define PWR_VOSR STM32_REGISTER(0x4602080C)
#define FLASH_ACR STM32_REGISTER(0x40022000)
#define ICACHE_CR STM32_REGISTER(0x40030400)

#define MSIS_HZ 4000000U
#define CR_PLL1ON (1U << 24)
#define CR_PLL1RDY (1U << 25)
#define CFGR1_SW_PLL 3U
#define CFGR1_SWS (3U << 2)
#define CFGR1_SWS_PLL (3U << 2)
#define PLL1CFGR_MSIS 1U
#define PLL1CFGR_REN (1U << 18)
#define AHB3ENR_PWREN (1U << 2)
#define VOSR_BOOSTRDY (1U << 14)
#define VOSR_VOSRDY (1U << 15)
#define VOSR_RANGE_1 (3U << 16)
#define VOSR_BOOSTEN (1U << 18)
#define ACR_PREFETCH (1U << 8)

#if MSIS_HZ / CHIP_PLL_M * CHIP_PLL_N / CHIP_PLL_R != CHIP_CLOCK_HZ
#error "the settings of the PLL do not give the board's clock_hz"
#endif

static int runs_from_pll(void) {
    return (RCC_CFGR1 & CFGR1_SWS) == CFGR1_SWS_PLL;
}

/* Range 1 of the voltage, whose booster has the PLL's input as its clock. */
static int start_pll(void) {
    RCC_AHB3ENR |= AHB3ENR_PWREN;
    (void)RCC_AHB3ENR;
    PWR_VOSR |= VOSR_RANGE_1;
    if (!stm32_becomes(&PWR_VOSR, VOSR_VOSRDY, VOSR_VOSRDY)) {
        return 0;
    }
    RCC_PLL1CFGR = PLL1CFGR_MSIS | (CHIP_PLL_M - 1U) << 8; /* the booster's divider: 1 */
    PWR_VOSR |= VOSR_BOOSTEN;
    if (!stm32_becomes(&PWR_VOSR, VOSR_BOOSTRDY, VOSR_BOOSTRDY)) {
        return 0;
    }
    RCC_PLL1DIVR = (CHIP_PLL_N - 1U) | 1U << 9 | 1U << 16 | (CHIP_PLL_R - 1U) << 24;
    RCC_CR |= CR_PLL1ON;
    RCC_PLL1CFGR |= PLL1CFGR_REN;
    return stm32_becomes(&RCC_CR, CR_PLL1RDY, CR_PLL1RDY);
}

void chip_start(void) {
    ICACHE_CR |= 1U;
    if (start_pll()) {
        FLASH_ACR = CHIP_WAIT_STATES | ACR_PREFETCH;
        if (stm32_becomes(&FLASH_ACR, 15U, CHIP_WAIT_STATES)) {
            RCC_CFGR1 |= CFGR1_SW_PLL;
            (void)stm32_becomes(&RCC_CFGR1, CFGR1_SWS, CFGR1_SWS_PLL);
        }
    }
}

uint32_t chip_core_hz(void) {
    return runs_from_pll() ? CHIP_CLOCK_HZ : MSIS_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus; /* no bus is divided */
    return runs_from_pll() ? wanted : MSIS_HZ;
}
