/* Compilers for Arm call the run-time functions by the names of Arm's run-time ABI. */
#ifndef NAMES_H
#define NAMES_H

#if defined(__arm__)
#define __addsf3 __aeabi_fadd
#define __subsf3 __aeabi_fsub
#define __mulsf3 __aeabi_fmul
#define __divsf3 __aeabi_fdiv
#define __floatsisf __aeabi_i2f
#define __floatunsisf __aeabi_ui2f
#define __fixsfsi __aeabi_f2iz
#define __unordsf2 __aeabi_fcmpun
#define __ashldi3 __aeabi_llsl
#define __ashrdi3 __aeabi_lasr
#define __lshrdi3 __aeabi_llsr
#define __muldi3 __aeabi_lmul
#define __udivsi3 __aeabi_uidiv
#define __divsi3 __aeabi_idiv
#endif

#endif
