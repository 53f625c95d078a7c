/* Markers: where each operator, and the whole invoke, begins and ends. They are in every image.
 *
 * A marker is an instruction that does nothing on the core, and that an emulator's plugin
 * recognises by its encoding (plugins/buildtool_plugins/qemu/count.c), so that the very image that
 * is flashed can be profiled. A kernel call is bracketed by two of them, by three from operator 64
 * on. An operator's number is 4095 at most.
 *
 *                      Arm            RISC-V
 *   operator begins    hint #0x40+k   addi x0, x0, 0x100+k     k: the low 6 bits of its number
 *   the high 6 bits    hint #0x80+k   addi x0, x0, 0x140+k     follows, where they are not 0
 *   operator ends      hint #0xc0     addi x0, x0, 0x180
 *   invoke begins      hint #0xc1     addi x0, x0, 0x181
 *   invoke ends        hint #0xc2     addi x0, x0, 0x182
 *
 * On Xtensa the code of one byte that the table shows behind Arm's 0x40 is in the registers of a
 * conditional move to itself: moveqz a[code >> 4], a[code >> 4], a[code & 15]. Arm's v6-M has no
 * hint of 32 bits: there the code's three octal digits are three reserved hints of 16 bits, 0xbf80
 * + 16 * digit, the highest first.
 *
 * On xcore they are three moves of one of the registers 0 to 7 to itself, whose numbers are the
 * code's octal digits, the highest first.
 *
 * Elsewhere, and where the compiler has no GNU assembly, there are none. With -DNN_CYCLES the test
 * firmware of a board has calls in their place, which read the core's own counter.
 */
#ifndef NN_PROFILE_H
#define NN_PROFILE_H

#ifdef NN_CYCLES
#include <stdint.h>

void nn_cycles_begin(uint32_t id);
void nn_cycles_end(void);
void nn_cycles_invoke_begin(void);
void nn_cycles_invoke_end(void);

#define NN_MARK_BEGIN(id) nn_cycles_begin(id)
#define NN_MARK_END() nn_cycles_end()
#define NN_MARK_INVOKE_BEGIN() nn_cycles_invoke_begin()
#define NN_MARK_INVOKE_END() nn_cycles_invoke_end()
#else

#if defined(__GNUC__) && defined(__thumb2__)
/* hint.w, by its encoding: GNU as does not know the mnemonic. */
#define NN_MARK_(code) __asm volatile(".inst.w 0xf3af8040 + %c0" : : "i"(code) : "memory")
#elif defined(__GNUC__) && defined(__ARM_ARCH_6M__)
#define NN_MARK_(code)                                                                             \
    __asm volatile(".inst.n 0xbf80 + %c0\n.inst.n 0xbf80 + %c1\n.inst.n 0xbf80 + %c2"              \
                   :                                                                               \
                   : "i"(((code) >> 6) * 16), "i"(((code) >> 3 & 7) * 16), "i"(((code) & 7) * 16)  \
                   : "memory")
#elif defined(__GNUC__) && defined(__riscv)
#define NN_MARK_(code) __asm volatile("addi x0, x0, %0" : : "i"(0x100 + (code)) : "memory")
#elif defined(__GNUC__) && defined(__xtensa__)
#define NN_MARK_(code)                                                                             \
    __asm volatile("moveqz a%c0, a%c0, a%c1" : : "i"((code) >> 4), "i"((code) & 15) : "memory")
#elif defined(__GNUC__) && defined(__xcore__)
#define NN_MARK_(code)                                                                             \
    __asm volatile("mov r%c0, r%c0\nmov r%c1, r%c1\nmov r%c2, r%c2"                                \
                   :                                                                               \
                   : "i"((code) >> 6), "i"((code) >> 3 & 7), "i"((code) & 7)                       \
                   : "memory")
#else
#define NN_MARK_(code) ((void)0)
#endif

#define NN_MARK_BEGIN(id)                                                                          \
    do {                                                                                           \
        NN_MARK_((id) & 63);                                                                       \
        if ((id) > 63) {                                                                           \
            NN_MARK_(0x40 + (((id) >> 6) & 63));                                                   \
        }                                                                                          \
    } while (0)
#define NN_MARK_END() NN_MARK_(0x80)
#define NN_MARK_INVOKE_BEGIN() NN_MARK_(0x81)
#define NN_MARK_INVOKE_END() NN_MARK_(0x82)
#endif

#endif
