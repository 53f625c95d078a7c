/* Stands in for an emitted network: what it does is chosen by its input. */
#include "harness_net.h"
#include "nn_profile.h"
#include "nn_trace.h"

#include <string.h>

enum {
    ECHO,       /* output = second input + weights */
    TOUCH,      /* write the arena's byte at `value` (it may lie outside) */
    STACK,      /* write to `value` bytes of stack */
    WILD_STORE, /* write to the address `value` */
    LOOP,       /* for ever */
    RECURSE,    /* for ever, until the stack is full */
    STATUS,     /* give `value` as status */
    DIVIDE,     /* by zero */
    UNDEFINED,  /* an instruction that is none */
    COUNT,      /* a known number of instructions between markers */
    STRADDLE,   /* the same, one marker on the edge of a page of the emulator's */
    TIMED       /* code whose cycles the core's manual tells */
};

static uint8_t *memory;
static const uint8_t *constants;
static volatile int zero;
static volatile int initialised_data = 12345;
static volatile int zeroed_data;

int probe_init(void *arena, uint32_t bytes, const void *weights) {
    memory = arena;
    constants = weights;
    if (initialised_data != 12345 || zeroed_data != 0) {
        return 77; /* start-up has not set the globals */
    }
    return ((uintptr_t)arena & 15) != 0 || bytes != PROBE_ARENA_BYTES;
}

int8_t *probe_input(int i) {
    return (int8_t *)memory + 16 * i;
}

int8_t *probe_output(int i) {
    return (int8_t *)memory + PROBE_OUTPUT_OFFSET + 16 * i;
}

__attribute__((noinline)) static void use_stack(uint32_t bytes) {
    volatile uint8_t block[4096];
    for (uint32_t i = 0; i < bytes; i++) {
        block[sizeof block - 1 - i] = 1;
    }
    __asm volatile("" : : "r"(block) : "memory");
}

__attribute__((noinline)) static int recurse(volatile int *above) {
    volatile int here[16];
    here[0] = *above + 1;
    if (here[0] < 0) { /* never, before the stack is full */
        return 0;
    }
    return recurse(here) + here[0];
}

#ifdef __arm__
static void count(void) {
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(70);
    __asm volatile("movs r0, #100\n1: subs r0, #1\nbne 1b" : : : "r0", "cc"); /* 201 */
    NN_MARK_END();
    __asm volatile("nop\nnop");
    NN_MARK_BEGIN(4095);
#ifdef __thumb2__
    __asm volatile("cmp r0, r0\nit ne\nmovne r0, #1\nnop"
                   :
                   :
                   : "r0", "cc"); /* 4: skipped ones count */
#else
    __asm volatile("cmp r0, r0\nbne 1f\n1: nop\nnop" : : : "cc"); /* 4 */
#endif
    NN_MARK_END();
    NN_MARK_BEGIN(70);
    __asm volatile("nop"); /* added to its first run */
    NN_MARK_END();
#if defined(__ARM_FEATURE_MVE)
    NN_MARK_BEGIN(3);
    __asm volatile("movs r0, #10\ndls lr, r0\n1: nop\nle lr, 1b" : : : "r0", "lr", "cc"); /* 22 */
    NN_MARK_END();
#endif
    NN_MARK_INVOKE_END();
}
#elif defined(__riscv)
static void count(void) {
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(70);
    __asm volatile("li t0, 100\n1: addi t0, t0, -1\nbnez t0, 1b" : : : "t0"); /* 201 */
    NN_MARK_END();
    __asm volatile("nop\n.option push\n.option norvc\nnop\n.option pop");
    NN_MARK_BEGIN(4095);
    __asm volatile("beqz x0, 1f\nnop\n1: nop\nadd t0, t0, t0\naddi x0, x0, 0xff"
                   :
                   :
                   : "t0"); /* 4 */
    NN_MARK_END();
    NN_MARK_BEGIN(70);
    __asm volatile("nop"); /* added to its first run */
    NN_MARK_END();
#if defined(__riscv_vector)
    NN_MARK_BEGIN(3); /* a vector instruction is one, however long: 4 */
    __asm volatile("li t0, 16\nvsetvli t0, t0, e8, m8, ta, ma\nvmv.v.i v8, 0\nvadd.vv v8, v8, v8"
                   :
                   :
                   : "t0");
    NN_MARK_END();
#endif
    NN_MARK_INVOKE_END();
}
#endif

