/* The VPU's operations as inline assembly for VX4, RISC-V with XMOS's `xm.*`, one macro an
 * instruction.
 *
 * Never assembled here: the tools were not at hand. The state is the unit's own, which compiled C
 * does not touch; `volatile` keeps the operations in order, "memory" orders them with the loads
 * and stores around them. An object of type nn_vpu is only a place holder.
 *
 * What VX4 does differently, so that the kernels beside this file, proved for XS3, need another
 * look there before they are used: bounds are those of two's complement (-128, -32768, ...) instead
 * of symmetric; VLMUL shifts by 7 and 15 on 8 and 16 bits; VLSAT on 8 bits yields elements of 16
 * bits; VADDDR is missing; addresses need no alignment.
 */
#ifndef NN_VPU_VX4_H
#define NN_VPU_VX4_H

#include <stdint.h>
#include <string.h>

typedef struct {
    int32_t none;
} nn_vpu;

#define NN_VPU_PLAIN(v, text)                                                                      \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text : : : "memory");                                                       \
    } while (0)
#define NN_VPU_MEMORY(v, text, a)                                                                  \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text " (%0)" : : "r"(a) : "memory");                                        \
    } while (0)
#define NN_VPU_WITH(v, text, a, b)                                                                 \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text " %1, (%0)" : : "r"(a), "r"(b) : "memory");                            \
    } while (0)

#define nn_vpu_vsetc(v, type)                                                                      \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile("xm.vsetc %0" : : "r"(type) : "memory");                                    \
    } while (0)
#define nn_vpu_vclrdr(v) NN_VPU_PLAIN(v, "xm.vclrdr")
#define nn_vpu_vldr(v, a) NN_VPU_MEMORY(v, "xm.vldr", a)
#define nn_vpu_vldd(v, a) NN_VPU_MEMORY(v, "xm.vldd", a)
#define nn_vpu_vldc(v, a) NN_VPU_MEMORY(v, "xm.vldc", a)
#define nn_vpu_vstr(v, a) NN_VPU_MEMORY(v, "xm.vstr", a)
#define nn_vpu_vstd(v, a) NN_VPU_MEMORY(v, "xm.vstd", a)
#define nn_vpu_vstc(v, a) NN_VPU_MEMORY(v, "xm.vstc", a)
#define nn_vpu_vstrpv(v, a, mask) NN_VPU_WITH(v, "xm.vstrpv", a, mask)
#define nn_vpu_vlmacc(v, a) NN_VPU_MEMORY(v, "xm.vlmacc", a)
#define nn_vpu_vlmaccr(v, a) NN_VPU_MEMORY(v, "xm.vlmaccr", a)
#define nn_vpu_vlsat(v, a) NN_VPU_MEMORY(v, "xm.vlsat", a)
#define nn_vpu_vladd(v, a) NN_VPU_MEMORY(v, "xm.vladd", a)
#define nn_vpu_vlsub(v, a) NN_VPU_MEMORY(v, "xm.vlsub", a)
#define nn_vpu_vlmul(v, a) NN_VPU_MEMORY(v, "xm.vlmul", a)
#define nn_vpu_vlashr(v, a, right) NN_VPU_WITH(v, "xm.vlashr", a, right)
#define nn_vpu_vpos(v) NN_VPU_PLAIN(v, "xm.vpos")
#define nn_vpu_vsign(v) NN_VPU_PLAIN(v, "xm.vsign")
#define nn_vpu_vdepth1(v) NN_VPU_PLAIN(v, "xm.vdepth1")
#define nn_vpu_vdepth8(v) NN_VPU_PLAIN(v, "xm.vdepth8")
#define nn_vpu_vdepth16(v) NN_VPU_PLAIN(v, "xm.vdepth16")

#endif
