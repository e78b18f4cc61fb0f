/* SPDX-License-Identifier: MIT */
/*
 * A program that answers like nvcc, in milliseconds: for tests of what happens around a compiler,
 * and for machines without one. It writes a cubin with the __global__ functions and DJ_KERNELs
 * that it finds in the source, which hold no code.
 *
 * It understands what src/backend/cuda passes: --version, --cubin or --ptx with --output-file and
 * --gpu-architecture=sm_<arch>, and the source as the last argument. Of the source: comments,
 * strings, `#error text`, extern "C", __launch_bounds__(n), scalars and pointers as parameters;
 * not the preprocessor and no templates.
 *
 * Environment (name these in DJ_JIT_COMPILER_ENV):
 *   STANDIN_NVCC_VERSION  "13.1"; or none, hang, die, flood
 *   STANDIN_NVCC_FAULT    a list, separated by commas, of
 *       missing empty partial ptx other   no cubin; one of no bytes; half of one; PTX, another
 *                                         machine's ELF in its place
 *       kernels=N arch=NN                 so many kernels; another architecture
 *       relocatable                       as -rdc=true
 *       noptx emptyptx                    nothing for --ptx; a file of no bytes
 *       exit=N signal hang flood          ends so, after it wrote half; never ends; much output
 *       spills local                      says so as ptxas does, if it was asked to
 *       talk                              says so as a source's own warnings do
 *   STANDIN_NVCC_LOG      a file to which each run appends its arguments as one line
 */
#include "cubin_builder.h"
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { NVCC_MAX_KERNELS = 64, NVCC_MAX_PARAMS = 64, NVCC_MAX_NAME = 1024 };

typedef struct nvcc_kernel {
    char name[2 * NVCC_MAX_NAME + 32];
    cubin_param params[NVCC_MAX_PARAMS];
    size_t num_params;
    uint32_t max_threads;
} nvcc_kernel;

typedef struct nvcc_state {
    const char *output;
    const char *source;
    char arch[16];
    bool ptx;
    bool warn_spills;
    bool warn_local;
    nvcc_kernel *kernels;
    size_t num_kernels;
} nvcc_state;

/* ---- what it is told ---- */

/* The value of `word` or `word=value` in STANDIN_NVCC_FAULT; NULL if it is not there. */
static const char *nvcc_fault(const char *word)
{
    const char *list = getenv("STANDIN_NVCC_FAULT");
    const size_t size = strlen(word);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ",");
        if (length >= size && strncmp(at, word, size) == 0 && (length == size || at[size] == '=')) {
            return length == size ? "" : at + size + 1;
        }
        at += length + (at[length] == ',');
    }
    return NULL;
}

static void nvcc_record(int argc, char **argv)
{
    const char *path = getenv("STANDIN_NVCC_LOG");
    const int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0) {
        return;
    }
    cubin_bytes line = {0};
    for (int i = 1; i < argc; i++) {
        cubin_put(&line, argv[i], strlen(argv[i]));
        cubin_put(&line, i + 1 < argc ? " " : "\n", 1);
    }
    (void)!write(fd, line.data, line.size);
    (void)close(fd);
    free(line.data);
}

static void nvcc_hang(void)
{
    for (;;) {
        (void)pause();
    }
}

static void nvcc_flood(void)
{
    for (int i = 0; i < 100000; i++) {
        puts("kernel.cu(1): warning #177-D: variable \"x\" was declared but never referenced");
    }
}

static int nvcc_version(void)
{
    const char *version = getenv("STANDIN_NVCC_VERSION");
    version = version != NULL ? version : "13.0";
    if (strcmp(version, "hang") == 0) {
        nvcc_hang();
    }
    if (strcmp(version, "die") == 0) {
        (void)raise(SIGKILL);
    }
    if (strcmp(version, "flood") == 0) {
        nvcc_flood();
        version = "13.0";
    }
    puts("nvcc: stand-in for the Cuda compiler driver");
    if (strcmp(version, "none") != 0) {
        printf("Cuda compilation tools, release %s, V%s.1\n", version, version);
    }
    return 0;
}

/* ---- the source ---- */

