#!/bin/bash
# SPDX-License-Identifier: MIT
#
# pack-gpu.sh [<directory>]
#
# Builds here, without a GPU, what scripts/test-gpu.sh and scripts/bench-gpu.sh run, and collects it
# in the directory (build-gpu/). The result, with the source tree beside it, runs on a machine that
# has a GPU, nvcc and a C library no older than the one here, and needs no package of ours there.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build-gpu}
objects=build-gpu-objects
limit_kib=$((40 * 1024))

# Sources are named relative to the tree, so that examples find their kernels from its root.
cmake -S . -B "$objects" --log-level=NOTICE -DCMAKE_BUILD_TYPE=Release -DDEEPJIT_STATIC_DEPS=ON \
    -DCMAKE_C_FLAGS="-ffile-prefix-map=$PWD=." -DDEEPJIT_WERROR=OFF \
    "-DCMAKE_BUILD_RPATH=\$ORIGIN/../lib;\$ORIGIN/../../lib"

stems() { # <file>...: names without folder and ending, of those that exist
    local file
    for file in "$@"; do
        if [ -e "$file" ]; then basename "$file" .c; fi
    done
}
programs() { # examples or bench: those that are not projects of their own
    local file
    for file in "$1"/*/*.c; do
        if [ -e "$file" ] && [ ! -e "$(dirname "$file")/CMakeLists.txt" ]; then
            basename "$file" .c
        fi
    done
}
mapfile -t examples < <(programs examples)
mapfile -t benches < <(programs bench)
mapfile -t conformance < <(stems tests/conformance/*.c tests/standins/*.c)
mapfile -t gpu < <(stems tests/gpu/test_gpu_*.c)
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build "$objects" -j"${JOBS:-$(nproc)}" --target \
    deepjit_cli deepjit_shared null_driver "${examples[@]/#/deepjit_examples_}" \
    "${benches[@]/#/deepjit_bench_}" "${conformance[@]}" "${gpu[@]}"

rm -rf "$out"
mkdir -p "$out/examples" "$out/bench" "$out/tests/bin" "$out/tests/gpu" "$out/lib"
collect() { # <folder> <name>...
    local name
    for name in "${@:2}"; do
        cp "$objects/$1$name" "$out/$1"
        strip --strip-unneeded "$out/$1$name"
    done
}
collect "" deepjit libdeepjit.so
collect examples/ "${examples[@]}"
collect bench/ "${benches[@]}" libnull_driver.so
collect tests/bin/ "${conformance[@]}"
collect tests/gpu/ "${gpu[@]}"
cmocka=$(ldd "$out/tests/bin/${conformance[0]}" | sed -n 's/.*libcmocka[^ ]* => \([^ ]*\) .*/\1/p')
cp -L "$cmocka" "$out/lib/libcmocka.so.0"
git describe --always --dirty >"$out/revision" 2>/dev/null || true

cat >"$out/README" <<'TEXT'
DeepJIT, built to be carried. In the root of the source tree, on a machine with a GPU and nvcc:

    scripts/test-gpu.sh --bin build-gpu --out results
    scripts/bench-gpu.sh --bin build-gpu --out results
TEXT

size=$(du -sk "$out" | cut -f1)
missing=$(find "$out" -type f -perm -u+x -exec ldd {} + 2>/dev/null | grep 'not found' || true)
if [ -n "$missing" ] || [ "$size" -gt "$limit_kib" ]; then
    echo "pack-gpu: $out: $size KiB, limit $limit_kib; not found: ${missing:-nothing}" >&2
    exit 1
fi
echo "pack-gpu: $out: $size KiB"
