// SPDX-License-Identifier: MIT
// Runs for `ticks` of the clock, then writes.
extern "C" __global__ void slow(int *out, int value, long long ticks)
{
    const long long begin = clock64();
    while (clock64() - begin < ticks) {
    }
    out[0] = value;
}
