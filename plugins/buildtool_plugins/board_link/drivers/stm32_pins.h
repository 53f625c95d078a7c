/* The clocks and pins of a USART of STM32F4 and F7, whose registers are at the same places, and of
 * later series, whose boards say where theirs are.
 *
 * Settings of a board: WIRE_BUS (1 or 2: APB1 or APB2) and WIRE_ENABLE (the bit in that bus' enable
 * register); of each pin its port (0: A), its number and the alternate function: WIRE_TX_PORT,
 * WIRE_TX_PIN, WIRE_RX_PORT, WIRE_RX_PIN, WIRE_FUNCTION. Of other series
 * also the addresses WIRE_GPIO (port A), WIRE_GPIO_CLOCKS and WIRE_CLOCKS (the enable registers of
 * the ports and of the USART), and WIRE_LPUART for a low-power UART.
 */
#ifndef STM32_PINS_H
#define STM32_PINS_H

#include <stdint.h>

#define STM32_REGISTER(address) (*(volatile uint32_t *)(address))
#ifndef WIRE_GPIO
#define WIRE_GPIO 0x40020000U
#define WIRE_GPIO_CLOCKS 0x40023830U
#define WIRE_CLOCKS (WIRE_BUS == 1 ? 0x40023840U : 0x40023844U)
#endif
#ifdef WIRE_LPUART
#define WIRE_STEPS 256U /* of the divider in a clock of the port */
#else
#define WIRE_STEPS 1U
#endif

static inline void stm32_pin(uint32_t port, uint32_t pin) {
    STM32_REGISTER(WIRE_GPIO_CLOCKS) |= 1U << port;
    (void)STM32_REGISTER(WIRE_GPIO_CLOCKS); /* the clock is there two cycles later */
    const uint32_t base = WIRE_GPIO + 0x400U * port, nibble = 4 * (pin & 7);
    volatile uint32_t *const function = (volatile uint32_t *)(base + 0x20 + 4 * (pin >> 3));
    *function = (*function & ~(15U << nibble)) | (uint32_t)WIRE_FUNCTION << nibble;
    /* pulled up: a line that nobody drives is idle */
    STM32_REGISTER(base + 0x0C) = (STM32_REGISTER(base + 0x0C) & ~(3U << 2 * pin)) | 1U << 2 * pin;
    STM32_REGISTER(base + 0x08) |= 2U << 2 * pin; /* fast enough for some Mbaud */
    STM32_REGISTER(base + 0x00) = (STM32_REGISTER(base + 0x00) & ~(3U << 2 * pin)) | 2U << 2 * pin;
}

static inline void stm32_usart_pins(void) {
    STM32_REGISTER(WIRE_CLOCKS) |= 1U << WIRE_ENABLE;
    (void)STM32_REGISTER(WIRE_CLOCKS);
    stm32_pin(WIRE_TX_PORT, WIRE_TX_PIN);
    stm32_pin(WIRE_RX_PORT, WIRE_RX_PIN);
}

/* The divider for 16 samples a bit, rounded, without arithmetic of 64 bits. `clock` is what the bus
 * really has. */
static inline uint32_t stm32_divider(uint32_t clock) {
    const uint32_t rest = clock % WIRE_BAUD * WIRE_STEPS;
    return clock / WIRE_BAUD * WIRE_STEPS + (rest + WIRE_BAUD / 2) / WIRE_BAUD;
}

#endif
