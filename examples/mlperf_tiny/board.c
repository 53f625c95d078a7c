/* A board: its serial port (wire.h) and its core's cycle counter. */
#include "chip.h"
#include "protocol.h"
#include "th.h"
#include "wire.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define DEMCR REGISTER(0xE000EDFC)
#define DWT_CTRL REGISTER(0xE0001000)
#define DWT_CYCCNT REGISTER(0xE0001004)
#define DWT_LAR REGISTER(0xE0001FB0)
#define DWT_LAR_KEY 0xC5ACCE55U
#define DEMCR_TRCENA (1U << 24)
#define DWT_CTRL_CYCCNTENA 1U
#define SYST_CSR REGISTER(0xE000E010)
#define SYST_RVR REGISTER(0xE000E014)
#define SYST_CVR REGISTER(0xE000E018)
#define SYST_CSR_CORE_CLOCK 5U /* runs, without an interrupt */
#define SYST_MASK 0xFFFFFFU

/* ---- time -------------------------------------------------------------------------------- */

static uint32_t mask;              /* of the bits that the counter has */
static uint32_t last;              /* what it showed */
static uint32_t cycles_a_us, left; /* left: cycles of the microsecond that has begun */
static uint32_t microseconds;

/* The core's cycle counter; emulators lack it, and have a SysTick at the same clock. */
static uint32_t counter(void) {
    return mask == SYST_MASK ? SYST_MASK - SYST_CVR : DWT_CYCCNT;
}

static int cycle_counter_runs(void) {
    DEMCR |= DEMCR_TRCENA;
#if __ARM_ARCH < 8
    DWT_LAR = DWT_LAR_KEY; /* Cortex-M7's registers are locked after a reset */
#endif
    DWT_CYCCNT = 0;
    DWT_CTRL |= DWT_CTRL_CYCCNTENA;
    const uint32_t before = DWT_CYCCNT;
    for (volatile int i = 0; i < 100; i++) {
    }
    return DWT_CYCCNT != before;
}

/* Adds the cycles since the last call, which may be 2^32 - 1 (SysTick: 2^24 - 1). */
void th_watch_clock(void) {
    const uint32_t now = counter(), passed = (now - last) & mask;
    last = now;
    left += passed % cycles_a_us;
    microseconds += passed / cycles_a_us + left / cycles_a_us;
    left %= cycles_a_us;
}

void th_timestamp_initialize(void) {
    const uint32_t hertz = chip_core_hz();
    cycles_a_us = (hertz != 0 ? hertz : WIRE_CORE_HZ) / 1000000U;
    mask = cycle_counter_runs() ? ~0U : SYST_MASK;
    SYST_RVR = SYST_MASK;
    SYST_CVR = 0;
    SYST_CSR = SYST_CSR_CORE_CLOCK;
    last = counter();
    th_printf(EE_MSG_TIMESTAMP_MODE);
    th_timestamp();
}

void th_timestamp(void) {
    th_watch_clock();
    th_printf(EE_MSG_TIMESTAMP, (unsigned long)microseconds);
}

/* ---- the serial port --------------------------------------------------------------------- */

void th_serialport_initialize(void) {
    wire_start();
}

void th_putchar(char c) {
    wire_put((uint8_t)c);
}

char th_getchar(void) {
    int c;
    do {
        c = wire_get();
    } while (c < 0);
    return (char)c;
}

void th_command_ready(char volatile *command) {
    ee_serial_command_parser_callback((char *)command);
}

int main(void) {
    ee_benchmark_initialize();
    for (;;) {
        ee_serial_callback(th_getchar());
    }
}
