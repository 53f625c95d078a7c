/* A profile build (-DNN_PROFILE) marks where each operator, and the whole invoke, begins and ends.
 *
 * A marker is an instruction that does nothing on the core, and that an emulator's plugin
 * recognises by its encoding (plugins/buildtool_plugins/qemu/count.c). An operator's number, up to
 * 4095, is split over two of them.
 *
 *                  Arm            RISC-V
 *   low 6 bits     hint #0x40+k   addi x0, x0, 0x100+k
 *   high 6 bits    hint #0x80+k   addi x0, x0, 0x140+k     begins the operator
 *   end            hint #0xc0     addi x0, x0, 0x180
 *   invoke begins  hint #0xc1     addi x0, x0, 0x181
 *   invoke ends    hint #0xc2     addi x0, x0, 0x182
 */
#ifndef NN_PROFILE_H
#define NN_PROFILE_H

#if defined(NN_PROFILE) && defined(__arm__)
/* hint.w, by its encoding: GNU as does not know the mnemonic. */
#define NN_MARK_(code) __asm volatile(".inst.w 0xf3af8040 + %c0" : : "i"(code) : "memory")
#elif defined(NN_PROFILE) && defined(__riscv)
#define NN_MARK_(code) __asm volatile("addi x0, x0, %0" : : "i"(0x100 + (code)) : "memory")
#else
#define NN_MARK_(code) ((void)0)
#endif

#define NN_MARK_BEGIN(id)                                                                          \
    do {                                                                                           \
        NN_MARK_((id) & 63);                                                                       \
        NN_MARK_(0x40 + (((id) >> 6) & 63));                                                       \
    } while (0)
#define NN_MARK_END() NN_MARK_(0x80)
#define NN_MARK_INVOKE_BEGIN() NN_MARK_(0x81)
#define NN_MARK_INVOKE_END() NN_MARK_(0x82)

#endif
