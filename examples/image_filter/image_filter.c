/* SPDX-License-Identifier: MIT */
/*
 * Filters a picture: reads a binary PPM file, blurs or sharpens it, writes the result as PPM and
 * compares it with the same filter computed here.
 *
 * Run: build/examples/image_filter [blur|sharpen [INPUT.ppm [OUTPUT.ppm]]]
 * Without arguments it sharpens input.ppm beside this file into ./filtered.ppm.
 */
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 16384 };

typedef struct image {
    int width, height;
    unsigned char *pixels; /* RGB */
    size_t bytes;
} image;

typedef struct weights { /* as in kernels/filter.c */
    float at[5][5];
} weights;

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\n", what, detail);
    exit(1);
}

static char *beside_this_file(const char *name)
{
    const char *const slash = strrchr(__FILE__, '/');
    const size_t length = slash != NULL ? (size_t)(slash - __FILE__) + 1 : 0;
    char *const path = malloc(length + strlen(name) + 1);
    if (path == NULL) {
        fail(name, "out of memory");
    }
    memcpy(path, __FILE__, length);
    memcpy(path + length, name, strlen(name) + 1);
    return path;
}

/* The next number of a PPM header; comments run from # to the end of the line. */
static int read_number(FILE *file, const char *path)
{
    int value = 0;
    int c = getc(file);
    while (c == '#' || c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        while (c == '#' && (c = getc(file)) != '\n' && c != EOF) {
            c = '#';
        }
        c = getc(file);
    }
    if (c < '0' || c > '9') {
        fail(path, "not a binary PPM file");
    }
    for (; c >= '0' && c <= '9' && value <= MAX_SIDE; c = getc(file)) {
        value = value * 10 + c - '0';
    }
    return value; /* the one blank after it has been read */
}

static image read_image(const char *path)
{
    image picture = {0, 0, NULL, 0};
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        fail(path, "cannot open");
    }
    if (getc(file) != 'P' || getc(file) != '6') {
        fail(path, "not a binary PPM file");
    }
    picture.width = read_number(file, path);
    picture.height = read_number(file, path);
    if (picture.width < 1 || picture.width > MAX_SIDE || picture.height < 1 ||
        picture.height > MAX_SIDE || read_number(file, path) != 255) {
        fail(path, "too large, or not 8 bits a channel");
    }
    picture.bytes = (size_t)picture.width * (size_t)picture.height * 3;
    picture.pixels = malloc(picture.bytes);
    if (picture.pixels == NULL || fread(picture.pixels, 1, picture.bytes, file) != picture.bytes) {
        fail(path, "truncated, or out of memory");
    }
    fclose(file);
    return picture;
}

static void write_image(const char *path, const image *picture)
{
    FILE *const file = fopen(path, "wb");
    if (file == NULL) {
        fail(path, "cannot create");
    }
    fprintf(file, "P6\n%d %d\n255\n", picture->width, picture->height);
    const bool ok = fwrite(picture->pixels, 1, picture->bytes, file) == picture->bytes;
    if (fclose(file) != 0 || !ok) {
        fail(path, "cannot write");
    }
}

static char *read_source(size_t *size)
{
    char *const path = beside_this_file("kernels/filter.c");
    FILE *const file = fopen(path, "rb");
    char *const text = malloc(1 << 16);
    if (file == NULL || text == NULL) {
        fail(path, "cannot read");
    }
    *size = fread(text, 1, 1 << 16, file);
    fclose(file);
    free(path);
    return text;
}

/* A binomial blur, or the picture plus its difference from the blur. */
static weights make_weights(bool sharpen)
{
    static const float line[5] = {1, 4, 6, 4, 1};
    weights w;
    for (int y = 0; y < 5; y++) {
        for (int x = 0; x < 5; x++) {
            const float blur = line[y] * line[x] / 256.0f;
            w.at[y][x] = sharpen ? -blur : blur;
        }
    }
    w.at[2][2] += sharpen ? 2.0f : 0.0f;
    return w;
}

static int clamp_to(int value, int limit)
{
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
}

/* The kernel's formula for one value, in double precision. */
static double reference(const image *in, const weights *w, int x, int y, int channel)
{
    double sum = 0;
    for (int dy = -2; dy <= 2; dy++) {
        for (int dx = -2; dx <= 2; dx++) {
            const int pixel =
                clamp_to(y + dy, in->height) * in->width + clamp_to(x + dx, in->width);
            sum += (double)w->at[dy + 2][dx + 2] * in->pixels[3 * pixel + channel];
        }
    }
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

static void check(const image *in, const image *out, const weights *w)
{
    for (int y = 0; y < in->height; y++) {
        for (int x = 0; x < in->width; x++) {
            for (int channel = 0; channel < 3; channel++) {
                const int got = out->pixels[3 * (y * in->width + x) + channel];
                const double off = got - reference(in, w, x, y, channel);
                if (off < -0.51 || off > 0.51) { /* half for rounding */
                    fail("wrong result", "the picture differs from the reference");
                }
            }
        }
    }
}

static dj_status filter(dj_runtime *runtime, dj_kernel *kernel, const image *in, image *out,
                        const weights *w, void *memory[2], dj_error *err)
{
    dj_status status = dj_mem_alloc(runtime, out->bytes, &memory[0], err);
    if (status != DJ_OK || (status = dj_mem_alloc(runtime, in->bytes, &memory[1], err)) != DJ_OK ||
        (status = dj_mem_copy(runtime, memory[1], in->pixels, in->bytes, err)) != DJ_OK) {
        return status;
    }
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){((unsigned)in->width + 31) / 32, ((unsigned)in->height + 7) / 8, 1};
    options.block = (dj_dim3){32, 8, 1};
    const int width = in->width;
    const int height = in->height;
    status = dj_launch(kernel, &options, DJ_ARGS(memory[0], memory[1], *w, width, height), err);
    return status == DJ_OK ? dj_mem_copy(runtime, out->pixels, memory[0], out->bytes, err) : status;
}

int main(int argc, char **argv)
{
    const char *const mode = argc > 1 ? argv[1] : "sharpen";
    if (argc > 4 || (strcmp(mode, "blur") != 0 && strcmp(mode, "sharpen") != 0)) {
        fail("usage", "image_filter [blur|sharpen [INPUT.ppm [OUTPUT.ppm]]]");
    }
    char *const shipped = beside_this_file("input.ppm");
    const image in = read_image(argc > 2 ? argv[2] : shipped);
    image out = in;
    size_t size = 0;
    char *const source = read_source(&size);
    const weights w = make_weights(strcmp(mode, "sharpen") == 0);
    out.pixels = malloc(out.bytes);
    if (out.pixels == NULL) {
        fail("picture", "out of memory");
    }

    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    void *memory[2] = {NULL, NULL};
    if (dj_runtime_create(NULL, NULL, &runtime, &err) != DJ_OK ||
        dj_compile(runtime, "filter", source, size, NULL, &kernel, &err) != DJ_OK ||
        filter(runtime, kernel, &in, &out, &w, memory, &err) != DJ_OK) {
        fail("filter", err.message);
    }
    check(&in, &out, &w);
    const char *const path = argc > 3 ? argv[3] : "filtered.ppm";
    write_image(path, &out);
    printf("%s: %d x %d pixels, right; written to %s\n", mode, in.width, in.height, path);

    (void)dj_mem_free(runtime, memory[0], NULL);
    (void)dj_mem_free(runtime, memory[1], NULL);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    free(in.pixels);
    free(out.pixels);
    free(source);
    free(shipped);
    return 0;
}
