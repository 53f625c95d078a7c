/* Guard words before and after an arena: what overruns into the arena, or out of it, changes them.
 * `bytes` are those of the memory with both guards, `each` those of a guard: a multiple of 4.
 */
#ifndef NN_GUARD_H
#define NN_GUARD_H

#include <stddef.h>
#include <stdint.h>

#define NN_GUARD_WORD 0xA5C33C5AU /* differs for each place, so that no fill is one */

/* Writes both guards, and returns the arena between them. */
static inline int8_t *nn_guard_set(void *memory, size_t bytes, size_t each) {
    uint32_t *const below = (uint32_t *)memory;
    uint32_t *const above = (uint32_t *)(void *)((int8_t *)memory + bytes - each);
    for (size_t i = 0; i < each / 4U; i++) {
        below[i] = NN_GUARD_WORD ^ (uint32_t)i;
        above[i] = NN_GUARD_WORD ^ (uint32_t)(i + each);
    }
    return (int8_t *)memory + each;
}

/* Whether both guards are as nn_guard_set wrote them; `arena` is what it returned. */
static inline int nn_guard_holds(const int8_t *arena, size_t bytes, size_t each) {
    const volatile uint32_t *const below = (const uint32_t *)(const void *)(arena - each);
    const volatile uint32_t *const above =
        (const uint32_t *)(const void *)(arena + bytes - 2U * each);
    uint32_t difference = 0;
    for (size_t i = 0; i < each / 4U; i++) {
        difference |= below[i] ^ NN_GUARD_WORD ^ (uint32_t)i;
        difference |= above[i] ^ NN_GUARD_WORD ^ (uint32_t)(i + each);
    }
    return difference == 0U;
}

#endif
