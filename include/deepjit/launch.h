/* SPDX-License-Identifier: MIT */
/*
 * deepjit/launch.h: kernels, arguments, launches and the little device memory that examples need.
 */
#ifndef DEEPJIT_LAUNCH_H
#define DEEPJIT_LAUNCH_H

#include <deepjit/compile.h>

DJ_BEGIN_DECLS

typedef struct dj_dim3 {
    uint32_t x, y, z;
} dj_dim3;

struct dj_host_launch_options;
struct dj_cuda_launch_options;

/*
 * How to launch. Unset fields inherit from dj_config.launch_defaults. `grid` and `block` are
 * needed; a zero y or z beside a non-zero x means 1.
 */
typedef struct dj_launch_options {
    size_t size;
    dj_dim3 grid;  /* blocks */
    dj_dim3 block; /* threads in a block */
    /* Dynamic shared memory of a block, in bytes. */
    int64_t shared_bytes;
    /* A native stream handle. NULL means unset, unless stream_set says that the default stream
     * is meant. Unset: the runtime's default, else the hosting framework's current stream. */
    void *stream;
    bool stream_set;
    const struct dj_host_launch_options *host; /* deepjit/host.h; NULL: none */
    const struct dj_cuda_launch_options *cuda; /* deepjit/cuda.h; NULL: none */
} dj_launch_options;
#define DJ_LAUNCH_OPTIONS_INIT DJ__SIZED(dj_launch_options)

/* One argument by address. `align` 0: as the binary says. */
typedef struct dj_arg {
    const void *ptr;
    size_t size;
    size_t align;
} dj_arg;

/*
 * Launches. `args` are the kernel's parameters in order; their number and sizes must match what
 * the binary declares. Argument memory is read before the call returns.
 *
 * Takes no lock, allocates nothing and logs nothing. Exceptions: more than 64 arguments are put
 * into allocated memory; CUDA looks a kernel up at its first launch in a context, and locks to
 * raise its shared memory; the host locks to wake its threads.
 * Errors: INVALID_ARGUMENT naming the parameter, dimension or limit; UNSUPPORTED naming what the
 * device lacks; DEVICE.
 */
DJ_API dj_status dj_launch(dj_kernel *kernel, const dj_launch_options *options, const dj_arg *args,
                           size_t num_args, dj_error *err);

/* One more reference to the kernel, which is returned; NULL is allowed. */
DJ_API dj_kernel *dj_kernel_retain(dj_kernel *kernel);
/* NULL-safe. A kernel may outlive its runtime; it is unloaded with its last reference. */
DJ_API void dj_kernel_release(dj_kernel *kernel);
/* The kernel's name in the source. Valid as long as the kernel is held. */
DJ_API const char *dj_kernel_name(const dj_kernel *kernel);
/* The directory the kernel was loaded from; "" if it was never published. */
DJ_API const char *dj_kernel_path(const dj_kernel *kernel);
DJ_API size_t dj_kernel_num_params(const dj_kernel *kernel);
/* Size and alignment of parameter i in bytes; its name and type as written, or "" if the binary
 * does not say. Any output may be NULL. Errors: INVALID_ARGUMENT if there is no such parameter. */
DJ_API dj_status dj_kernel_param(const dj_kernel *kernel, size_t index, size_t *size, size_t *align,
                                 const char **name, const char **type, dj_error *err);

/*
 * Device memory. On the host back end this is ordinary memory, aligned to 64 bytes.
 * Sizes are in bytes. dj_mem_free(NULL) does nothing. Copies are complete when the call returns
 * and may go in any direction.
 */
DJ_API dj_status dj_mem_alloc(dj_runtime *runtime, size_t size, void **out, dj_error *err);
DJ_API dj_status dj_mem_free(dj_runtime *runtime, void *memory, dj_error *err);
DJ_API dj_status dj_mem_copy(dj_runtime *runtime, void *to, const void *from, size_t size,
                             dj_error *err);
/* Waits until everything launched on the device so far is done. */
DJ_API dj_status dj_synchronize(dj_runtime *runtime, dj_error *err);

DJ_END_DECLS

/*
 * Arguments from lvalues:
 *
 *     dj_launch(kernel, &options, DJ_ARGS(out, in, n), &err);
 *
 * DJ_ARGS takes 1 to 64 arguments and stands for two parameters, the array and its length; the
 * array lives until the end of the statement (C++) or block (C). DJ_NO_ARGS is the empty list.
 */
