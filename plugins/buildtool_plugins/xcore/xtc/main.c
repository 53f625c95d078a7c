/* An application around the network @net@, for XK-EVK-XU316 and XMOS's XTC tools.
 *
 * It runs the network once on an input of zeros and prints the largest output, the time, and what the
 * weights' loader says. The network's weights lie in the data partition of the kit's flash, where
 * `xflash --data` has put them; a thread of its own reads them with the vendor's quadflash functions
 * while others compute: NN_THREADS of them, by lib_xcore (kernels/runtime/nn_parallel.c).
 *
 * Written after XMOS's documentation, and NOT TRIED: nothing here has been near the tools or a board. With
 * the vendor's functions played by a machine's own threads and memory it gives the reference's output.
 */
#include "@net@.h"

#include <platform.h>
#include <quadflash.h>
#include <stdio.h>
#include <string.h>
#include <xcore/hwtimer.h>
#include <xcore/thread.h>

/* ---- weights ----------------------------------------------------------------------------- */

#define FLASH_STACK_WORDS 512
#define ORDERS 256U             /* a network begins fewer loads at once */
#define LOOK_TICKS 200U         /* of 10 ns: between two looks for an order */
#define TICKS_PER_MICROSECOND 100U
#define BARRIER() __asm volatile("" : : : "memory")

typedef struct {
    void *to;
    uint32_t from, bytes;
} order;

/* The network's thread writes `orders` and then `begun`, the flash's thread `done`: one writer each. */
static order orders[ORDERS];
static volatile uint32_t begun, done;
static volatile int connected, flash_error;

static void serve_flash(void *unused) {
    static fl_QSPIPorts ports = {PORT_SQI_CS, PORT_SQI_SCLK, PORT_SQI_SIO, XS1_CLKBLK_1};
    static fl_QuadDeviceSpec device = FL_QUADDEVICE_DEFAULT;
    const hwtimer_t timer = hwtimer_alloc();
    (void)unused;
    flash_error = fl_connectToDevice(&ports, &device, 1);
    connected = 1;
    for (;;) {
        while (done == begun) {
            hwtimer_delay(timer, LOOK_TICKS);
        }
        BARRIER();
        const order *one = &orders[done % ORDERS];
        if (flash_error == 0) {
            flash_error = fl_readData(one->from, one->bytes, one->to);
        }
        BARRIER();
        done = done + 1;
    }
}

static void wait_for_weights(void *context) {
    (void)context;
    while (done != begun) {
    }
    BARRIER();
}

static void begin_weights(void *context, void *to, uint32_t from, uint32_t bytes) {
    while (begun - done == ORDERS) {
    }
    const order one = {to, from, bytes};
    orders[begun % ORDERS] = one;
    BARRIER();
    begun = begun + 1;
    (void)context;
}
@rows@
/* ---- the network ------------------------------------------------------------------------- */

@NET@_DEFINE_ARENA(arena);
static uint32_t flash_stack[FLASH_STACK_WORDS] __attribute__((aligned(8)));

static void print_result(uint32_t ticks) {
    const int8_t *output = (const int8_t *)@net@_output(0);
    int best = 0;
    for (int i = 1; i < @NET@_OUTPUT0_ELEMENTS; i++) {
        best = output[i] > output[best] ? i : best;
    }
    printf("@net@: largest output [%d] %d, %u microseconds\n", best, output[best],
           (unsigned)(ticks / TICKS_PER_MICROSECOND));
}

int main(void) {
    const nn_loader loader = {begin_weights, wait_for_weights, NULL};
    const hwtimer_t timer = hwtimer_alloc();
    xthread_alloc_and_start(serve_flash, NULL, stack_base(flash_stack, FLASH_STACK_WORDS));
    while (!connected) {
    }
    if (flash_error != 0) {
        printf("the flash does not answer: libquadflash says %d\n", flash_error);
        return 1;
    }
    @net@_set_loader(loader);
    const nn_status status = @net@_init(arena, sizeof arena, NULL);
    if (status != NN_OK || flash_error != 0) {
        printf("init gives status %d, libquadflash says %d: are these weights in the flash?\n", (int)status,
               flash_error);
        return 1;
    }
@input@    const uint32_t start = hwtimer_get_time(timer);
    const nn_status ran = @net@_invoke();
    const uint32_t ticks = hwtimer_get_time(timer) - start;
    if (ran != NN_OK || flash_error != 0) {
        printf("invoke gives status %d, libquadflash says %d\n", (int)ran, flash_error);
        return 1;
    }
    print_result(ticks);
    return 0;
}
