/* SPDX-License-Identifier: MIT */
/*
 * Uses every macro of the host API, as C and as C++, and checks at run time what they hand over.
 * It brings its own dj_launch, so it is linked with nothing.
 */
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <string.h>

static size_t seen_count;
static dj_arg seen[64];

dj_status dj_launch(dj_kernel *kernel, const dj_launch_options *options, const dj_arg *args,
                    size_t num_args, dj_error *err)
{
    (void)kernel;
    (void)options;
    (void)err;
    seen_count = num_args;
    if (num_args > 0) {
        memcpy(seen, args, num_args * sizeof *args);
    }
    return DJ_OK;
}

static int failures;

static void expect(bool ok, const char *what, size_t number)
{
    if (!ok) {
        failures++;
        fprintf(stderr, "host_macros: %s, %u\n", what, (unsigned)number);
    }
}

/* The argument lists: v[0], v[1], ... v[n - 1], each an lvalue. */
#define L1 v[0]
#define L2 L1, v[1]
#define L3 L2, v[2]
#define L4 L3, v[3]
#define L5 L4, v[4]
#define L6 L5, v[5]
#define L7 L6, v[6]
#define L8 L7, v[7]
#define L9 L8, v[8]
#define L10 L9, v[9]
#define L11 L10, v[10]
#define L12 L11, v[11]
#define L13 L12, v[12]
#define L14 L13, v[13]
#define L15 L14, v[14]
#define L16 L15, v[15]
#define L17 L16, v[16]
#define L18 L17, v[17]
#define L19 L18, v[18]
#define L20 L19, v[19]
#define L21 L20, v[20]
#define L22 L21, v[21]
#define L23 L22, v[22]
#define L24 L23, v[23]
#define L25 L24, v[24]
#define L26 L25, v[25]
#define L27 L26, v[26]
#define L28 L27, v[27]
#define L29 L28, v[28]
#define L30 L29, v[29]
#define L31 L30, v[30]
#define L32 L31, v[31]
#define L33 L32, v[32]
#define L34 L33, v[33]
#define L35 L34, v[34]
#define L36 L35, v[35]
#define L37 L36, v[36]
#define L38 L37, v[37]
#define L39 L38, v[38]
#define L40 L39, v[39]
#define L41 L40, v[40]
#define L42 L41, v[41]
#define L43 L42, v[42]
#define L44 L43, v[43]
#define L45 L44, v[44]
#define L46 L45, v[45]
#define L47 L46, v[46]
#define L48 L47, v[47]
#define L49 L48, v[48]
#define L50 L49, v[49]
#define L51 L50, v[50]
#define L52 L51, v[51]
#define L53 L52, v[52]
#define L54 L53, v[53]
#define L55 L54, v[54]
#define L56 L55, v[55]
#define L57 L56, v[56]
#define L58 L57, v[57]
#define L59 L58, v[58]
#define L60 L59, v[59]
#define L61 L60, v[60]
#define L62 L61, v[61]
#define L63 L62, v[62]
#define L64 L63, v[63]

static short v[64];

static void check_list(size_t count)
{
    expect(seen_count == count, "DJ_ARGS counts wrong", count);
    for (size_t i = 0; i < count; i++) {
        expect(seen[i].ptr == &v[i] && seen[i].size == sizeof v[i] && seen[i].align == 0,
               "DJ_ARGS hands over the wrong argument", i);
    }
    seen_count = 0;
    memset(seen, 0, sizeof seen);
}

