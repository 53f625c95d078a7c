/* Issues of a host run through the model of the VPU, counted where NN_VPU_COUNT is defined.
 *
 * Every operation of nn_vpu.h counts one VPU issue. Kernels declare beside their loops what else
 * the thread issues there, and which part of the VPU issues multiplies and accumulates. What can
 * ride in the free slot of a VPU instruction's bundle (a register-only operation, such as adding
 * to an address) is not declared.
 *
 * The counts are one set for the process: count where pieces of a call run one after the other.
 */
#ifndef NN_VPU_COUNT_H
#define NN_VPU_COUNT_H

#include <stdint.h>

typedef struct {
    uint64_t vpu;    /* issues of the VPU, */
    uint64_t mac;    /* of those, loops that multiply and accumulate; */
    uint64_t scalar; /* and issues without it: loads, stores, branches, arithmetic */
} nn_vpu_counts;

#ifdef NN_VPU_COUNT
extern nn_vpu_counts nn_vpu_counter;
#define NN_VPU_ISSUE() ((void)(nn_vpu_counter.vpu += 1))
#define NN_VPU_MAC(n) ((void)(nn_vpu_counter.mac += (uint64_t)(n)))
#define NN_VPU_SCALAR(n) ((void)(nn_vpu_counter.scalar += (uint64_t)(n)))
#else
#define NN_VPU_ISSUE() ((void)0)
#define NN_VPU_MAC(n) ((void)(n))
#define NN_VPU_SCALAR(n) ((void)(n))
#endif

/* What was counted so far, since the process began; zeros without NN_VPU_COUNT. */
nn_vpu_counts nn_vpu_counted(void);

#endif
