#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench-gpu.sh [--bin DIR] [--out DIR]
#
# The benchmarks of bench/ on an NVIDIA GPU: JSON lines, then a table with ratios and limits. What is
# compared is measured in turns within one process; launches and loads are medians of several. A
# limit that is missed is marked and does not change the exit status; a benchmark that fails does.
#
#   --bin   where the programs are: a build directory (build) or what pack-gpu.sh made
#   --out   a folder for bench.jsonl and bench.txt (nothing is kept without it)
set -u
cd "$(dirname "$0")/.." || exit 1
bin=build
out=
while [ $# -gt 0 ]; do
    case $1 in
    --bin) bin=$2 && shift 2 ;;
    --out) out=$2 && shift 2 ;;
    *) sed -n '4,11s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
bin=$(cd "$bin" 2>/dev/null && pwd) || { echo "bench-gpu: no directory $bin" >&2; exit 2; }
scripts/need-gpu.sh bench-gpu "$bin/deepjit" || exit 1
if [ -n "$out" ]; then
    mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
export PATH HOME=$work/home DJ_JIT_CACHE_DIR=$work/cache
mkdir "$HOME"

scripts/describe-gpu.sh "$bin" | tee "$work/machine"

failed=()
bench() { # <name> <seconds> <command>...
    echo "---- $1"
    timeout -k 10 "$2" "${@:3}" | tee -a "$work/bench.jsonl"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$1")
}

# The median of several processes: where code and stack happen to lie in one of them changes its
# launches by percents.
bench_runs() { # <name> <seconds> <command>...
    local run
    echo "---- $1, $runs processes"
    for ((run = 0; run < runs; run++)); do
        timeout -k 10 "$2" "${@:3}" || { failed+=("$1") && return; }
    done >"$work/runs.jsonl"
    python3 - "$work/runs.jsonl" <<'MEDIANS' | tee -a "$work/bench.jsonl"
import json
import statistics
import sys

rows = {}
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    rows.setdefault(row["name"], []).append(row)
for name, runs in rows.items():
    row = dict(runs[0], runs=len(runs))
    for field in ("ours_ns", "theirs_ns", "ratio", "difference_ns"):
        if field in row:
            row[field] = round(statistics.median(run[field] for run in runs), 4)
    if "ratio" in row:
        row["ratios"] = [min(run["ratio"] for run in runs), max(run["ratio"] for run in runs)]
    if "limit" in row:
        row["met"] = row[row["limit_of"]] <= row["limit"]
    print(json.dumps(row))
MEDIANS
}
runs=7
bench null 60 "$bin/bench/gpu_launch" --null "$bin/bench/libnull_driver.so"
bench_runs launch 60 "$bin/bench/gpu_launch"
bench_runs load 60 "$bin/bench/gpu_load"
bench start 90 "$bin/bench/gpu_start"
bench compile 60 "$bin/bench/gpu_compile"
# A realistic kernel states its speed itself.
if [ -x "$bin/examples/cuda_bf16_gemm" ]; then
    echo "---- matrix product"
    timeout -k 10 100 "$bin/examples/cuda_bf16_gemm" speed 2>&1 | tee "$work/gemm"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("cuda_bf16_gemm")
fi
# Frameworks for comparison; absence or failure of one is no failure of ours.
timeout -k 10 90 python3 bench/launch_frameworks.py 2>"$work/frameworks.log" |
    tee -a "$work/bench.jsonl"

python3 - "$work/bench.jsonl" >"$work/table" <<'TABLE'
import json
import sys

def text(ns):
    if ns is None:
        return "-"
    return f"{ns:.1f} ns" if ns < 1e4 else f"{ns / 1e3:.1f} us" if ns < 1e7 else f"{ns / 1e6:.1f} ms"

print(f"{'':50} {'ours':>12} {'by hand':>12} {'ratio':>8}  limit")
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    if "left_out" in row:
        print(f"{row['name']:50} left out: {row['left_out']}")
        continue
    limit = ""
    if "limit" in row:
        of = row["limit_of"]
        limit = f"ratio {row['limit']:g}" if of == "ratio" else \
            ("+" if of == "difference_ns" else "") + text(row["limit"])
        limit += "" if row["met"] else "  MISSED"
    ratio = f"{row['ratio']:8.3f}" if "ratio" in row else f"{'-':>8}"
    if "ratios" in row:
        limit += f"  ({row['ratios'][0]:.3f} to {row['ratios'][1]:.3f} in {row['runs']} processes)"
    print(f"{row['name']:50} {text(row['ours_ns']):>12} {text(row.get('theirs_ns')):>12} {ratio}"
          f"  {limit}")
TABLE
{
    cat "$work/machine"
    echo
    cat "$work/table"
    if [ -s "$work/gemm" ]; then echo && cat "$work/gemm"; fi
    echo
    if [ "${#failed[@]}" -gt 0 ]; then
        echo "bench-gpu: FAILED: ${failed[*]}"
    else
        echo "bench-gpu: all benchmarks ran in $SECONDS s"
    fi
} >"$work/bench.txt"
if [ -n "$out" ]; then
    cp "$work/bench.txt" "$work/bench.jsonl" "$out/"
fi
echo
cat "$work/bench.txt"
[ "${#failed[@]}" -eq 0 ]
