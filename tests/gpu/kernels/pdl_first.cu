// SPDX-License-Identifier: MIT
// Lets its dependent start early, then takes its time and writes.
extern "C" __global__ void pdl_first(int *data, int value, long long ticks)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const long long begin = clock64();
    while (clock64() - begin < ticks) {
    }
    data[threadIdx.x] = value + (int)threadIdx.x;
}
