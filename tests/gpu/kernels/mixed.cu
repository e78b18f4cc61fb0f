// SPDX-License-Identifier: MIT
// Parameters of every width; each has its own part in the sum.
struct quad {
    int a, b, c, d;
};

extern "C" __global__ void mixed(int *out, const int *in, const void *nothing, signed char a,
                                 unsigned short b, int c, unsigned d, long long e,
                                 unsigned long long f, float g, double h, bool k, quad q,
                                 const quad r)
{
    int sum = in[0] + (nothing == nullptr ? 1 : 0);
    sum += a + b + c + (int)d + (int)e + (int)f;
    sum += (int)(2.0f * g) + (int)(4.0 * h) + (k ? 1 : 0);
    sum += q.a + 2 * q.b + 3 * q.c + 4 * q.d;
    sum += r.a + r.b + r.c + r.d;
    out[0] = sum;
}