/* Blanks out comments, strings but "C", and preprocessor lines. False after an #error. */
static bool nvcc_strip(char *text, const char *name)
{
    int line = 1;
    bool fresh = true; /* only blanks so far in this line */
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '\n') {
            line++;
            fresh = true;
        } else if (at[0] == '/' && at[1] == '/') {
            for (; at[1] != '\0' && at[1] != '\n'; at++) {
                *at = ' ';
            }
            *at = ' ';
        } else if (at[0] == '/' && at[1] == '*') {
            for (; *at != '\0' && !(at[0] == '*' && at[1] == '/'); at++) {
                line += *at == '\n';
                *at = *at == '\n' ? '\n' : ' ';
            }
            if (*at == '\0') {
                return true;
            }
            at[0] = at[1] = ' ';
        } else if (*at == '"' && strncmp(at, "\"C\"", 3) == 0) {
            at += 2;
        } else if (*at == '"') {
            for (*at++ = ' '; *at != '\0' && *at != '"' && *at != '\n'; at++) {
                if (*at == '\\' && at[1] != '\0') {
                    *at++ = ' ';
                }
                *at = ' ';
            }
            *at = *at == '"' ? ' ' : *at;
        } else if (*at == '#' && fresh) {
            char *word = at + 1 + strspn(at + 1, " \t");
            const size_t rest = strcspn(word, "\n");
            if (strncmp(word, "error", 5) == 0) {
                printf("%s(%d): error: #error directive: %.*s\n\n", name, line, (int)rest - 5,
                       word + 5);
                printf("1 error detected in the compilation of \"%s\".\n", name);
                return false;
            }
            memset(at, ' ', (size_t)(word - at) + rest);
        } else if (!isspace((unsigned char)*at)) {
            fresh = false;
        }
    }
    return true;
}

static bool nvcc_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* `word` at `at`, and not as a part of another one. */
static bool nvcc_at_word(const char *text, const char *at, const char *word)
{
    const size_t size = strlen(word);
    return strncmp(at, word, size) == 0 && !nvcc_is_word(at[size]) &&
           (at == text || !nvcc_is_word(at[-1]));
}

static bool nvcc_has_word(const char *text, size_t size, const char *word)
{
    for (size_t i = 0; i + strlen(word) <= size; i++) {
        if (nvcc_at_word(text, text + i, word)) {
            return true;
        }
    }
    return false;
}

/* Size of a scalar and its letter in mangled names. */
static uint32_t nvcc_scalar(const char *type, size_t size, char *letter)
{
    const bool is_unsigned = nvcc_has_word(type, size, "unsigned") ||
                             memmem(type, size, "uint", 4) != NULL ||
                             nvcc_has_word(type, size, "size_t");
    static const struct {
        const char *word;
        uint32_t size;
        char plain;
        char other;
    } types[] = {
        {"bool", 1, 'b', 'b'},     {"char", 1, 'c', 'h'},     {"int8_t", 1, 'a', 'h'},
        {"uint8_t", 1, 'a', 'h'},  {"short", 2, 's', 't'},    {"int16_t", 2, 's', 't'},
        {"uint16_t", 2, 's', 't'}, {"double", 8, 'd', 'd'},   {"float", 4, 'f', 'f'},
        {"int64_t", 8, 'l', 'm'},  {"uint64_t", 8, 'l', 'm'}, {"size_t", 8, 'm', 'm'},
        {"long", 8, 'l', 'm'},     {"int32_t", 4, 'i', 'j'},  {"uint32_t", 4, 'i', 'j'},
        {"int", 4, 'i', 'j'},      {"unsigned", 4, 'i', 'j'}, {"void", 0, 'v', 'v'},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (nvcc_has_word(type, size, types[i].word)) {
            *letter = is_unsigned ? types[i].other : types[i].plain;
            return types[i].size;
        }
    }
    *letter = '?';
    return 8;
}

/* Appends one parameter, and what it adds to a mangled name. */
static void nvcc_add_param(nvcc_kernel *kernel, const char *text, size_t size, char *mangled)
{
    char letter = '?';
    char piece[32] = "";
    const char *star = memchr(text, '*', size);
    uint32_t bytes = nvcc_scalar(text, size, &letter);
    if (star != NULL) {
        bytes = 8;
        const bool constant = nvcc_has_word(text, (size_t)(star - text), "const");
        (void)snprintf(piece, sizeof piece, constant ? "PK%c" : "P%c", letter);
    } else if (letter == '?') {
        (void)snprintf(piece, sizeof piece, "1T");
    } else {
        (void)snprintf(piece, sizeof piece, "%c", letter);
    }
    if (bytes == 0 || kernel->num_params == NVCC_MAX_PARAMS) {
        return;
    }
    kernel->params[kernel->num_params++] = (cubin_param){bytes, bytes};
    const size_t used = strlen(mangled);
    (void)snprintf(mangled + used, NVCC_MAX_NAME - used, "%s", piece);
}

/* The closing bracket that belongs to the opening one at `at`. */
static const char *nvcc_closing(const char *at)
{
    int depth = 0;
    for (; *at != '\0'; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        if (depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* Cuts `text` at the commas outside of brackets. `grouped`: each one is (type, name). */
static void nvcc_add_params(nvcc_kernel *kernel, const char *text, const char *end, bool grouped,
                            char *mangled)
{
    int depth = 0;
    const char *start = text;
    for (const char *at = text; at <= end; at++) {
        if (at < end && (*at != ',' || depth > 0)) {
            depth += *at == '(';
            depth -= *at == ')';
            continue;
        }
        start += strspn(start, " \t\n");
        if (grouped && start < at && *start == '(') {
            start++;
            nvcc_add_param(kernel, start, strcspn(start, ","), mangled);
        } else if (!grouped && start < at) {
            nvcc_add_param(kernel, start, (size_t)(at - start), mangled);
        }
        start = at + 1;
    }
}

/* A function's name before the bracket at `open`. */
static size_t nvcc_name_before(const char *text, const char *open, const char **name)
{
    const char *end = open;
    while (end > text && isspace((unsigned char)end[-1])) {
        end--;
    }
    *name = end;
    while (*name > text && nvcc_is_word((*name)[-1])) {
        (*name)--;
    }
    return (size_t)(end - *name);
}

/* After __global__: attributes, void, name, parameters. */
static const char *nvcc_parse_global(nvcc_state *state, const char *text, const char *at,
                                     bool plain_name)
{
    nvcc_kernel *kernel = &state->kernels[state->num_kernels];
    for (const char *open = strchr(at, '('); open != NULL; open = strchr(at, '(')) {
        const char *name = NULL;
        const size_t size = nvcc_name_before(text, open, &name);
        const char *close = nvcc_closing(open);
        if (close == NULL) {
            return NULL;
        }
        if (size > 2 && strncmp(name, "__", 2) == 0) {
            if (strncmp(name, "__launch_bounds__", size) == 0) {
                kernel->max_threads = (uint32_t)strtoul(open + 1, NULL, 10);
            }
            at = close + 1;
            continue;
        }
        char mangled[NVCC_MAX_NAME] = "";
        nvcc_add_params(kernel, open + 1, close, false, mangled);
        const char *after = close + 1 + strspn(close + 1, " \t\n");
        if (*after == '{') {
            if (plain_name) {
                (void)snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)size, name);
            } else {
                (void)snprintf(kernel->name, sizeof kernel->name, "_Z%zu%.*s%s", size, (int)size,
                               name, mangled[0] != '\0' ? mangled : "v");
            }
            state->num_kernels++;
        }
        return close + 1;
    }
    return NULL;
}

/* DJ_KERNEL(name, (type, name), ...). */
static const char *nvcc_parse_macro(nvcc_state *state, const char *at)
{
    nvcc_kernel *kernel = &state->kernels[state->num_kernels];
    char ignored[NVCC_MAX_NAME] = "";
    const char *open = strchr(at, '(');
    const char *close = open != NULL ? nvcc_closing(open) : NULL;
    if (close == NULL) {
        return NULL;
    }
    const char *name = open + 1 + strspn(open + 1, " \t\n");
    size_t size = 0;
    while (nvcc_is_word(name[size])) {
        size++;
    }
    (void)snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)size, name);
    const char *rest = name + size + strspn(name + size, " \t\n");
    if (*rest == ',') {
        nvcc_add_params(kernel, rest + 1, close, true, ignored);
    }
    state->num_kernels++;
    return close + 1;
}

