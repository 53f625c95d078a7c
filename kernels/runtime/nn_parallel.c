/* Fork and join as the machine has it; see nn_parallel.h.
 *
 * NN_PARALLEL says which of them is meant: NN_PARALLEL_ONE_THREAD computes the pieces one after the
 * other, NN_PARALLEL_PTHREADS has a few POSIX threads that wait for work, NN_PARALLEL_XCORE takes
 * hardware threads of an xcore tile by lib_xcore. Without it the compiler's own macros decide. A
 * function of the same name in the application, or in a file before this one, is taken instead.
 */
#define NN_PARALLEL_ONE_THREAD 0
#define NN_PARALLEL_PTHREADS 1
#define NN_PARALLEL_XCORE 2

#ifndef NN_PARALLEL
#if defined(__xcore__)
#define NN_PARALLEL NN_PARALLEL_XCORE
#elif defined(__linux__) || defined(__APPLE__)
#define NN_PARALLEL NN_PARALLEL_PTHREADS
#else
#define NN_PARALLEL NN_PARALLEL_ONE_THREAD
#endif
#endif

#include "nn_parallel.h"

#if NN_PARALLEL == NN_PARALLEL_PTHREADS

#include <pthread.h>

#define WORKERS (NN_THREADS > 1 ? NN_THREADS - 1 : 1)

/* What is being computed. Pieces are taken by whoever is free, the caller included. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    nn_job *job;
    const void *context;
    int32_t pieces, taken, done; /* of the job: none is left where `taken` has reached `pieces` */
    int32_t workers;             /* that were started; they live as long as the process */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER,
          .ended = PTHREAD_COND_INITIALIZER};

/* Held while a job runs: another caller computes its own pieces itself. */
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;

/* Computes pieces until none is left; the lock is held before and after. */
static void take_pieces(void) {
    while (pool.taken < pool.pieces) {
        const int32_t piece = pool.taken++;
        nn_job *const job = pool.job;
        const void *const context = pool.context;
        pthread_mutex_unlock(&pool.lock);
        job(context, piece);
        pthread_mutex_lock(&pool.lock);
        if (++pool.done == pool.pieces) {
            pthread_cond_signal(&pool.ended);
        }
    }
}

static void *work(void *unused) {
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        take_pieces();
        pthread_cond_wait(&pool.begun, &pool.lock);
    }
    return unused;
}

/* Starts the workers that are missing; with none the caller computes all. */
static void start_workers(void) {
    pthread_attr_t detached;
    if (pool.workers >= WORKERS || pthread_attr_init(&detached) != 0) {
        return;
    }
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (pool.workers < WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, work, NULL) != 0) {
            break;
        }
        pool.workers++;
    }
    pthread_attr_destroy(&detached);
}

__attribute__((weak)) void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    if (pieces <= 1 || pthread_mutex_trylock(&busy) != 0) {
        for (int32_t piece = 0; piece < pieces; piece++) {
            job(context, piece);
        }
        return;
    }
    pthread_mutex_lock(&pool.lock);
    start_workers();
    pool.job = job;
    pool.context = context;
    pool.taken = pool.done = 0;
    pool.pieces = pieces;
    pthread_cond_broadcast(&pool.begun);
    take_pieces();
    while (pool.done < pool.pieces) {
        pthread_cond_wait(&pool.ended, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&busy);
}

#elif NN_PARALLEL == NN_PARALLEL_XCORE

/* Written after lib_xcore's documentation of thread groups, and neither compiled nor run. The
 * calling thread computes the first piece. Stacks are static, of NN_PARALLEL_STACK words a thread:
 * one network is invoked at a time on a tile. */
#include <xcore/thread.h>

#ifndef NN_PARALLEL_STACK
#define NN_PARALLEL_STACK 640
#endif

#define WORKERS (NN_THREADS > 1 ? NN_THREADS - 1 : 1)

typedef struct {
    nn_job *job;
    const void *context;
    int32_t piece;
} nn_xcore_piece;

static uint64_t stacks[WORKERS][NN_PARALLEL_STACK / 2];

static void run_piece(void *argument) {
    const nn_xcore_piece *own = (const nn_xcore_piece *)argument;
    own->job(own->context, own->piece);
}

__attribute__((weak)) void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    nn_xcore_piece others[WORKERS];
    const threadgroup_t group = thread_group_alloc();
    for (int32_t n = 0; n + 1 < pieces; n++) {
        const nn_xcore_piece other = {job, context, n + 1};
        others[n] = other;
        thread_group_add(group, run_piece, &others[n], stack_base(stacks[n], NN_PARALLEL_STACK));
    }
    thread_group_start(group);
    job(context, 0);
    thread_group_wait(group);
    thread_group_free(group);
}

#else

__attribute__((weak)) void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    for (int32_t piece = 0; piece < pieces; piece++) {
        job(context, piece);
    }
}

#endif
