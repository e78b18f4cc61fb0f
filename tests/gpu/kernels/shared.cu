// SPDX-License-Identifier: MIT
// Uses all of `bytes` of dynamic shared memory: every thread writes its part, the first one adds
// up what the others wrote.
extern __shared__ unsigned char memory[];

extern "C" __global__ void shared_sum(unsigned *out, int bytes)
{
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        memory[i] = (unsigned char)(i % 251);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (int i = 0; i < bytes; i++) {
            sum += memory[i];
        }
        out[blockIdx.x] = sum;
    }
}
