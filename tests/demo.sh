#!/usr/bin/env bash
# tests/demo.sh [FOLDER]
#
# The main job on a synthetic cluster, in a folder of its own (target/demo): no network but loopback, no database server, and no process
# is left behind. `make demo` compiles the programs of a first quota before; without FOLDER the program of the report is compiled when
# its turn comes.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
PATH=$(cd "$target/debug" && pwd):$PATH
out=$target/demo
if [ -n "${1:-}" ]; then
    out=$1
    # Files that are there may be needed.
    [ ! -e "$out" ] || { echo "$out is there already: name a folder that is not" >&2; exit 2; }
fi
rm -rf "$out"
mkdir -p "$out"
unset DATABASE_URL "${!HEADROOM_@}" # the demo is the demo, with any settings of the caller
export HEADROOM_DATABASE=sqlite://$out/headroom.db

command -v curl >/dev/null || {
    echo 'the demo asks the service with curl, which is not installed (Debian, Ubuntu: apt-get install curl)' >&2
    exit 1
}

pool='cluster=gfs-a100&gpu_model=A100-SXM4-80GB'
times=''
began=$(date +%s%N)

tenths() { printf '%d.%01d' $(($1 / 1000000000)) $(($1 / 100000000 % 10)); }

# A step has a name for the table of times, and says in a sentence what it does.
step_name=''
step_began=$began
finish_step() {
    [ -z "$step_name" ] || times+=$(printf '  %6s s  %s' "$(tenths $(($(date +%s%N) - step_began)))" "$step_name")$'\n'
}
step() {
    finish_step
    step_name=$1 step_began=$(date +%s%N)
    printf '\n== %s: %s\n' "$1" "$2"
}

# Shows a command as a user would type it, and runs it.
run() {
    local word shown='$'
    for word in "$@"; do
        case $word in *' '*) shown+=" '$word'" ;; *) shown+=" $word" ;; esac
    done
    printf '%s\n' "$shown"
    "$@"
}

service=''
stop() {
    if [ -n "$service" ]; then
        kill -TERM "$service" 2>/dev/null || true
        wait "$service" 2>/dev/null || true
        service=''
    fi
}
trap stop EXIT

pretty() {
    if command -v jq >/dev/null; then jq .; elif command -v python3 >/dev/null; then python3 -m json.tool; else cat; fi
}

# What became of a model's bound over the last week, from metrics.csv: a share in percent, or GPUs.
metric() { awk -F, -v model="$1" -v name="$2:$3" '$1 == model && $5 == 4 && $6 == name { print $7; exit }' "$out/report/metrics.csv"; }
held() { metric "$1" pool_under "$2" | awk '{ printf "%.0f %%", 100 * (1 - $1) }'; }
kept_back() { metric "$1" pool_over_reserved "$2" | awk '{ printf "%.0f", $1 }'; }

# The number behind a key of a JSON answer, without digits behind the point.
number() { sed -n "s/.*\"$1\": *\(-\{0,1\}[0-9]*\).*/\1/p" "$out/quota.json" | head -1; }

cat <<'TEXT'
A GPU cluster keeps cards idle, because nobody knows whether high-priority work will want them back within the hour.
Headroom forecasts that work, and hands out what will be left as spot quota that keeps a promise: a task admitted for 4
hours runs 4 hours with the probability that you chose. Here it does so for a synthetic cluster, from jobs to a quota.
TEXT

step Generate 'five weeks of jobs on 287 nodes with 8 A100 GPUs each, seeded, in the shares that the GFS paper publishes'
run datasets generate --preset gfs-a100 --days 35 --seed 7 --out "$out"

step Ingest 'the jobs become hourly demand by organization, the nodes the capacity'
run datasets ingest --format gfs-jobs "$out/job_info_df.csv" --nodes "$out/node_info_df.csv" --cluster gfs-a100 \
    --epoch 2024-03-01T00:00:00+08:00 --time-zone Asia/Shanghai --calendar CN
run datasets describe

