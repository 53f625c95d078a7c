/* The core's own cycle counter: whether it runs, and what each operator took by it. */
#ifndef CYCLES_H
#define CYCLES_H

#include <stdint.h>

/* Why nothing is counted; CYCLES_COUNT: it is. */
enum {
    CYCLES_COUNT = 0,
    CYCLES_NONE = 1,  /* the core has no counter that this firmware knows */
    CYCLES_STILL = 2, /* it has one, which stands still, as in emulators */
};

/* Makes the counter run, and finds out whether it does. */
void cycles_start(void);
uint32_t cycles_state(void);
/* Cycles of an empty pair of markers, which are taken off each call. */
uint32_t cycles_overhead(void);
/* Everything counted so far is forgotten. */
void cycles_clear(void);
/* Of operator `id`, 0 where there is none; and of the whole invoke. */
uint64_t cycles_of(uint32_t id);
uint64_t cycles_total(void);
/* While the program waits for its host the counter is to stand still. */
void cycles_pause(void);
void cycles_resume(void);
/* The operator that is running; -1 between operators. */
int32_t cycles_running(void);

#endif
