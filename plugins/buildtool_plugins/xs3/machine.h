/* One logical core of an XS3 tile: memory, registers, the vector unit, and counts of issue slots.
 *
 * Instructions are decoded once for each address and issue mode, then executed from the decoded
 * form. Addresses are the chip's; memory is a list of regions. Not thread-safe; one machine runs
 * one program. */
#ifndef XS3_MACHINE_H
#define XS3_MACHINE_H

#include <stdint.h>

#define XS3_ABI 1
#define XS3_MARKS 4096         /* operators whose issues can be counted apart */
#define XS3_RETURN 0xfffffff0U /* a call ends when the program jumps here */

enum { XS3_CP = 12, XS3_DP, XS3_SP, XS3_LR, XS3_REGISTERS };

/* Why a run ended. The order is the order of REASONS in machine.py. */
enum xs3_stop {
    XS3_RUNNING,
    XS3_RETURNED, /* to XS3_RETURN */
    XS3_EXITED,   /* kcall 0 */
    XS3_LIMIT,    /* of issue slots */
    XS3_ILLEGAL_INSTRUCTION,
    XS3_ILLEGAL_PC,
    XS3_LOAD_STORE,
    XS3_ARITHMETIC,
    XS3_ECALL,
    XS3_ILLEGAL_SERVICE,
    XS3_NO_MEMORY
};

/* Choices on which the vendor's two public models differ. */
enum {
    XS3_VLASHR_ROUNDS = 1,    /* else floor */
    XS3_VLMACCR_SATURATES = 2 /* after every product, else once */
};

typedef struct {
    uint64_t issues;
    uint64_t stalls;   /* of the fetch model */
    uint64_t vectors;  /* operations of the vector unit */
    uint64_t products; /* VLMACC and VLMACCR */
    uint64_t runs;     /* how often the mark was set */
    uint64_t idle;     /* slots of pieces during which another piece of a call takes longer */
} xs3_counts;

typedef struct xs3 xs3;

int32_t xs3_abi(void);
xs3 *xs3_open(void);
void xs3_close(xs3 *m);
/* The memory of a new region, zeros; NULL where it overlaps another or cannot be had. */
uint8_t *xs3_map(xs3 *m, uint32_t base, uint32_t bytes, int32_t writable);
void xs3_choose(xs3 *m, int32_t readings);
uint32_t *xs3_registers(xs3 *m); /* r0 to r11, cp, dp, sp, lr */
uint8_t *xs3_unit_state(xs3 *m); /* vR, vD, vC, 32 bytes each, and the type as VSETC has it */
/* Runs from `pc` (bit 0: in dual issue) until it stops, at most `limit` issue slots. */
int32_t xs3_run(xs3 *m, uint32_t pc, uint64_t limit);
void xs3_where(const xs3 *m, uint32_t *pc, int32_t *dual, uint32_t *address);
void xs3_forget(xs3 *m);                                 /* decoded instructions and all counts */
const xs3_counts *xs3_count(const xs3 *m, int32_t mark); /* of a mark; -1: of all */
/* How often the instruction at `pc` was issued, and fetch stalls before it. */
void xs3_count_at(const xs3 *m, uint32_t pc, int32_t dual, uint64_t *issues, uint64_t *stalls);
/* The line of instructions.h (from 1) of a halfword or a long word, 0 if none; a to f, and the
 * number. */
int32_t xs3_decode(uint32_t word, int32_t is_long, uint32_t operands[7]);

#endif
