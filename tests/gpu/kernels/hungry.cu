// SPDX-License-Identifier: MIT
// Needs 256 MiB of device memory as soon as it is loaded.
__device__ unsigned char room[256u << 20];

extern "C" __global__ void hungry(int *out)
{
    room[threadIdx.x] = 1;
    out[0] = room[threadIdx.x];
}
