// SPDX-License-Identifier: MIT
// 101 parameters, each with its own weight.
extern "C" __global__ void many(int *out,
                                int a0, int a1, int a2, int a3, int a4, int a5, int a6, int a7, int
                                a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15,
                                int a16, int a17, int a18, int a19, int a20, int a21, int a22, int
                                a23, int a24, int a25, int a26, int a27, int a28, int a29, int a30,
                                int a31, int a32, int a33, int a34, int a35, int a36, int a37, int
                                a38, int a39, int a40, int a41, int a42, int a43, int a44, int a45,
                                int a46, int a47, int a48, int a49, int a50, int a51, int a52, int
                                a53, int a54, int a55, int a56, int a57, int a58, int a59, int a60,
                                int a61, int a62, int a63, int a64, int a65, int a66, int a67, int
                                a68, int a69, int a70, int a71, int a72, int a73, int a74, int a75,
                                int a76, int a77, int a78, int a79, int a80, int a81, int a82, int
                                a83, int a84, int a85, int a86, int a87, int a88, int a89, int a90,
                                int a91, int a92, int a93, int a94, int a95, int a96, int a97, int
                                a98, int a99)
{
    out[0] = 1 * a0 + 2 * a1 + 3 * a2 + 4 * a3 + 5 * a4 + 6 * a5 + 7 * a6 + 8 * a7 + 9 * a8 + 10 * a9
             + 11 * a10 + 12 * a11 + 13 * a12 + 14 * a13 + 15 * a14 + 16 * a15 + 17 * a16 + 18 * a17
             + 19 * a18 + 20 * a19 + 21 * a20 + 22 * a21 + 23 * a22 + 24 * a23 + 25 * a24 + 26 * a25
             + 27 * a26 + 28 * a27 + 29 * a28 + 30 * a29 + 31 * a30 + 32 * a31 + 33 * a32 + 34 * a33
             + 35 * a34 + 36 * a35 + 37 * a36 + 38 * a37 + 39 * a38 + 40 * a39 + 41 * a40 + 42 * a41
             + 43 * a42 + 44 * a43 + 45 * a44 + 46 * a45 + 47 * a46 + 48 * a47 + 49 * a48 + 50 * a49
             + 51 * a50 + 52 * a51 + 53 * a52 + 54 * a53 + 55 * a54 + 56 * a55 + 57 * a56 + 58 * a57
             + 59 * a58 + 60 * a59 + 61 * a60 + 62 * a61 + 63 * a62 + 64 * a63 + 65 * a64 + 66 * a65
             + 67 * a66 + 68 * a67 + 69 * a68 + 70 * a69 + 71 * a70 + 72 * a71 + 73 * a72 + 74 * a73
             + 75 * a74 + 76 * a75 + 77 * a76 + 78 * a77 + 79 * a78 + 80 * a79 + 81 * a80 + 82 * a81
             + 83 * a82 + 84 * a83 + 85 * a84 + 86 * a85 + 87 * a86 + 88 * a87 + 89 * a88 + 90 * a89
             + 91 * a90 + 92 * a91 + 93 * a92 + 94 * a93 + 95 * a94 + 96 * a95 + 97 * a96 + 98 * a97
             + 99 * a98 + 100 * a99;
}