static void nvcc_parse(nvcc_state *state, const char *text)
{
    for (const char *at = text;
         at != NULL && *at != '\0' && state->num_kernels < NVCC_MAX_KERNELS;) {
        memset(&state->kernels[state->num_kernels], 0, sizeof state->kernels[0]);
        if (nvcc_at_word(text, at, "__global__")) {
            /* extern "C" may stand before it, as far as the last statement's end. */
            const char *start = at;
            while (start > text && strchr(";}", start[-1]) == NULL) {
                start--;
            }
            const bool plain = memmem(start, (size_t)(at - start), "\"C\"", 3) != NULL;
            at = nvcc_parse_global(state, text, at, plain);
        } else if (nvcc_at_word(text, at, "DJ_KERNEL") ||
                   nvcc_at_word(text, at, "DJ_BLOCK_KERNEL")) {
            at = nvcc_parse_macro(state, at);
        } else {
            at++;
        }
    }
}

static char *nvcc_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    cubin_bytes text = {0};
    char chunk[4096];
    size_t got = 0;
    if (file == NULL) {
        return NULL;
    }
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        cubin_put(&text, chunk, got);
    }
    (void)fclose(file);
    for (size_t i = 0; i < text.size; i++) {
        text.data[i] = text.data[i] == 0 ? ' ' : text.data[i];
    }
    cubin_put(&text, "", 1);
    return (char *)text.data;
}

/* ---- results ---- */

static int nvcc_write(const char *path, const void *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const bool written = fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size);
    if (fd < 0 || close(fd) != 0 || !written) {
        fprintf(stderr, "nvcc fatal   : cannot write %s\n", path);
        return 1;
    }
    return 0;
}

static void *nvcc_make_ptx(const nvcc_state *state, size_t *size)
{
    cubin_bytes text = {0};
    char line[sizeof state->kernels[0].name + 64];
    (void)snprintf(line, sizeof line, ".version 9.0\n.target sm_%s\n.address_size 64\n",
                   state->arch);
    cubin_put(&text, line, strlen(line));
    for (size_t i = 0; i < state->num_kernels; i++) {
        (void)snprintf(line, sizeof line, ".visible .entry %s()\n{\n    ret;\n}\n",
                       state->kernels[i].name);
        cubin_put(&text, line, strlen(line));
    }
    *size = text.size;
    return text.data;
}

static void *nvcc_make_cubin(const nvcc_state *state, size_t *size)
{
    cubin_kernel kernels[NVCC_MAX_KERNELS];
    const char *count = nvcc_fault("kernels");
    const char *other = nvcc_fault("arch");
    const char *arch = other != NULL ? other : state->arch;
    const size_t digits = strspn(arch, "0123456789");
    static const char extra[4][12] = {"extra0", "extra1", "extra2", "extra3"};
    cubin_spec spec = {
        .sm = atoi(arch),
        .suffix = other == NULL && arch[digits] != '\0' ? arch[digits] : (char)0,
        .relocatable = nvcc_fault("relocatable") != NULL,
        .kernels = kernels,
        .num_kernels = state->num_kernels,
    };
    for (size_t i = 0; i < state->num_kernels; i++) {
        const nvcc_kernel *from = &state->kernels[i];
        kernels[i] = (cubin_kernel){
            .name = from->name,
            .params = from->params,
            .num_params = from->num_params,
            .registers = 16,
            .local = nvcc_fault("local") != NULL || nvcc_fault("spills") != NULL ? 64 : 0,
            .max_threads = from->max_threads,
        };
    }
    if (count != NULL) {
        const size_t wanted = strtoul(count, NULL, 10);
        for (size_t i = state->num_kernels; i < wanted && i < 4; i++) {
            kernels[i] = (cubin_kernel){.name = extra[i], .registers = 16};
        }
        spec.num_kernels = wanted < 4 ? wanted : 4;
    }
    return cubin_build(&spec, size);
}

