/* Counts what a network's operators issue: in the model of the vector unit on the host, or in the
 * XS3 runner, which counts what it executes.
 *
 * Part of a test firmware of its own, compiled with NN_VPU_COUNT and NN_CYCLES: the markers of
 * emitted code are calls to here. On the host the operations of nn_vpu.h count themselves, and
 * kernels declare their other issues. The threads of a call run one after the other, each for
 * itself, so that the slowest is known.
 *
 * When the program ends, issues.txt gets a line "<operator> <vpu> <mac> <scalar> <slowest>" for
 * each operator that ran: issues of all threads, and of the calling thread with the slowest of each
 * call. All are summed over the run. Then "invokes <n>".
 */
#include "harness_io.h"
#include "nn_parallel.h"
#include "nn_profile.h"
#include "nn_vpu_count.h"

#define MAX_OPERATORS 4096
#define LINE_BYTES 128

#ifdef __xcore__

/* The runner's counts since the program began, of 32 bits each; differences are used. */
static nn_vpu_counts counted(void) {
    register uint32_t vpu __asm("r0");
    register uint32_t mac __asm("r1");
    register uint32_t all __asm("r2");
    __asm volatile("kcall 10" : "=r"(vpu), "=r"(mac), "=r"(all) : : "memory");
    return (nn_vpu_counts){vpu, mac, all - vpu};
}

#else

/* Of nn_vpu_count.c, where a kernel needs that. */
__attribute__((weak)) nn_vpu_counts nn_vpu_counter;

static nn_vpu_counts counted(void) {
    return nn_vpu_counter;
}

#endif

static nn_vpu_counts of_operator[MAX_OPERATORS], at_begin;
static uint64_t slowest[MAX_OPERATORS]; /* issues of the slowest thread */
static uint64_t idle; /* issues in this operator during which another thread issues more */
static uint8_t ran[MAX_OPERATORS];
static uint64_t invokes;
static int running = -1;

/* Counts go round after 32 bits in the runner. */
static uint64_t since(uint64_t now, uint64_t before) {
    return sizeof(void *) == 4 ? (uint32_t)(now - before) : now - before;
}

static uint64_t issued(void) {
    const nn_vpu_counts now = counted();
    return now.vpu + now.scalar;
}

/* In the place of kernels/runtime's. */
void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    uint64_t most = 0, sum = 0;
    for (int32_t piece = 0; piece < pieces; piece++) {
        const uint64_t before = issued();
        job(context, piece);
        const uint64_t own = since(issued(), before);
        sum += own;
        most = own > most ? own : most;
    }
    idle += sum - most;
}

static void end_operator(void) {
    nn_vpu_counts *const one = &of_operator[running];
    const nn_vpu_counts now = counted();
    const uint64_t vpu = since(now.vpu, at_begin.vpu), scalar = since(now.scalar, at_begin.scalar);
    one->vpu += vpu;
    one->mac += since(now.mac, at_begin.mac);
    one->scalar += scalar;
    slowest[running] += vpu + scalar - idle;
    ran[running] = 1;
    running = -1;
}

static int invoke_running; /* init and reset may run the network, too */

void nn_cycles_begin(uint32_t id) {
    running = invoke_running ? (int)(id % MAX_OPERATORS) : -1;
    idle = 0;
    at_begin = counted();
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

static char *put_number(char *to, uint64_t value) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0) {
        *to++ = digits[--count];
    }
    *to++ = ' ';
    return to;
}

/* The last character becomes the end of the line. */
static void write_line(int file, char *line, char *end) {
    end[-1] = '\n';
    (void)io_write(file, line, (uint32_t)(end - line));
}

#ifdef __xcore__
void io_at_exit(void);
void io_at_exit(void)
#else
__attribute__((destructor)) static void write_counts(void)
#endif
{
    const int file = io_open_write("issues.txt");
    char line[LINE_BYTES] = "invokes ";
    if (file < 0) {
        return;
    }
    for (int i = 0; i < MAX_OPERATORS; i++) {
        if (ran[i]) {
            const nn_vpu_counts *const of = &of_operator[i];
            const uint64_t numbers[] = {(uint64_t)i, of->vpu, of->mac, of->scalar, slowest[i]};
            char row[LINE_BYTES], *end = row;
            for (int k = 0; k < 5; k++) {
                end = put_number(end, numbers[k]);
            }
            write_line(file, row, end);
        }
    }
    write_line(file, line, put_number(line + 8, invokes));
    io_close(file);
}
