// SPDX-License-Identifier: MIT
// Writes where it is told.
extern "C" __global__ void fault(int *where)
{
    *where = 1;
}
