/* STM32L4 and L4+ after a reset: its clock from the PLL, and the flash's caches. Written after
 * RM0351 and RM0432, and not run: no board was at hand.
 *
 * Settings of a board: CHIP_PLL_M, CHIP_PLL_N and CHIP_PLL_R (of the internal oscillator's 4 MHz),
 * CHIP_WAIT_STATES; CHIP_BOOST for an L4+ above 80 MHz; CHIP_VDDIO2 where its UART's pins are of
 * port G. CHIP_CLOCK_HZ is the board's clock_hz.
 */
#include "chip.h"

#include "stm32_chip.h"

#define RCC_CR STM32_REGISTER(0x40021000)
#define RCC_CFGR STM32_REGISTER(0x40021008)
#define RCC_PLLCFGR STM32_REGISTER(0x4002100C)
#define RCC_APB1ENR1 STM32_REGISTER(0x40021058)
#define PWR_CR2 STM32_REGISTER(0x40007004)
#define PWR_CR5 STM32_REGISTER(0x40007080)
#define FLASH_ACR STM32_REGISTER(0x40022000)

#define MSI_HZ 4000000U
#define CR_PLLON (1U << 24)
#define CR_PLLRDY (1U << 25)
#define CFGR_SW_PLL 3U
#define CFGR_SWS (3U << 2)
#define CFGR_SWS_PLL (3U << 2)
#define CFGR_HPRE (15U << 4)
#define CFGR_HPRE_2 (8U << 4)
#define PLLCFGR_MSI 1U
#define PLLCFGR_REN (1U << 24)
#define APB1ENR1_PWREN (1U << 28)
#define CR2_IOSV (1U << 9)
#define CR5_R1MODE (1U << 8)
#define ACR_CACHES (7U << 8) /* prefetch, instructions, data */

#if MSI_HZ / CHIP_PLL_M * CHIP_PLL_N / CHIP_PLL_R != CHIP_CLOCK_HZ
#error "the settings of the PLL do not give the board's clock_hz"
#endif

static int runs_from_pll(void) {
    return (RCC_CFGR & CFGR_SWS) == CFGR_SWS_PLL;
}

void chip_start(void) {
    RCC_APB1ENR1 |= APB1ENR1_PWREN;
    (void)RCC_APB1ENR1;
#ifdef CHIP_VDDIO2
    PWR_CR2 |= CR2_IOSV;
#endif
#ifdef CHIP_BOOST
    PWR_CR5 &= ~CR5_R1MODE;
#endif
    FLASH_ACR = CHIP_WAIT_STATES | ACR_CACHES;
    if (!stm32_becomes(&FLASH_ACR, 15U, CHIP_WAIT_STATES)) {
        return;
    }
    RCC_PLLCFGR = PLLCFGR_MSI | (CHIP_PLL_M - 1U) << 4 | CHIP_PLL_N << 8 |
                  (CHIP_PLL_R / 2U - 1U) << 25 | PLLCFGR_REN;
    RCC_CR |= CR_PLLON;
    if (!stm32_becomes(&RCC_CR, CR_PLLRDY, CR_PLLRDY)) {
        return;
    }
    RCC_CFGR = (RCC_CFGR & ~CFGR_HPRE) | CFGR_HPRE_2; /* half of the clock for a microsecond */
    RCC_CFGR |= CFGR_SW_PLL;
    (void)stm32_becomes(&RCC_CFGR, CFGR_SWS, CFGR_SWS_PLL);
    for (volatile int i = 0; i < 100; i++) {
    }
    RCC_CFGR &= ~CFGR_HPRE;
}

uint32_t chip_core_hz(void) {
    return runs_from_pll() ? CHIP_CLOCK_HZ : MSI_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus; /* no bus is divided */
    return runs_from_pll() ? wanted : MSI_HZ;
}
