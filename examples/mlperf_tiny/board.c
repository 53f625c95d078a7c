/* A board: its serial port (wire.h) and its core's cycle counter, which Cortex-M3 and larger ones
 * have.
 *
 * QEMU has none. QEMU_TIMER is the address of a timer (Arm's CMSDK, at the core's clock) in its
 * machine.
 */
#include "chip.h"
#include "protocol.h"
#include "th.h"
#include "wire.h"

#ifndef __arm__
#error "this file reads the cycle counter of a Cortex-M: write another one for this core"
#endif

#define REGISTER(address) (*(volatile uint32_t *)(address))

/* ---- time -------------------------------------------------------------------------------- */

#ifdef QEMU_TIMER
#define TIMER_CONTROL REGISTER(QEMU_TIMER)
#define TIMER_VALUE REGISTER(QEMU_TIMER + 4)
#define TIMER_RELOAD REGISTER(QEMU_TIMER + 8)

static uint32_t counter(void) {
    return ~TIMER_VALUE; /* it counts down */
}

static void start_counter(void) {
    TIMER_RELOAD = ~0U;
    TIMER_VALUE = ~0U;
    TIMER_CONTROL = 1; /* without an interrupt */
}
#else
#define DEMCR REGISTER(0xE000EDFC)
#define DWT_CTRL REGISTER(0xE0001000)
#define DWT_CYCCNT REGISTER(0xE0001004)
#define DWT_LAR REGISTER(0xE0001FB0)
#define DWT_LAR_KEY 0xC5ACCE55U
#define DEMCR_TRCENA (1U << 24)
#define DWT_CTRL_CYCCNTENA 1U

static uint32_t counter(void) {
    return DWT_CYCCNT;
}

static void start_counter(void) {
    DEMCR |= DEMCR_TRCENA;
#if __ARM_ARCH < 8
    DWT_LAR = DWT_LAR_KEY; /* Cortex-M7's registers are locked after a reset */
#endif
    DWT_CYCCNT = 0;
    DWT_CTRL |= DWT_CTRL_CYCCNTENA;
}
#endif

static uint32_t last;              /* what the counter showed */
static uint32_t cycles_a_us, left; /* left: cycles of the microsecond that has begun */
static uint32_t microseconds;
static int is_running;

/* Adds the cycles since the last call, which may be 2^32 - 1. */
void th_watch_clock(void) {
    const uint32_t now = counter(), passed = now - last;
    last = now;
    left += passed % cycles_a_us;
    microseconds += passed / cycles_a_us + left / cycles_a_us;
    left %= cycles_a_us;
}

void th_timestamp_initialize(void) {
    const uint32_t hertz = chip_core_hz();
    cycles_a_us = (hertz != 0 ? hertz : WIRE_CORE_HZ) / 1000000U;
    start_counter();
    last = counter();
    for (volatile int i = 0; i < 100; i++) {
    }
    is_running = counter() != last;
    th_printf(EE_MSG_TIMESTAMP_MODE);
    th_timestamp();
}

void th_timestamp(void) {
    th_watch_clock();
    if (is_running) {
        th_printf(EE_MSG_TIMESTAMP, (unsigned long)microseconds);
    } else {
        th_printf("e-[The core's cycle counter does not run]\r\n");
    }
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