static void nvcc_report(const nvcc_state *state)
{
    const char *name = state->num_kernels > 0 ? state->kernels[0].name : "none";
    if (nvcc_fault("talk") != NULL) {
        puts("kernel.cu:1:2: warning: #warning ptxas: registers spilled to local memory");
        puts("kernel.cu:2:2: warning: #warning ptxas: local memory used");
    }
    if (nvcc_fault("local") != NULL && state->warn_local) {
        printf("ptxas warning : Local   memory used for function '%s', size of stack frame: 64 "
               "bytes\n",
               name);
    }
    if (nvcc_fault("spills") != NULL && state->warn_spills) {
        printf("ptxas warning : Registers are SPILLED to local \t memory in function '%s', 8 bytes "
               "spill stores, 8 bytes spill loads\n",
               name);
    }
}

static int nvcc_emit(const nvcc_state *state)
{
    static const char elf[64] = "\177ELF\2\1\1";
    size_t size = 0;
    const bool as_ptx = state->ptx || nvcc_fault("ptx") != NULL;
    void *data = as_ptx ? nvcc_make_ptx(state, &size) : nvcc_make_cubin(state, &size);
    const char *code = nvcc_fault("exit");
    const bool ends = code != NULL || nvcc_fault("signal") != NULL || nvcc_fault("hang") != NULL;
    int result = 0;
    if (nvcc_fault(state->ptx ? "emptyptx" : "empty") != NULL) {
        size = 0;
    } else if (nvcc_fault("partial") != NULL || ends) {
        size /= 2;
    }
    if (nvcc_fault(state->ptx ? "noptx" : "missing") == NULL) {
        const bool other = !state->ptx && nvcc_fault("other") != NULL;
        result = nvcc_write(state->output, other ? elf : data, other ? sizeof elf : size);
    }
    free(data);
    if (nvcc_fault("hang") != NULL) {
        nvcc_hang();
    }
    if (nvcc_fault("signal") != NULL) {
        (void)raise(SIGKILL);
    }
    if (code != NULL) {
        fputs("nvcc fatal   : told to fail\n", stderr);
        return atoi(code);
    }
    return result;
}

static int nvcc_compile(nvcc_state *state)
{
    char *text = nvcc_read(state->source);
    if (text == NULL) {
        fprintf(stderr, "nvcc fatal   : Could not open input file '%s'\n", state->source);
        return 1;
    }
    int result = 2;
    if (nvcc_strip(text, state->source)) {
        state->kernels = calloc(NVCC_MAX_KERNELS + 1, sizeof *state->kernels);
        if (state->kernels == NULL) {
            abort();
        }
        nvcc_parse(state, text);
        if (nvcc_fault("flood") != NULL) {
            nvcc_flood();
        }
        nvcc_report(state);
        (void)fflush(stdout);
        result = nvcc_emit(state);
        free(state->kernels);
    }
    free(text);
    return result;
}

int main(int argc, char **argv)
{
    nvcc_state state = {.arch = "75", .output = NULL};
    static const char arch[] = "--gpu-architecture=sm_";
    nvcc_record(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            return nvcc_version();
        }
        if (strcmp(argv[i], "--output-file") == 0 && i + 1 < argc) {
            state.output = argv[i + 1];
        } else if (strncmp(argv[i], arch, sizeof arch - 1) == 0) {
            (void)snprintf(state.arch, sizeof state.arch, "%s", argv[i] + sizeof arch - 1);
        } else if (strcmp(argv[i], "--ptx") == 0) {
            state.ptx = true;
        } else if (strcmp(argv[i], "--ptxas-options=--warn-on-spills") == 0) {
            state.warn_spills = true;
        } else if (strcmp(argv[i], "--ptxas-options=--warn-on-local-memory-usage") == 0) {
            state.warn_local = true;
        }
    }
    if (state.output == NULL) {
        fputs("nvcc fatal   : this stand-in only compiles, with --output-file\n", stderr);
        return 1;
    }
    state.source = argv[argc - 1];
    return nvcc_compile(&state);
}
