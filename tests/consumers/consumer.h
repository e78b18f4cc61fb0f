/* SPDX-License-Identifier: MIT */
/* The consumer's own interface, also when it is a shared object that embeds the library. */
#ifndef CONSUMER_H
#define CONSUMER_H

__attribute__((visibility("default"))) int consumer_run(void); /* 0: all is well */
__attribute__((visibility("default"))) const char *consumer_library_version(void);

#endif