#ifdef __cplusplus
template <size_t N> struct dj__arg_array {
    dj_arg items[N];
    const dj_arg *data() const
    {
        return items;
    }
};
#define DJ_ARG(x) (dj_arg{&(x), sizeof(x), 0})
#define DJ_ARG_ALIGNED(x, T) (dj_arg{&(x), sizeof(x), alignof(T)})
#define DJ__ARG_ARRAY(n, ...) (dj__arg_array<n>{{__VA_ARGS__}}.data())
#else
#define DJ_ARG(x) ((dj_arg){&(x), sizeof(x), 0})
#define DJ_ARG_ALIGNED(x, T) ((dj_arg){&(x), sizeof(x), _Alignof(T)})
#define DJ__ARG_ARRAY(n, ...) ((const dj_arg[n]){__VA_ARGS__})
#endif
#define DJ_NO_ARGS NULL, 0

/* Mapping over up to 64 arguments, in pedantic C11 and C++17. */
#define DJ__COUNT_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
                       a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32,  \
                       a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47,  \
                       a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62,  \
                       a63, a64, n, ...)                                                           \
    n
#define DJ__COUNT(...)                                                                             \
    DJ__COUNT_PICK(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49,    \
                   48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, \
                   28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  \
                   8, 7, 6, 5, 4, 3, 2, 1, 0)
