/* Functions that both host and device compile are static inline HOST_DEVICE. */
#pragma once

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif
