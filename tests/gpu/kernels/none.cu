// SPDX-License-Identifier: MIT
__device__ int only_a_variable = 1;
