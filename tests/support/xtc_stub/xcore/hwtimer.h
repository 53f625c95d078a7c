/* A STUB of lib_xcore's timers, for tests on an ordinary machine. */
#ifndef STUB_HWTIMER_H
#define STUB_HWTIMER_H

#include <stdint.h>

typedef int hwtimer_t;
hwtimer_t hwtimer_alloc(void);
uint32_t hwtimer_get_time(hwtimer_t timer);
void hwtimer_delay(hwtimer_t timer, uint32_t ticks);

#endif
