// SPDX-License-Identifier: MIT
// -DINDEX_BITS=32 or 64 decides the second parameter's type.
#if INDEX_BITS == 64
using index_type = long long;
#else
using index_type = int;
#endif

extern "C" __global__ void index_bits(long long *out, index_type index)
{
    out[0] = index + 1000 * (long long)sizeof(index_type);
}
