/* SPDX-License-Identifier: MIT */
/* The texts beside the binary: PTX by a second run of nvcc, SASS by cuobjdump. */
#include "backend/cuda/cuda_nvcc.h"
#include "base/error.h"
#include "base/fs.h"
#include <deepjit/cuda.h>
#include <stdlib.h>

#define DUMP_LIMIT ((size_t)1 << 30)

static bool dump_wants_sass(const dj__cuda_run *run)
{
    return run->job->options->cuda->dump_sass == DJ_ON;
}

dj_status dj__cuda_dump_check(const dj__cuda_run *run, dj_error *err)
{
    /* dump_asm asks for what can be had. */
    if (!dump_wants_sass(run) || run->job->options->dump_asm == DJ_ON) {
        return DJ_OK;
    }
    char *tool = dj__cuda_toolkit_program(run->env, run->toolkit, "cuobjdump");
    if (tool == NULL) {
        const char *path = dj__env_raw(run->env, "PATH");
        return dj__fail(err, DJ_UNAVAILABLE,
                        "dump_sass needs cuobjdump, which is not in %s or PATH (%s); install it "
                        "(pip: nvidia-cuda-cuobjdump), or switch dump_sass off",
                        run->toolkit->bin, path != NULL ? path : "not set");
    }
    free(tool);
    return DJ_OK;
}

static dj_status dump_ptx(const dj__cuda_run *run, dj_error *err)
{
    char *data = NULL;
    size_t size = 0;
    dj__strbuf command;
    dj__strbuf_init(&command, DUMP_LIMIT);
    /* Its warnings are in the log already. */
    dj_status status = dj__cuda_nvcc(run, "--ptx", DJ__CUDA_PTX, &command, NULL, err);
    if (status != DJ_OK) {
        dj__strbuf_fini(&command);
        return status;
    }
    if (dj__read_at(run->workdir->fd, DJ__CUDA_PTX, DUMP_LIMIT, &data, &size) != 0 || size == 0) {
        status =
            dj__fail(err, DJ_COMPILE,
                     "NVCC did not produce a valid PTX: %s is %s, although it reported "
                     "success:\n%s",
                     DJ__CUDA_PTX, data == NULL ? "missing" : "empty", dj__strbuf_str(&command));
    } else {
        status = dj__cuda_keep(run, DJ__CUDA_PTX, data, size, err);
    }
    dj__strbuf_fini(&command);
    free(data);
    return status;
}

static dj_status dump_sass(const dj__cuda_run *run, const char *tool, dj_error *err)
{
    const char *const argv[] = {tool, "--dump-sass", DJ__CUDA_BINARY, NULL};
    dj__strbuf output;
    dj__strbuf_init(&output, DUMP_LIMIT);
    dj_status status = dj__cuda_tool(run, "cuobjdump", argv, DUMP_LIMIT / 2, &output, err);
    if (status == DJ_OK) {
        status = dj__strbuf_ok(&output, err);
    }
    if (status == DJ_OK && output.size == 0) {
        status =
            dj__fail(err, DJ_COMPILE,
                     "cuobjdump did not produce valid SASS: %s --dump-sass %s printed nothing, "
                     "although it reported success",
                     tool, DJ__CUDA_BINARY);
    }
    if (status == DJ_OK) {
        status = dj__cuda_keep(run, DJ__CUDA_SASS, output.data, output.size, err);
    }
    dj__strbuf_fini(&output);
    return status;
}

dj_status dj__cuda_dump(const dj__cuda_run *run, dj_error *err)
{
    dj_status status = DJ_OK;
    if (run->job->options->cuda->dump_ptx == DJ_ON) {
        status = dump_ptx(run, err);
    }
    if (status == DJ_OK && dump_wants_sass(run)) {
        char *tool = dj__cuda_toolkit_program(run->env, run->toolkit, "cuobjdump");
        if (tool != NULL) {
            status = dump_sass(run, tool, err);
        } else {
            dj__strbuf_printf(run->job->log,
                              "no %s: cuobjdump is not in %s or PATH (pip: "
                              "nvidia-cuda-cuobjdump)\n",
                              DJ__CUDA_SASS, run->toolkit->bin);
        }
        free(tool);
    }
    return status;
}
