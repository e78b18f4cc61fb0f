/* SPDX-License-Identifier: MIT */
/* Between shim_kill.c and the programs it is preloaded into. */
#ifndef DJ_TEST_SHIM_KILL_H
#define DJ_TEST_SHIM_KILL_H

enum {
    SHIM_PERSISTENT = 1, /* every call from the N-th on fails */
    SHIM_LOST_REPLY = 2  /* a rename is carried out and then fails */
};

/* error 0: the N-th call kills the process. */
typedef void (*shim_arm_fn)(long nth, int error, int flags);
/* How many calls there were. */
typedef long (*shim_disarm_fn)(void);

/* What publish_child exits with. */
enum {
    CHILD_DONE = 0,
    CHILD_WRONG = 1,      /* said why on stderr */
    CHILD_NOT_REACHED = 3 /* done, and there were fewer than N calls */
};

#define CHILD_TAG "add"
#define CHILD_DIGEST "0123456789abcdef0123456789abcdef"
#define CHILD_BINARY "the binary that the child publishes"

#endif
