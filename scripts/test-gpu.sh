#!/bin/bash
# SPDX-License-Identifier: MIT
#
# test-gpu.sh [--bin DIR] [--out DIR] [--jobs N] [--only WORD] [--no-sanitizer]
#
# Everything that needs an NVIDIA GPU and nvcc: the conformance programs on the CUDA back end, the
# programs of tests/gpu, every example from a cold and from a warm cache, PyTorch's stream, and the
# examples and tests once more under compute-sanitizer. Prints a table; fails if one step did.
#
#   --bin   where the programs are: a build directory (build) or what pack-gpu.sh made
#   --out   a folder for summary.txt and test-gpu.log (nothing is kept without it)
#   --only  steps whose name contains this word
#
# A step that exits with 77 is skipped, with a reason; it does not count as a failure.
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$PWD
bin=build
out=
only=
sanitizer=1
jobs=$(nproc)
[ "$jobs" -le 8 ] || jobs=8
while [ $# -gt 0 ]; do
    case $1 in
    --bin) bin=$2 && shift 2 ;;
    --out) out=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    --only) only=$2 && shift 2 ;;
    --no-sanitizer) sanitizer=0 && shift ;;
    *) sed -n '4,16s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
bin=$(cd "$bin" 2>/dev/null && pwd) || { echo "test-gpu: no directory $bin" >&2; exit 2; }
scripts/need-gpu.sh test-gpu "$bin/deepjit" || exit 1
if [ -n "$out" ]; then
    mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/steps"
[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
export PATH DJ_TEST_BACKEND=cuda DJ_TEST_SOURCE_DIR=$tree DJ_TEST_BIN_DIR=$bin/tests/bin \
    DEEPJIT=$bin/deepjit PYTHONDONTWRITEBYTECODE=1

# ---- Steps: each has a directory, a log, a status and a time; up to $jobs run at once ----------

names=()
run_one() { # <name> <seconds> <command>...
    local name=$1 limit=$2 dir=$work/steps/$1 begin status
    shift 2
    begin=$(date +%s.%N)
    (
        cd "$dir/cwd" || exit 1
        HOME=$dir/home DJ_JIT_CACHE_DIR=${cache:-$dir/cache} TMPDIR=$dir/tmp \
            exec timeout -k 10 "$limit" "$@"
    ) >"$dir/log" 2>&1 </dev/null
    status=$?
    echo "$status" >"$dir/status"
    date +%s.%N | awk -v begin="$begin" '{ printf "%.1f\n", $1 - begin }' >"$dir/time"
}
step() { # <name> <seconds> <command>...
    case $1 in *"$only"*) ;; *) return ;; esac
    local dir=$work/steps/$1
    mkdir -p "$dir/cwd" "$dir/home" "$dir/tmp"
    ln -s "$tree/examples" "$dir/cwd/examples" # where __FILE__ of a carried build points
    names+=("$1")
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    run_one "$@" &
}
skip_step() { # <name> <why>
    case $1 in *"$only"*) ;; *) return ;; esac
    mkdir -p "$work/steps/$1"
    names+=("$1")
    echo "$2" >"$work/steps/$1/log"
    echo 77 >"$work/steps/$1/status"
    echo 0.0 >"$work/steps/$1/time"
}

# An example; afterwards says which back end its cache holds kernels of.
run_example() { # <program>
    "$1"
    local status=$?
    find "$DJ_JIT_CACHE_DIR/cache" -name kernel.cubin 2>/dev/null | grep -q . &&
        echo "(ran on cuda)" || echo "(no cubin in its cache: ran on host)"
    return "$status"
}
export -f run_example

sanitize() { # <tool> <program>...
    compute-sanitizer --tool "$1" --target-processes application-only --error-exitcode 86 \
        --report-api-errors no --print-limit 20 "${@:2}"
}
export -f sanitize