/* A statement of its own: in C++ the array lives no longer. */
#define CHECK(n)                                                                                   \
    dj_launch(NULL, NULL, DJ_ARGS(L##n), NULL);                                                    \
    check_list(n)

static void check_lists(void)
{
    CHECK(1);
    CHECK(2);
    CHECK(3);
    CHECK(4);
    CHECK(5);
    CHECK(6);
    CHECK(7);
    CHECK(8);
    CHECK(9);
    CHECK(10);
    CHECK(11);
    CHECK(12);
    CHECK(13);
    CHECK(14);
    CHECK(15);
    CHECK(16);
    CHECK(17);
    CHECK(18);
    CHECK(19);
    CHECK(20);
    CHECK(21);
    CHECK(22);
    CHECK(23);
    CHECK(24);
    CHECK(25);
    CHECK(26);
    CHECK(27);
    CHECK(28);
    CHECK(29);
    CHECK(30);
    CHECK(31);
    CHECK(32);
    CHECK(33);
    CHECK(34);
    CHECK(35);
    CHECK(36);
    CHECK(37);
    CHECK(38);
    CHECK(39);
    CHECK(40);
    CHECK(41);
    CHECK(42);
    CHECK(43);
    CHECK(44);
    CHECK(45);
    CHECK(46);
    CHECK(47);
    CHECK(48);
    CHECK(49);
    CHECK(50);
    CHECK(51);
    CHECK(52);
    CHECK(53);
    CHECK(54);
    CHECK(55);
    CHECK(56);
    CHECK(57);
    CHECK(58);
    CHECK(59);
    CHECK(60);
    CHECK(61);
    CHECK(62);
    CHECK(63);
    CHECK(64);
    dj_launch(NULL, NULL, DJ_NO_ARGS, NULL);
    expect(seen_count == 0, "DJ_NO_ARGS is not empty", 0);
}

static void check_kinds_of_lvalues(void)
{
    struct pair {
        char first;
        double second;
    } pair = {'a', 2.0};
    struct pair *pointer = &pair;
    const float *const constant = NULL;
    int array[3] = {1, 2, 3};
    char buffer[16];

    dj_launch(NULL, NULL, DJ_ARGS(pair, pointer->second, constant, array[1], *pointer), NULL);
    expect(seen[0].ptr == &pair && seen[0].size == sizeof pair, "a structure", 0);
    expect(seen[1].ptr == &pair.second && seen[1].size == sizeof(double), "a member", 0);
    expect(seen[2].ptr == &constant && seen[2].size == sizeof(void *), "a constant pointer", 0);
    expect(seen[3].ptr == &array[1] && seen[3].size == sizeof(int), "an element", 0);
    expect(seen[4].ptr == &pair && seen[4].size == sizeof pair, "what a pointer points to", 0);

    const dj_arg plain = DJ_ARG(array);
    expect(plain.ptr == &array && plain.size == sizeof array && plain.align == 0, "DJ_ARG", 0);
    const dj_arg aligned = DJ_ARG_ALIGNED(buffer, double);
    expect(aligned.ptr == &buffer && aligned.size == 16 && aligned.align >= 4, "DJ_ARG_ALIGNED", 0);
}

/* The size, and nothing else set. */
#define CHECK_INIT(type, init)                                                                     \
    do {                                                                                           \
        type value = init;                                                                         \
        const type *other = &value;                                                                \
        expect(other->size == sizeof(type), #init, sizeof(type));                                  \
        value.size = 0;                                                                            \
        expect(all_zero(other, sizeof *other), #init " leaves something set", 0);                  \
    } while (0)

static bool all_zero(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void check_inits(void)
{
    CHECK_INIT(dj_config, DJ_CONFIG_INIT);
    CHECK_INIT(dj_device, DJ_DEVICE_INIT);
    CHECK_INIT(dj_stats, DJ_STATS_INIT);
    CHECK_INIT(dj_compile_options, DJ_COMPILE_OPTIONS_INIT);
    CHECK_INIT(dj_launch_options, DJ_LAUNCH_OPTIONS_INIT);
    CHECK_INIT(dj_host_launch_options, DJ_HOST_LAUNCH_OPTIONS_INIT);

    const dj_error err = DJ_ERROR_INIT;
    expect(sizeof err == 1024 && err.status == DJ_OK && err.message[0] == '\0', "DJ_ERROR_INIT", 0);
    expect(DJ_CORRUPT == 12 && DJ__STATUS_COUNT == 15, "the status codes", DJ__STATUS_COUNT);

    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", DJ_VERSION_MAJOR, DJ_VERSION_MINOR,
             DJ_VERSION_PATCH);
    expect(strcmp(version, DJ_VERSION_STRING) == 0, "the version macros disagree", 0);
}

#ifdef __cplusplus
static void check_launch_template(void)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = dj_dim3{1, 1, 1};
    float *out = nullptr;
    dj_status status = deepjit::launch(nullptr, options, nullptr, out, 42, 2.5);
    expect(status == DJ_OK && seen_count == 3, "deepjit::launch counts", seen_count);
    expect(seen[0].size == sizeof out && seen[0].align == alignof(float *), "its pointer", 0);
    expect(seen[1].size == sizeof(int) && seen[2].size == sizeof(double), "its values", 0);
    status = deepjit::launch(nullptr, options, nullptr);
    expect(status == DJ_OK && seen_count == 0, "deepjit::launch without arguments", seen_count);
}
#endif

int main(void)
{
    check_lists();
    check_kinds_of_lvalues();
    check_inits();
#ifdef __cplusplus
    check_launch_template();
#endif
    return failures != 0;
}
