/* The VPU's operations as inline assembly, one macro an instruction.
 *
 * Assembled and run by buildtool's own XS3 runner (clang's XCore back end compiles the C around
 * it), never by XMOS's tools. VLDR and VSTC take their address in r11 only. The state is the unit's
 * own, which compiled C does not touch; `volatile` keeps the operations in order, "memory" orders
 * them with the loads and stores around them. An object of type nn_vpu is only a place holder.
 */
#ifndef NN_VPU_XS3_H
#define NN_VPU_XS3_H

#include <stdint.h>
#include <string.h>

typedef struct {
    int32_t none;
} nn_vpu;

/* A tile's memory. */
#define NN_VPU_RAM 0x80000U
#define NN_VPU_RAM_END 0x100000U

#define NN_VPU_PLAIN(v, text)                                                                      \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text : : : "memory");                                                       \
    } while (0)
#define NN_VPU_MEMORY(v, text, a)                                                                  \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text " %0[0]" : : "r"(a) : "memory");                                       \
    } while (0)
#define NN_VPU_R11(v, text, a)                                                                     \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile("mov r11, %0\n\t" text " r11[0]" : : "r"(a) : "r11", "memory");             \
    } while (0)
#define NN_VPU_WITH(v, text, a, b)                                                                 \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile(text " %0[0], %1" : : "r"(a), "r"(b) : "memory");                           \
    } while (0)

#define nn_vpu_vsetc(v, type)                                                                      \
    do {                                                                                           \
        (void)(v);                                                                                 \
        __asm volatile("ldc r11, %0\n\tvsetc r11" : : "i"(type) : "r11", "memory");                \
    } while (0)
#define nn_vpu_vclrdr(v) NN_VPU_PLAIN(v, "vclrdr")
#define nn_vpu_vldr(v, a) NN_VPU_R11(v, "vldr", a)
#define nn_vpu_vldd(v, a) NN_VPU_MEMORY(v, "vldd", a)
#define nn_vpu_vldc(v, a) NN_VPU_MEMORY(v, "vldc", a)
#define nn_vpu_vstr(v, a) NN_VPU_MEMORY(v, "vstr", a)
#define nn_vpu_vstd(v, a) NN_VPU_MEMORY(v, "vstd", a)
#define nn_vpu_vstc(v, a) NN_VPU_R11(v, "vstc", a)
#define nn_vpu_vstrpv(v, a, mask) NN_VPU_WITH(v, "vstrpv", a, mask)
#define nn_vpu_vlmacc(v, a) NN_VPU_MEMORY(v, "vlmacc", a)
#define nn_vpu_vlmaccr(v, a) NN_VPU_MEMORY(v, "vlmaccr", a)
#define nn_vpu_vlsat(v, a) NN_VPU_MEMORY(v, "vlsat", a)
#define nn_vpu_vadddr(v) NN_VPU_PLAIN(v, "vadddr")
#define nn_vpu_vladd(v, a) NN_VPU_MEMORY(v, "vladd", a)
#define nn_vpu_vlsub(v, a) NN_VPU_MEMORY(v, "vlsub", a)
#define nn_vpu_vlmul(v, a) NN_VPU_MEMORY(v, "vlmul", a)
#define nn_vpu_vlashr(v, a, right) NN_VPU_WITH(v, "vlashr", a, right)
#define nn_vpu_vpos(v) NN_VPU_PLAIN(v, "vpos")
#define nn_vpu_vsign(v) NN_VPU_PLAIN(v, "vsign")
#define nn_vpu_vdepth1(v) NN_VPU_PLAIN(v, "vdepth1")
#define nn_vpu_vdepth8(v) NN_VPU_PLAIN(v, "vdepth8")
#define nn_vpu_vdepth16(v) NN_VPU_PLAIN(v, "vdepth16")

#endif
