/* Operations of the vector unit (VPU) of XMOS's XS3 cores, each named after its instruction.
 *
 * Kernels are written once on them. Three back ends give the same operations:
 *   nn_vpu_model.h  portable C, a model of the chip; the default;
 *   nn_vpu_xs3.h    inline assembly for XMOS's xcc, where __XS3A__ is defined;
 *   nn_vpu_vx4.h    inline assembly for VX4, RISC-V with `xm.*`, where NN_VPU_VX4 is defined.
 * buildtool's own XS3 runner assembles and runs the second; the last one was never assembled.
 *
 * A kernel holds one `nn_vpu`, the state of the unit as its thread sees it: vR, vD and vC of 32
 * bytes, and the element type that VSETC sets. Every address is a multiple of 4, and memory
 * operands are 32 bytes (16 suffice for VLMACC on 8 bits, and for VLMACC nothing else is read).
 *
 *   operation                  effect; "sat" is symmetric: 127, 2^15-1, 2^31-1 and their negatives
 *   nn_vpu_vsetc(v, type)      elements of NN_VPU_S8, NN_VPU_S16 or NN_VPU_S32
 *   nn_vpu_vclrdr(v)           vR = vD = 0
 *   nn_vpu_vldr, vldd, vldc    load vR, vD, vC
 *   nn_vpu_vstr, vstd, vstc    store them
 *   nn_vpu_vstrpv(v, a, mask)  stores byte i of vR where bit i of the mask is set
 *   nn_vpu_vlmacc(v, a)        acc[i] = sat(acc[i] + vC[i] * mem[i]), 16, 16 or 8 accumulators
 *   nn_vpu_vlmaccr(v, a)       sat(last acc + dot(vC, mem)) becomes acc[0], the others move up
 *   nn_vpu_vlsat(v, a)         vR[i] = sat(acc[i] >> mem[i], halves up), shifts of 16 bits (of 32
 *                              with 32-bit elements); vD = 0. On 8 bits: bytes 0 to 15 of vR
 *   nn_vpu_vadddr(v)           acc[0] = sat(sum of all), the others 0; not on VX4
 *   nn_vpu_vladd, vlsub        vR = sat(vR + mem), sat(mem - vR)
 *   nn_vpu_vlmul(v, a)         vR = sat(vR * mem >> 6, 14, 30, halves up)
 *   nn_vpu_vlashr(v, a, r)     vR = sat(mem >> r, floor); to the left where r < 0
 *   nn_vpu_vpos, vsign         vR = max(vR, 0); vR >= 0 ? +1.0 : -1.0, 1.0 = 0x40, 0x4000, ...
 *   nn_vpu_vdepth1(v)          bit i of vR = (vR[i] < 0), the rest 0
 *   nn_vpu_vdepth8, vdepth16   vR = the elements' upper 8 or 16 bits, halves up, sat; the rest 0
 *
 * Accumulators are 32 bits, the upper halves in the 16 halfwords of vD, the lower ones in vR's;
 * with 32-bit elements 40 bits, the lower 32 in vR, and products are rounded >> 30 before they are
 * added.
 */
#ifndef NN_VPU_H
#define NN_VPU_H

#include "nn_vpu_count.h"

#define NN_VPU_BYTES 32 /* of vR, vD, vC */
#define NN_VPU_ACC 16   /* accumulators with elements of 8 and 16 bits */

/* The types as VSETC wants them. */
#define NN_VPU_S32 0x000
#define NN_VPU_S16 0x100
#define NN_VPU_S8 0x200

/* Objects that the unit loads and stores. */
#define NN_VPU_ALIGNED __attribute__((aligned(4)))

#if defined(__XS3A__)
#include "nn_vpu_xs3.h"
#elif defined(NN_VPU_VX4)
#include "nn_vpu_vx4.h"
#else
#include "nn_vpu_model.h"
#endif

#endif
