/* SPDX-License-Identifier: MIT */
/*
 * The text of deepjit/kernel.h, embedded at build time (cmake/embed.cmake), so that kernels
 * compile where no header of ours is installed: a program that embeds the static library carries
 * its own prelude, and two copies in one process each use theirs.
 */
#ifndef DJ_CORE_PRELUDE_H
#define DJ_CORE_PRELUDE_H

#include <stddef.h>

extern const char dj__prelude_text[];   /* the exact bytes, then a NUL */
extern const size_t dj__prelude_size;   /* without the NUL */
extern const char dj__prelude_digest[]; /* SHA-256 in hexadecimal: what the key takes */

#endif
