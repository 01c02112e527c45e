#!/usr/bin/env bash
# tests/fuzz/run.sh [TARGET...]
#
# Fuzzes the targets one after the other, for FUZZ_SECONDS each, from FUZZ_SEED, and writes what came of it to FUZZ_OUT as
# JSON. An input that breaks a promise ends its target, is kept beside FUZZ_OUT, and makes this fail: fix the defect,
# and add it to tests/fuzz/corpus. Needs cargo-fuzz (cargo install cargo-fuzz) and a C++ compiler; the stable toolchain is
# set to take the flags of coverage, since no sanitizer is asked for.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${FUZZ_SECONDS:-120} seed=${FUZZ_SEED:-1} out=$(realpath -m "${FUZZ_OUT:-fuzz.json}")
command -v cargo-fuzz >/dev/null || { echo 'install cargo-fuzz: cargo install cargo-fuzz --locked' >&2; exit 1; }
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$PWD/target/fuzz}
cargo fuzz build --fuzz-dir tests/fuzz/libfuzzer --sanitizer none
programs=$(find "$CARGO_TARGET_DIR" -maxdepth 1 -name '*-linux-*' -type d -print -quit)/release

# Files that targets write, and inputs that are new: in memory where there is such a folder.
work=$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)
# Differences from the commit are listed, too.
commit=$(git rev-parse HEAD)$(git diff --quiet HEAD -- . ':!tests/fuzz/corpus' || echo -dirty)
entries='' found=0
for target in "${targets[@]}"; do
    mkdir -p "$work/$target"
    began=$SECONDS status=0
    # Longer than the longest input that is kept; a second is long for one input, and a half GiB much.
    "$programs/$target" -seed="$seed" -max_total_time="$seconds" -max_len=16384 -timeout=10 -report_slow_units=1 \
        -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="$(dirname "$out")/fuzz-$target-" \
        "$work/$target" "tests/fuzz/corpus/$target" >"$work/log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
    coverage=$(grep -o 'cov: [0-9]*' "$work/log" | tail -1 | grep -o '[0-9]*' || echo 0)
    slow=$(grep -c 'Slowest unit' "$work/log" || true)
    if [ "$status" -ne 0 ]; then
        found=$((found + 1))
        tail -n 40 "$work/log" >&2
    fi
    printf '%-12s %9s runs in %4s s, coverage %s, findings %s\n' \
        "$target" "${runs:-0}" $((SECONDS - began)) "${coverage:-0}" $((status ? 1 : 0))
    entries+=$(printf '{"target":"%s","executions":%s,"seconds":%s,"coverage":%s,"findings":%s,"slow_inputs":%s,"seed":%s,"commit":"%s"}' \
        "$target" "${runs:-0}" $((SECONDS - began)) "${coverage:-0}" $((status ? 1 : 0)) "$slow" "$seed" "$commit"),
done
printf '[%s]\n' "${entries%,}" >"$out"
exit $((found > 0))
