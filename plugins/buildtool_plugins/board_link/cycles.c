/* See cycles.h; the markers of nn_profile.h are calls to here (-DNN_CYCLES).
 *
 * Cortex-M: DWT_CYCCNT, from Armv7-M on. RISC-V: mcycle. Xtensa: CCOUNT. They are of 32 bits and
 * are read twice an operator's call: a call may take 2^32 - 1 cycles, 19 seconds at 216 MHz. */
#include "cycles.h"

#include "harness_net.h"
#include "nn_profile.h"

#define TRIES 4

#if defined(__arm__) && defined(__thumb2__)

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define DEMCR REGISTER(0xE000EDFC)
#define DWT_CTRL REGISTER(0xE0001000)
#define DWT_CYCCNT REGISTER(0xE0001004)
#define DWT_LAR REGISTER(0xE0001FB0)
#define LAR_KEY 0xC5ACCE55U
#define DEMCR_TRCENA (1U << 24)
#define CTRL_CYCCNTENA 1U
#define CTRL_NOCYCCNT (1U << 25)

static uint32_t now(void) {
    return DWT_CYCCNT;
}

static void set(uint32_t count) {
    DWT_CYCCNT = count;
}

static uint32_t make_it_run(void) {
    DEMCR |= DEMCR_TRCENA;
    if ((DEMCR & DEMCR_TRCENA) == 0 || (DWT_CTRL & CTRL_NOCYCCNT) != 0) {
        return CYCLES_NONE;
    }
#if __ARM_ARCH < 8
    DWT_LAR = LAR_KEY; /* Cortex-M7's registers are locked after a reset */
#endif
    DWT_CYCCNT = 0;
    DWT_CTRL |= CTRL_CYCCNTENA;
    return CYCLES_COUNT;
}

#elif defined(__riscv)

static uint32_t now(void) {
    uint32_t count;
    __asm volatile("csrr %0, mcycle" : "=r"(count));
    return count;
}

static void set(uint32_t count) {
    __asm volatile("csrw mcycle, %0" : : "r"(count));
}

static uint32_t make_it_run(void) {
    return CYCLES_COUNT;
}

#elif defined(__xtensa__)

static uint32_t now(void) {
    uint32_t count;
    __asm volatile("rsr %0, ccount" : "=r"(count));
    return count;
}

static void set(uint32_t count) {
    __asm volatile("wsr %0, ccount" : : "r"(count));
}

static uint32_t make_it_run(void) {
    return CYCLES_COUNT;
}

#else

static uint32_t now(void) {
    return 0;
}

static void set(uint32_t count) {
    (void)count;
}

static uint32_t make_it_run(void) {
    return CYCLES_NONE;
}

#endif

static uint32_t state = CYCLES_NONE, overhead;
static uint64_t of_operator[HARNESS_OPERATORS], total;
static uint64_t began, invoke_began;
static uint32_t high, last; /* of the counter as one of 64 bits */
static uint32_t paused;
static int32_t running = -1;

static uint64_t count(void) {
    const uint32_t low = now();
    high += low < last;
    last = low;
    return (uint64_t)high << 32 | low;
}

void nn_cycles_begin(uint32_t id) {
    running = (int32_t)id;
    began = count();
}

void nn_cycles_end(void) {
    const uint64_t took = count() - began;
    if (running >= 0 && running < HARNESS_OPERATORS) {
        of_operator[running] += took > overhead ? took - overhead : 0;
    }
    running = -1;
}

void nn_cycles_invoke_begin(void) {
    invoke_began = count();
}

void nn_cycles_invoke_end(void) {
    total += count() - invoke_began;
}

void cycles_pause(void) {
    paused = (uint32_t)count();
}

void cycles_resume(void) {
    set(paused);
    last = paused;
}

/* The least that a pair with nothing in between takes. */
static uint32_t empty_pair(void) {
    uint32_t least = ~0U;
    overhead = 0;
    for (int i = 0; i < TRIES; i++) {
        cycles_clear();
        nn_cycles_begin(0);
        nn_cycles_end();
        const uint32_t took = (uint32_t)of_operator[0];
        least = took < least ? took : least;
    }
    return least;
}

void cycles_start(void) {
    state = make_it_run();
    if (state != CYCLES_COUNT) {
        return;
    }
    const uint32_t before = now();
    for (volatile int i = 0; i < 1000; i++) {
    }
    if (now() == before) {
        state = CYCLES_STILL;
        return;
    }
    overhead = empty_pair();
    cycles_clear();
}

uint32_t cycles_state(void) {
    return state;
}

uint32_t cycles_overhead(void) {
    return overhead;
}

void cycles_clear(void) {
    for (int i = 0; i < HARNESS_OPERATORS; i++) {
        of_operator[i] = 0;
    }
    total = 0;
    running = -1;
}

uint64_t cycles_of(uint32_t id) {
    return id < HARNESS_OPERATORS ? of_operator[id] : 0;
}

uint64_t cycles_total(void) {
    return total;
}

int32_t cycles_running(void) {
    return running;
}
