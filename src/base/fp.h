/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's floating-point control state (rounding, denormals). Loading a shared
 * object that was linked with -ffast-math runs a constructor that changes it, and threads of a
 * pool do not have the launching thread's. Not <fenv.h>: that would make us need libm.
 */
#ifndef DJ_BASE_FP_H
#define DJ_BASE_FP_H

#include <stdint.h>

static inline uint64_t dj__fp_get(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
#else
    return 0;
#endif
}

static inline void dj__fp_set(uint64_t state)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)state);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
#else
    (void)state;
#endif
}

#endif
