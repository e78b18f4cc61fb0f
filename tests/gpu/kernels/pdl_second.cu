// SPDX-License-Identifier: MIT
// May start before the kernel before it is done; must not read earlier.
extern "C" __global__ void pdl_second(int *out, const int *data)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = 2 * ((const volatile int *)data)[threadIdx.x];
}