step Train 'how much will high-priority work of each organization need over the next 6 hours, as a distribution?'
run train

step Serve 'the quota over HTTP, with a clock that starts after the newest usage (--as-of)'
printf '$ quota-service --as-of latest\n'
: >"$out/service.out" # The shell may read it before the service in the background has opened it.
quota-service --as-of latest --listen 127.0.0.1:0 >"$out/service.out" 2>"$out/service.log" &
service=$!
for _ in $(seq 600); do
    url=$(sed -n 's/^listening on //p' "$out/service.out")
    if [ -n "$url" ] && curl --silent --fail --output /dev/null "$url/readyz"; then break; fi
    kill -0 "$service" 2>/dev/null || { cat "$out/service.log" >&2; exit 1; }
    sleep 0.1
done
printf '$ curl "%s/quota?%s&hours=4"\n' "$url" "$pool"
curl --silent --show-error --fail "$url/quota?$pool&hours=4" | pretty >"$out/quota.json"
cat "$out/quota.json"

step Explain 'why this quota? Every step of it'
printf '$ curl "%s/v1/quota/explain?%s&hours=4"\n' "$url" "$pool"
curl --silent --show-error --fail "$url/v1/quota/explain?$pool&hours=4" | pretty >"$out/explain.json"
awk '/"steps": \[/ { inside = 1; next } /\]/ { if (inside) exit } inside' "$out/explain.json"
stop

step Backtest 'the last week again, each hour forecast from the hours before it alone, beside simple rules'
run train backtest --horizon 4h --from 2024-03-29T00:00:00+08:00 --to 2024-04-04T23:00:00+08:00 \
    --out "$out/forecasts.csv" --pool-out "$out/pool_bounds.csv"

# Where the caller names a folder, the caller has built all programs.
if [ -z "${1:-}" ]; then
    step Compile 'the programs of the report and of the statement: Parquet is the largest of the dependencies'
    run "${CARGO:-cargo}" build --package notebooks-export --package simulator --locked
fi

step Report 'the backtest as a page to read, a notebook, and tables'
run notebooks-export report --forecasts "$out/forecasts.csv" --pool-bounds "$out/pool_bounds.csv" \
    --capacity "$(number capacity_gpus)" --time-zone Asia/Shanghai --title 'Demo: the last week of a synthetic cluster' \
    --out "$out/report"

step Statement 'the same jobs played on these nodes: where would their GPU time have gone?'
run simulate --nodes "$out/node_info_df.csv" --jobs "$out/job_info_df.csv" --policy gfs --predictor live --time-zone Asia/Shanghai \
    --cluster gfs-a100 --statement "$out/statement.csv"
finish_step
serving=$(sed -n 's/.*"aggregation": *"\([a-z-]*\)".*/\1/p' "$out/quota.json")

cat <<TEXT

== Done in $(tenths $(($(date +%s%N) - began))) s; the service is stopped and nothing is left running
$times
Of $(number capacity_gpus) GPUs, high-priority work will need at most $(number demand_bound_gpus) over the next 4 hours, with 90 % probability. So
$(number quota_gpus) GPUs may run spot tasks that are promised 4 hours; with none running yet, all of them can be admitted now.
How such bounds did over the last week, when the promise is 90 %: this one ($serving) held at $(held orglinear "$serving") of the hours and
kept $(kept_back orglinear "$serving") GPUs back that nobody needed; the peak of the week before, a rule in production use, held at $(held peak-week pooled)
and kept back $(kept_back peak-week pooled).

Where to look next
  $out/report/report.html      open it in a browser: forecasts against demand, promises kept, what went wrong
  $out/explain.json            every number behind that quota
  $out/report/report.ipynb     the scores in Jupyter, from forecasts.parquet beside it
  $out/statement.csv           GPU time by organization and day
  HEADROOM_DATABASE=$HEADROOM_DATABASE quota-service --as-of latest
                               the same service, to ask by yourself
  README.md                    the same with your own usage
TEXT
