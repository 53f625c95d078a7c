/* A trace build (-DNN_TRACE) hands every tensor to nn_trace as soon as it is computed. */
#ifndef NN_TRACE_H
#define NN_TRACE_H

#ifdef NN_TRACE
#include <stdint.h>

void nn_trace(uint32_t tensor, const void *data, uint32_t bytes);

#define NN_TRACE_TENSOR(tensor, data, bytes) nn_trace((tensor), (data), (bytes))
#else
#define NN_TRACE_TENSOR(tensor, data, bytes) ((void)0)
#endif

#endif