#ifdef __xtensa__
static void count(void) {
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(70);
    __asm volatile("movi a2, 100\n1: addi a2, a2, -1\nbnez a2, 1b" : : : "a2"); /* 201 */
    NN_MARK_END();
    __asm volatile("nop.n\nor a3, a3, a3");
    NN_MARK_BEGIN(4095);
    __asm volatile("beqz a1, 1f\nmoveqz a3, a4, a3\n1: nop.n\nmull a2, a2, a2"
                   :
                   :
                   : "a2", "a3"); /* 4 */
    NN_MARK_END();
    NN_MARK_BEGIN(70);
    __asm volatile("nop.n"); /* added to its first run */
    NN_MARK_END();
    NN_MARK_INVOKE_END();
}
#endif

#ifdef __arm__
/* Operator 69: the marker of its low bits ends, and the one of its high bits begins, 2 bytes before
 * the next 1024; or both end there, before an instruction of 4 bytes. */
__attribute__((naked, noinline, aligned(1024))) static void straddle(void) {
#ifdef __thumb2__
    __asm volatile("b.w 1f\n"
                   ".space 1014\n"
                   "1: .inst.w 0xf3af8040 + 5\n"
                   ".inst.w 0xf3af8081\n"
                   "nop\n"
                   ".inst.w 0xf3af80c0\n"
                   "bx lr\n");
#else
    __asm volatile("b 1f\n"
                   ".space 1008\n"
                   "1: .inst.n 0xbf80\n.inst.n 0xbf80\n.inst.n 0xbfd0\n"
                   ".inst.n 0xbf90\n.inst.n 0xbf80\n.inst.n 0xbf90\n"
                   "dmb sy\n"
                   ".inst.n 0xbfa0\n.inst.n 0xbf80\n.inst.n 0xbf80\n"
                   "bx lr\n");
#endif
}
#endif

#ifdef __thumb2__
/* Of 256 bytes that nothing has touched lately: see tests/targets/test_count.py. */
static void timed(const uint8_t *bytes) {
    const uint8_t *end = bytes + 256;
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(0); /* dependent multiplies */
    __asm volatile("movs r1, #50\n"
                   "1: mul r0, r0, r0\nmul r0, r0, r0\nmul r0, r0, r0\nmul r0, r0, r0\n"
                   "subs r1, #1\nbne 1b"
                   :
                   :
                   : "r0", "r1", "cc");
    NN_MARK_END();
    NN_MARK_BEGIN(1); /* four words at once */
    __asm volatile("movs r1, #10\n1: ldm %0, {r2, r3, r4, r5}\nsubs r1, #1\nbne 1b"
                   :
                   : "r"(bytes)
                   : "r1", "r2", "r3", "r4", "r5", "cc");
    NN_MARK_END();
    NN_MARK_BEGIN(2); /* all the words, twice */
    __asm volatile("movs r1, #2\n"
                   "2: mov r2, %0\n"
                   "1: ldr r3, [r2], #4\ncmp r2, %1\nbne 1b\n"
                   "subs r1, #1\nbne 2b"
                   :
                   : "r"(bytes), "r"(end)
                   : "r1", "r2", "r3", "cc");
    NN_MARK_END();
    NN_MARK_INVOKE_END();
}
#endif

int probe_invoke(void) {
    const uint8_t *choice = memory;
    uint32_t value;
    memcpy(&value, choice + 4, sizeof value);
    NN_TRACE_TENSOR(7, memory, 8);
    switch (choice[0]) {
    case TOUCH:
        memory[(int32_t)value] ^= 0xFF;
        break;
    case STACK:
        use_stack(value);
        break;
    case WILD_STORE:
        *(volatile uint32_t *)(uintptr_t)value = 1;
        break;
    case LOOP:
        for (;;) {
            __asm volatile("");
        }
    case RECURSE: {
        volatile int first = 0;
        return recurse(&first);
    }
    case STATUS:
        return (int)value;
    case DIVIDE:
        return 100 / zero;
    case UNDEFINED:
#ifdef __arm__
        __asm volatile("udf #0");
#elif defined(__riscv)
        __asm volatile("unimp");
#elif defined(__xtensa__)
        __asm volatile("ill");
#endif
        break;
    case COUNT:
#if defined(__arm__) || defined(__riscv) || defined(__xtensa__)
        count();
#endif
        break;
    case STRADDLE:
#ifdef __arm__
        NN_MARK_INVOKE_BEGIN();
        straddle();
        NN_MARK_INVOKE_END();
#endif
        break;
    case TIMED:
#ifdef __thumb2__
        timed(memory + 2048);
#endif
        break;
    default:
        break;
    }
    for (int i = 0; i < 16; i++) {
        memory[PROBE_OUTPUT_OFFSET + i] = (uint8_t)(memory[16 + i] + constants[i]);
    }
    NN_TRACE_TENSOR(9, memory + PROBE_OUTPUT_OFFSET, 16);
    return 0;
}
