// SPDX-License-Identifier: MIT
// 1 KiB by value, 18 tensor maps, a small structure and a null pointer: the hash of all bytes, in
// the order of the parameters.
struct big {
    unsigned char bytes[1024];
};
struct alignas(64) map {
    unsigned char bytes[128];
};
struct tail {
    unsigned char bytes[12];
};

template <class T> static __device__ unsigned fnv(unsigned hash, const T &value)
{
    for (unsigned char byte : value.bytes) {
        hash = (hash ^ byte) * 16777619u;
    }
    return hash;
}

#define MAP(i) const __grid_constant__ map m##i
extern "C" __global__ void large(const __grid_constant__ big first, MAP(0), MAP(1), MAP(2), MAP(3),
                                 MAP(4), MAP(5), MAP(6), MAP(7), MAP(8), MAP(9), MAP(10), MAP(11),
                                 MAP(12), MAP(13), MAP(14), MAP(15), MAP(16), MAP(17),
                                 const __grid_constant__ tail last, const void *nothing,
                                 unsigned *out)
{
    const map *maps[] = {&m0, &m1,  &m2,  &m3,  &m4,  &m5,  &m6,  &m7,  &m8,
                         &m9, &m10, &m11, &m12, &m13, &m14, &m15, &m16, &m17};
    unsigned hash = fnv(0x1234567u, first);
    for (const map *m : maps) {
        hash = fnv(hash, *m);
    }
    out[0] = fnv(hash, last);
    out[1] = nothing == nullptr;
}