#define DJ__CAT_(a, b) a##b
#define DJ__CAT(a, b) DJ__CAT_(a, b)
#define DJ__MAP1(a) DJ_ARG(a)
#define DJ__MAP2(a, ...) DJ_ARG(a), DJ__MAP1(__VA_ARGS__)
#define DJ__MAP3(a, ...) DJ_ARG(a), DJ__MAP2(__VA_ARGS__)
#define DJ__MAP4(a, ...) DJ_ARG(a), DJ__MAP3(__VA_ARGS__)
#define DJ__MAP5(a, ...) DJ_ARG(a), DJ__MAP4(__VA_ARGS__)
#define DJ__MAP6(a, ...) DJ_ARG(a), DJ__MAP5(__VA_ARGS__)
#define DJ__MAP7(a, ...) DJ_ARG(a), DJ__MAP6(__VA_ARGS__)
#define DJ__MAP8(a, ...) DJ_ARG(a), DJ__MAP7(__VA_ARGS__)
#define DJ__MAP9(a, ...) DJ_ARG(a), DJ__MAP8(__VA_ARGS__)
#define DJ__MAP10(a, ...) DJ_ARG(a), DJ__MAP9(__VA_ARGS__)
#define DJ__MAP11(a, ...) DJ_ARG(a), DJ__MAP10(__VA_ARGS__)
#define DJ__MAP12(a, ...) DJ_ARG(a), DJ__MAP11(__VA_ARGS__)
#define DJ__MAP13(a, ...) DJ_ARG(a), DJ__MAP12(__VA_ARGS__)
#define DJ__MAP14(a, ...) DJ_ARG(a), DJ__MAP13(__VA_ARGS__)
#define DJ__MAP15(a, ...) DJ_ARG(a), DJ__MAP14(__VA_ARGS__)
#define DJ__MAP16(a, ...) DJ_ARG(a), DJ__MAP15(__VA_ARGS__)
#define DJ__MAP17(a, ...) DJ_ARG(a), DJ__MAP16(__VA_ARGS__)
#define DJ__MAP18(a, ...) DJ_ARG(a), DJ__MAP17(__VA_ARGS__)
#define DJ__MAP19(a, ...) DJ_ARG(a), DJ__MAP18(__VA_ARGS__)
#define DJ__MAP20(a, ...) DJ_ARG(a), DJ__MAP19(__VA_ARGS__)
#define DJ__MAP21(a, ...) DJ_ARG(a), DJ__MAP20(__VA_ARGS__)
#define DJ__MAP22(a, ...) DJ_ARG(a), DJ__MAP21(__VA_ARGS__)
#define DJ__MAP23(a, ...) DJ_ARG(a), DJ__MAP22(__VA_ARGS__)
#define DJ__MAP24(a, ...) DJ_ARG(a), DJ__MAP23(__VA_ARGS__)
#define DJ__MAP25(a, ...) DJ_ARG(a), DJ__MAP24(__VA_ARGS__)
#define DJ__MAP26(a, ...) DJ_ARG(a), DJ__MAP25(__VA_ARGS__)
#define DJ__MAP27(a, ...) DJ_ARG(a), DJ__MAP26(__VA_ARGS__)
#define DJ__MAP28(a, ...) DJ_ARG(a), DJ__MAP27(__VA_ARGS__)
#define DJ__MAP29(a, ...) DJ_ARG(a), DJ__MAP28(__VA_ARGS__)
#define DJ__MAP30(a, ...) DJ_ARG(a), DJ__MAP29(__VA_ARGS__)
#define DJ__MAP31(a, ...) DJ_ARG(a), DJ__MAP30(__VA_ARGS__)
#define DJ__MAP32(a, ...) DJ_ARG(a), DJ__MAP31(__VA_ARGS__)
#define DJ__MAP33(a, ...) DJ_ARG(a), DJ__MAP32(__VA_ARGS__)
#define DJ__MAP34(a, ...) DJ_ARG(a), DJ__MAP33(__VA_ARGS__)
#define DJ__MAP35(a, ...) DJ_ARG(a), DJ__MAP34(__VA_ARGS__)
#define DJ__MAP36(a, ...) DJ_ARG(a), DJ__MAP35(__VA_ARGS__)
#define DJ__MAP37(a, ...) DJ_ARG(a), DJ__MAP36(__VA_ARGS__)
#define DJ__MAP38(a, ...) DJ_ARG(a), DJ__MAP37(__VA_ARGS__)
#define DJ__MAP39(a, ...) DJ_ARG(a), DJ__MAP38(__VA_ARGS__)
#define DJ__MAP40(a, ...) DJ_ARG(a), DJ__MAP39(__VA_ARGS__)
#define DJ__MAP41(a, ...) DJ_ARG(a), DJ__MAP40(__VA_ARGS__)
#define DJ__MAP42(a, ...) DJ_ARG(a), DJ__MAP41(__VA_ARGS__)
#define DJ__MAP43(a, ...) DJ_ARG(a), DJ__MAP42(__VA_ARGS__)
#define DJ__MAP44(a, ...) DJ_ARG(a), DJ__MAP43(__VA_ARGS__)
#define DJ__MAP45(a, ...) DJ_ARG(a), DJ__MAP44(__VA_ARGS__)
#define DJ__MAP46(a, ...) DJ_ARG(a), DJ__MAP45(__VA_ARGS__)
#define DJ__MAP47(a, ...) DJ_ARG(a), DJ__MAP46(__VA_ARGS__)
#define DJ__MAP48(a, ...) DJ_ARG(a), DJ__MAP47(__VA_ARGS__)
#define DJ__MAP49(a, ...) DJ_ARG(a), DJ__MAP48(__VA_ARGS__)
#define DJ__MAP50(a, ...) DJ_ARG(a), DJ__MAP49(__VA_ARGS__)
#define DJ__MAP51(a, ...) DJ_ARG(a), DJ__MAP50(__VA_ARGS__)
#define DJ__MAP52(a, ...) DJ_ARG(a), DJ__MAP51(__VA_ARGS__)
#define DJ__MAP53(a, ...) DJ_ARG(a), DJ__MAP52(__VA_ARGS__)
#define DJ__MAP54(a, ...) DJ_ARG(a), DJ__MAP53(__VA_ARGS__)
#define DJ__MAP55(a, ...) DJ_ARG(a), DJ__MAP54(__VA_ARGS__)
#define DJ__MAP56(a, ...) DJ_ARG(a), DJ__MAP55(__VA_ARGS__)
#define DJ__MAP57(a, ...) DJ_ARG(a), DJ__MAP56(__VA_ARGS__)
#define DJ__MAP58(a, ...) DJ_ARG(a), DJ__MAP57(__VA_ARGS__)
#define DJ__MAP59(a, ...) DJ_ARG(a), DJ__MAP58(__VA_ARGS__)
#define DJ__MAP60(a, ...) DJ_ARG(a), DJ__MAP59(__VA_ARGS__)
#define DJ__MAP61(a, ...) DJ_ARG(a), DJ__MAP60(__VA_ARGS__)
#define DJ__MAP62(a, ...) DJ_ARG(a), DJ__MAP61(__VA_ARGS__)
#define DJ__MAP63(a, ...) DJ_ARG(a), DJ__MAP62(__VA_ARGS__)
#define DJ__MAP64(a, ...) DJ_ARG(a), DJ__MAP63(__VA_ARGS__)
#define DJ__MAP(n, ...) DJ__CAT(DJ__MAP, n)(__VA_ARGS__)
#define DJ_ARGS(...)                                                                               \
    DJ__ARG_ARRAY(DJ__COUNT(__VA_ARGS__), DJ__MAP(DJ__COUNT(__VA_ARGS__), __VA_ARGS__)),           \
        DJ__COUNT(__VA_ARGS__)

#ifdef __cplusplus
namespace deepjit {
/* Arguments by value: deepjit::launch(kernel, options, &err, out, in, 42). */
template <class... Args>
inline dj_status launch(dj_kernel *kernel, const dj_launch_options &options, dj_error *err,
                        const Args &...args)
{
    const dj_arg list[sizeof...(Args) + 1] = {dj_arg{&args, sizeof(Args), alignof(Args)}...,
                                              dj_arg{nullptr, 0, 0}};
    return dj_launch(kernel, &options, list, sizeof...(Args), err);
}
} // namespace deepjit
#endif

#endif
