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
 * Elsewhere, and where the compiler has no GNU assembly, there are none. With NN_MARK_CALLS defined
 * a marker calls nn_mark, with the code less 0x40 or 0x100.
 */
#ifndef NN_PROFILE_H
#define NN_PROFILE_H

#if defined(NN_MARK_CALLS)
void nn_mark(int code);
#define NN_MARK_(code) nn_mark(code)
#elif defined(__GNUC__) && defined(__thumb2__)
/* hint.w, by its encoding: GNU as does not know the mnemonic. */
#define NN_MARK_(code) __asm volatile(".inst.w 0xf3af8040 + %c0" : : "i"(code) : "memory")
#elif defined(__GNUC__) && defined(__riscv)
#define NN_MARK_(code) __asm volatile("addi x0, x0, %0" : : "i"(0x100 + (code)) : "memory")
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
