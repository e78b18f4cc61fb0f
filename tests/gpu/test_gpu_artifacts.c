/* SPDX-License-Identifier: MIT */
/* What the toolkit's own tools see in an entry: line numbers, dumps. */
#include "gpu_test.h"
#include <unistd.h>

/* The toolkit's program of this name, as a shell would find it; false if there is none. */
static bool find_tool(const char *name, char *out, size_t size)
{
    const char *const home = getenv("CUDA_HOME");
    snprintf(out, size, "%s/bin/%s", home != NULL && home[0] != '\0' ? home : "/usr/local/cuda",
             name);
    return access(out, X_OK) == 0;
}

static dj_artifact *build(const char *file, const dj_compile_options *options)
{
    char *const source = gpu_source(file);
    dj_artifact *artifact = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_build(gpu_runtime(), "artifact", source, strlen(source), options, &artifact, &err));
    free(source);
    return artifact;
}

/* True if a line of the command's output holds both texts. */
static bool output_has(const char *command, const char *one, const char *other)
{
    FILE *const pipe = popen(command, "r");
    CHECK(pipe != NULL);
    static char line[65536];
    bool found = false;
    while (fgets(line, sizeof(line), pipe) != NULL) {
        found = found || (strstr(line, one) != NULL && strstr(line, other) != NULL);
    }
    pclose(pipe);
    return found;
}

/* Profilers find the source: the cubin names a file that exists and holds it. */
static void line_information(void)
{
    char tool[4096];
    if (!find_tool("nvdisasm", tool, sizeof(tool))) {
        gpu_skip("there is no nvdisasm");
    }
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    cuda.with_line_info = DJ_ON;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    dj_artifact *const artifact = build("scale.cu", &options);
    char command[16384];
    snprintf(command, sizeof(command), "'%s' --print-line-info '%s'", tool,
             dj_artifact_binary(artifact));
    char sources[128];
    snprintf(sources, sizeof(sources), "%s/cache/src/", gpu_directory());
    CHECK(output_has(command, sources, "kernel.cu\", line "));
    dj_artifact_release(artifact);
    dj_artifact *const plain = build("scale.cu", NULL);
    snprintf(command, sizeof(command), "'%s' --print-line-info '%s'", tool,
             dj_artifact_binary(plain));
    CHECK(!output_has(command, "kernel.cu", "line"));
    dj_artifact_release(plain);
}

static long size_of(const dj_artifact *artifact, const char *name)
{
    char path[4400];
    snprintf(path, sizeof(path), "%s/%s", dj_artifact_path(artifact), name);
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return -1;
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    fclose(file);
    return size;
}

static void dumps(void)
{
    char tool[4096];
    const bool has_sass = find_tool("cuobjdump", tool, sizeof(tool));
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    cuda.dump_ptx = DJ_ON;
    cuda.dump_sass = has_sass ? DJ_ON : DJ_OFF;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    dj_artifact *const artifact = build("index.cu", &options);
    CHECK(size_of(artifact, "kernel.cu") > 0);
    CHECK(size_of(artifact, "kernel.cubin") > 0);
    CHECK(size_of(artifact, "kernel.ptx") > 0);
    CHECK(!has_sass || size_of(artifact, "kernel.sass") > 0);
    char command[8192];
    snprintf(command, sizeof(command), "cat '%s/kernel.ptx'", dj_artifact_path(artifact));
    CHECK(output_has(command, ".entry", "index_of"));
    if (has_sass) {
        snprintf(command, sizeof(command), "cat '%s/kernel.sass'", dj_artifact_path(artifact));
        CHECK(output_has(command, "index_of", ""));
        CHECK(output_has(command, "EXIT", ""));
    }
    dj_artifact_release(artifact);
    dj_artifact *const plain = build("cluster.cu", NULL);
    CHECK_INT(size_of(plain, "kernel.ptx"), -1);
    CHECK_INT(size_of(plain, "kernel.sass"), -1);
    dj_artifact_release(plain);
}

static void on_text(void *user, const char *text, size_t size)
{
    char *const buffer = user;
    const size_t used = strlen(buffer);
    const size_t room = 8191 - used;
    memcpy(buffer + used, text, size < room ? size : room);
}

static void on_inspect(void *user, const dj_binary_info *info)
{
    dj_binary_info *const out = user;
    *out = *info;
    out->kernels = NULL;
    CHECK_INT(info->num_kernels, 1);
    CHECK(strcmp(info->kernels[0].name, "mixed") == 0);
    CHECK_INT(info->kernels[0].num_params, 14);
}

/* The binary as our reader sees it and as the driver does. */
static void reader_and_driver_agree(void)
{
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    cuda.ptxas_verbose = DJ_ON;
    char log[8192] = {0};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    options.on_log = on_text;
    options.on_log_user = log;
    dj_artifact *const artifact = build("mixed.cu", &options);
    CHECK(strstr(log, "registers") != NULL);
    FILE *const file = fopen(dj_artifact_binary(artifact), "rb");
    CHECK(file != NULL);
    static char bytes[1 << 20];
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    dj_binary_info info = {0};
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_inspect(dj_backend_find("cuda"), bytes, size, on_inspect, &info, &err));
    CHECK(strcmp(info.arch, gpu_device()->arch) == 0 ||
          strcmp(info.arch, gpu_device()->arch_number) == 0);
    dj_kernel *const kernel = gpu_compile("mixed.cu", &options);
    CHECK_INT(dj_kernel_num_params(kernel), 14);
    static const size_t sizes[14] = {8, 8, 8, 1, 2, 4, 4, 8, 8, 4, 8, 1, 16, 16};
    for (size_t i = 0; i < 14; i++) {
        size_t got = 0;
        CHECK_OK(dj_kernel_param(kernel, i, &got, NULL, NULL, NULL, &err));
        CHECK_INT(got, sizes[i]);
    }
    dj_kernel_release(kernel);
    dj_artifact_release(artifact);
}

static const gpu_case cases[] = {
    {"line_information", line_information, 0},
    {"dumps", dumps, 0},
    {"reader_and_driver_agree", reader_and_driver_agree, 0},
};
GPU_MAIN(cases)
