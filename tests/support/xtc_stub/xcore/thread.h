/* A STUB of lib_xcore's threads, for tests on an ordinary machine: threads of the operating system.
 */
#ifndef STUB_THREAD_H
#define STUB_THREAD_H

#include <stddef.h>

typedef int xthread_t;
typedef int threadgroup_t;
typedef void (*thread_function_t)(void *);

static inline void *stack_base(void *memory, size_t words) {
    return (char *)memory + 4 * words - 4;
}

xthread_t xthread_alloc_and_start(thread_function_t function, void *argument, void *stack);
threadgroup_t thread_group_alloc(void);
void thread_group_add(threadgroup_t group, thread_function_t function, void *argument, void *stack);
void thread_group_start(threadgroup_t group);
void thread_group_wait(threadgroup_t group);
void thread_group_free(threadgroup_t group);

#endif
