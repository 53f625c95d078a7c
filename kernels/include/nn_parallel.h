/* Fork and join: the hook by which a kernel's call is shared by several threads.
 *
 * NN_THREADS (default 1) is how many share a call at most; buildtool defines it as the target says.
 * Whoever brings a function nn_parallel of his own replaces the one of kernels/runtime.
 */
#ifndef NN_PARALLEL_H
#define NN_PARALLEL_H

#include <stdint.h>

#ifndef NN_THREADS
#define NN_THREADS 1
#endif

/* Computes piece number `piece` of what `context` describes. */
typedef void nn_job(const void *context, int32_t piece);

/* Has `job` called once for each piece from 0 to pieces - 1 (NN_THREADS pieces at most), in any
 * order and by any threads, and returns when all of them have returned. What was written before is
 * seen by the pieces, and what they write is seen afterwards. No piece waits for another one. */
void nn_parallel(nn_job *job, const void *context, int32_t pieces);

#endif
