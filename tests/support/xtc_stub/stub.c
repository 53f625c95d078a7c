/* What the stub headers declare: threads of the operating system, a file for a flash. */
#include <platform.h>
#include <pthread.h>
#include <quadflash.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xcore/hwtimer.h>
#include <xcore/thread.h>

#define MOST_THREADS 64

static FILE *flash;

int fl_connectToDevice(fl_QSPIPorts *ports, fl_QuadDeviceSpec specs[], unsigned count) {
    const char *name = getenv("STUB_FLASH");
    if (ports->qspiCS != PORT_SQI_CS || specs == NULL || count != 1 || name == NULL) {
        return 1;
    }
    flash = fopen(name, "rb");
    return flash == NULL;
}

int fl_readData(unsigned offset, unsigned size, unsigned char data[]) {
    return fseek(flash, (long)offset, SEEK_SET) != 0 || fread(data, 1, size, flash) != size;
}

hwtimer_t hwtimer_alloc(void) {
    return 1;
}

uint32_t hwtimer_get_time(hwtimer_t timer) {
    struct timespec now;
    (void)timer;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)(now.tv_sec * 100000000 + now.tv_nsec / 10);
}

void hwtimer_delay(hwtimer_t timer, uint32_t ticks) {
    const struct timespec rest = {0, (long)ticks * 10};
    (void)timer;
    nanosleep(&rest, NULL);
}

typedef struct {
    thread_function_t function;
    void *argument;
} job;

static job jobs[MOST_THREADS];
static pthread_t threads[MOST_THREADS];
static int used, first_of_group;

static void *body(void *given) {
    const job *one = given;
    one->function(one->argument);
    return NULL;
}

static int add(thread_function_t function, void *argument) {
    if (used == MOST_THREADS) {
        abort();
    }
    jobs[used] = (job){function, argument};
    return used++;
}

xthread_t xthread_alloc_and_start(thread_function_t function, void *argument, void *stack) {
    const int which = add(function, argument);
    (void)stack;
    pthread_create(&threads[which], NULL, body, &jobs[which]);
    return which + 1;
}

threadgroup_t thread_group_alloc(void) {
    first_of_group = used;
    return 1;
}

void thread_group_add(threadgroup_t group, thread_function_t function, void *argument,
                      void *stack) {
    (void)group;
    (void)stack;
    add(function, argument);
}

void thread_group_start(threadgroup_t group) {
    (void)group;
    for (int i = first_of_group; i < used; i++) {
        pthread_create(&threads[i], NULL, body, &jobs[i]);
    }
}

void thread_group_wait(threadgroup_t group) {
    (void)group;
    for (int i = first_of_group; i < used; i++) {
        pthread_join(threads[i], NULL);
    }
}

void thread_group_free(threadgroup_t group) {
    (void)group;
    used = first_of_group;
}
