/* SPDX-License-Identifier: MIT */
#include "consumer.h"

#include <stdio.h>

int main(void)
{
    printf("deepjit %s\n", consumer_library_version());
    return consumer_run();
}
