/* Counts what a network's operators issue in the model of the vector unit, on the host.
 *
 * Part of a test firmware of its own, compiled with NN_VPU_COUNT and NN_CYCLES: the operations of
 * nn_vpu.h count themselves, kernels declare their other issues, and the markers of emitted code
 * are calls to here. The threads of a call run one after the other, each for itself, so that the
 * slowest is known.
 *
 * When the program ends, issues.txt gets a line "<operator> <vpu> <mac> <scalar> <slowest>" for
 * each operator that ran: issues of all threads, and of the calling thread with the slowest of each
 * call. All are summed over the run. Then "invokes <n>".
 */
#include "nn_parallel.h"
#include "nn_profile.h"
#include "nn_vpu_count.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_OPERATORS 4096

/* Of nn_vpu_count.c, where a kernel needs that. */
__attribute__((weak)) nn_vpu_counts nn_vpu_counter;

static nn_vpu_counts of_operator[MAX_OPERATORS], at_begin;
static uint64_t slowest[MAX_OPERATORS]; /* issues of the slowest thread */
static uint64_t idle; /* issues in this operator during which another thread issues more */
static uint8_t ran[MAX_OPERATORS];
static uint64_t invokes;
static int running = -1;

static uint64_t issued(void) {
    return nn_vpu_counter.vpu + nn_vpu_counter.scalar;
}

/* In the place of kernels/runtime's. */
void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    uint64_t most = 0, sum = 0;
    for (int32_t piece = 0; piece < pieces; piece++) {
        const uint64_t before = issued();
        job(context, piece);
        const uint64_t own = issued() - before;
        sum += own;
        most = own > most ? own : most;
    }
    idle += sum - most;
}

static void end_operator(void) {
    nn_vpu_counts *const one = &of_operator[running];
    const nn_vpu_counts now = nn_vpu_counter;
    const uint64_t all = issued() - at_begin.vpu - at_begin.scalar;
    one->vpu += now.vpu - at_begin.vpu;
    one->mac += now.mac - at_begin.mac;
    one->scalar += now.scalar - at_begin.scalar;
    slowest[running] += all - idle;
    ran[running] = 1;
    running = -1;
}

static int invoke_running; /* init and reset may run the network, too */

void nn_cycles_begin(uint32_t id) {
    running = invoke_running ? (int)(id % MAX_OPERATORS) : -1;
    at_begin = nn_vpu_counter;
    idle = 0;
}

void nn_cycles_end(void) {
    if (running >= 0) {
        end_operator();
    }
}

void nn_cycles_invoke_begin(void) {
    invoke_running = 1;
}

void nn_cycles_invoke_end(void) {
    invoke_running = 0;
    invokes++;
}

__attribute__((destructor)) static void write_counts(void) {
    FILE *const file = fopen("issues.txt", "w");
    if (file == NULL) {
        return;
    }
    for (int i = 0; i < MAX_OPERATORS; i++) {
        if (ran[i]) {
            fprintf(file, "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
                    of_operator[i].vpu, of_operator[i].mac, of_operator[i].scalar, slowest[i]);
        }
    }
    fprintf(file, "invokes %" PRIu64 "\n", invokes);
    fclose(file);
}
