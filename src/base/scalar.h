/* SPDX-License-Identifier: MIT */
/*
 * Copies of neighbouring fields, one by one. Compilers join them into one wide load, and a
 * processor cannot take a wide load out of narrow stores that have not reached the cache yet: it
 * waits for them, and for all stores before them, such as a driver's to its device.
 */
#ifndef DJ_BASE_SCALAR_H
#define DJ_BASE_SCALAR_H

#include <stdint.h>

/* The value, through a register of its own. */
static inline uint32_t dj__scalar(uint32_t value)
{
    __asm__("" : "+r"(value));
    return value;
}

#endif
