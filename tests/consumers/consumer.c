/* SPDX-License-Identifier: MIT */
/* What a user of the library does, as small as it can be: compile, launch, check, release. */
#include "consumer.h"

#include <deepjit/deepjit.h>
#include <stdio.h>
#include <string.h>

static const char source[] = "#include <deepjit/kernel.h>\n"
                             "DJ_KERNEL(scale, (int *, out), (const int *, in), (int, factor))\n"
                             "{\n"
                             "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
                             "    out[i] = factor * in[i];\n"
                             "}\n";

static int launch_and_check(dj_kernel *kernel, dj_error *err)
{
    int in[64];
    int out[64] = {0};
    for (int i = 0; i < 64; i++) {
        in[i] = i;
    }
    const int *from = in;
    int *to = out;
    const int factor = 3;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = 4;
    options.block.x = 16;
    if (dj_launch(kernel, &options, DJ_ARGS(to, from, factor), err) != DJ_OK) {
        return 1;
    }
    for (int i = 0; i < 64; i++) {
        if (out[i] != 3 * i) {
            fprintf(stderr, "consumer: out[%d] is %d\n", i, out[i]);
            return 1;
        }
    }
    return 0;
}

int consumer_run(void)
{
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    int failed = 1;
    if (dj_runtime_create(dj_backend_find("host"), NULL, &runtime, &err) == DJ_OK &&
        dj_compile(runtime, "consumer", source, strlen(source), NULL, &kernel, &err) == DJ_OK) {
        failed = launch_and_check(kernel, &err);
    }
    if (err.status != DJ_OK) {
        fprintf(stderr, "consumer: %s\n", err.message);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return failed;
}

const char *consumer_library_version(void)
{
    return dj_version();
}