begin=$SECONDS
scripts/describe-gpu.sh "$bin" | tee "$work/machine"
examples=()
for program in "$bin"/examples/*; do
    [ -f "$program" ] && [ -x "$program" ] && examples+=("$(basename "$program")")
done

# ---- Conformance, GPU tests, examples ----------------------------------------------------------

step doctor 60 "$bin/deepjit" doctor
for name in storm hostile kernels hook isolation; do
    step "conformance_$name" 240 "$bin/tests/bin/test_$name"
done
for name in process artifacts arguments launch stream capture device; do
    step "gpu_$name" 240 "$bin/tests/gpu/test_gpu_$name"
done
for name in "${examples[@]}"; do
    cache=$work/cache_$name step "cold_$name" 120 \
        bash -c 'run_example "$@"' - "$bin/examples/$name"
done
step torch_stream 120 python3 "$tree/tests/gpu/torch_stream.py" "$bin/libdeepjit.so"
wait
for name in "${examples[@]}"; do
    cache=$work/cache_$name step "warm_$name" 120 \
        bash -c 'run_example "$@"' - "$bin/examples/$name"
done
wait
step gpu_bad 240 "$bin/tests/gpu/test_gpu_bad" # fills the device's memory: alone
wait

# ---- compute-sanitizer -------------------------------------------------------------------------

# Why it cannot be used here, or nothing.
sanitizer_problem() {
    command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return; }
    local probe=${examples[0]:-none}
    [ -d "$work/cache_scale" ] && probe=scale
    local log=$work/probe
    (cd "$work/steps/warm_$probe/cwd" 2>/dev/null || cd "$tree" &&
        DJ_JIT_CACHE_DIR=$work/cache_$probe timeout 100 compute-sanitizer --tool memcheck \
            --target-processes application-only "$bin/examples/$probe") >"$log" 2>&1
    grep -i -m 1 'not supported\|error: failed\|unable to' "$log"
}
if [ "$sanitizer" = 1 ]; then
    why=$(sanitizer_problem)
    if [ -n "$why" ]; then
        skip_step sanitizer "compute-sanitizer: $why"
    else
        for name in "${examples[@]}"; do
            for tool in memcheck initcheck racecheck synccheck; do
                cache=$work/cache_$name step "${tool}_$name" 150 \
                    bash -c 'sanitize "$@"' - "$tool" "$bin/examples/$name"
            done
        done
        export DJ_GPU_IN_PROCESS=1
        step memcheck_conformance_kernels 200 \
            bash -c 'sanitize "$@"' - memcheck "$bin/tests/bin/test_kernels"
        step racecheck_conformance_kernels 200 \
            bash -c 'sanitize "$@"' - racecheck "$bin/tests/bin/test_kernels"
        for name in arguments launch stream capture device; do
            step "memcheck_gpu_$name" 200 \
                bash -c 'sanitize "$@"' - memcheck "$bin/tests/gpu/test_gpu_$name"
        done
        for tool in racecheck synccheck; do
            step "${tool}_gpu_launch" 200 \
                bash -c 'sanitize "$@"' - "$tool" "$bin/tests/gpu/test_gpu_launch"
        done
        wait
    fi
fi

# ---- Table -------------------------------------------------------------------------------------

note_of() { # <status> <log>: what the table says beside it
    case $1 in
    0) grep -o -m 1 '(ran on cuda)\|([^)]*ran on host)' "$2" ||
        sed -n 's/^\([0-9]* passed, [0-9]* skipped, [0-9]* failed\)$/\1/p
                s/^\[  PASSED  \] \([0-9]* test.*\)\.$/\1 passed/p' "$2" | tail -n 1 ;;
    77) grep -v '^(' "$2" | tail -n 1 | cut -c 1-110 ;;
    124 | 137) echo "ran into its time limit" ;;
    *)
        local cases
        cases=$(sed -n 's/^FAILED  \([a-z0-9_]*\) (.*/\1/p' "$2" | tr '\n' ' ')
        if [ -n "$cases" ]; then
            echo "$cases" | cut -c 1-110
        else
            grep -m 1 'FAILED\|rror\|expected\|WRONG' "$2" | cut -c 1-110
        fi
        ;;
    esac
}
passed=0
skipped=0
failed=()
{
    cat "$work/machine"
    echo
    for name in "${names[@]}"; do
        dir=$work/steps/$name
        status=$(cat "$dir/status" 2>/dev/null || echo 1)
        case $status in
        0) result=ok && passed=$((passed + 1)) ;;
        77) result=skipped && skipped=$((skipped + 1)) ;;
        *) result=FAILED && failed+=("$name") ;;
        esac
        printf '%-34s %-8s %6s s  %s\n' "$name" "$result" "$(cat "$dir/time" 2>/dev/null)" \
            "$(note_of "$status" "$dir/log")"
    done
    echo
    if [ "${#failed[@]}" -gt 0 ]; then
        echo "test-gpu: FAILED: ${failed[*]}"
    fi
    echo "test-gpu: $passed passed, $skipped skipped, ${#failed[@]} failed in $((SECONDS - begin)) s"
} >"$work/summary"
for name in "${names[@]}"; do
    printf '\n######## %s: status %s\n' "$name" "$(cat "$work/steps/$name/status" 2>/dev/null)"
    head -c 200000 "$work/steps/$name/log"
done >"$work/all.log"
if [ -n "$out" ]; then
    cp "$work/summary" "$out/summary.txt"
    cp "$work/all.log" "$out/test-gpu.log"
fi
for name in "${failed[@]}"; do
    printf '\n######## %s: the end of its log\n' "$name"
    tail -n 12 "$work/steps/$name/log" | cut -c 1-300
done
echo
cat "$work/summary"
[ "${#failed[@]}" -eq 0 ] && [ "$passed" -gt 0 ]
