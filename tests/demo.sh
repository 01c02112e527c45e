#!/usr/bin/env bash
# tests/demo.sh
#
# The main job on made-up usage, in a folder of its own: no network but loopback, no database server, and no process is
# left behind. `make demo` builds the programs first.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
PATH=$(cd "$target/debug" && pwd):$PATH
out=$target/demo
rm -rf "$out"
mkdir -p "$out"
unset DATABASE_URL "${!HEADROOM_@}" # the demo is the demo, whatever the caller has set
export HEADROOM_DATABASE=sqlite://$out/headroom.db

command -v curl >/dev/null || {
    echo 'the demo asks the service with curl, which is not installed (Debian, Ubuntu: apt-get install curl)' >&2
    exit 1
}

step() { printf '\n== %s\n' "$1"; }

# Runs a command, shows it as a user would type it, and says how long it took.
run() {
    local before
    before=$(date +%s%N)
    printf '$ %s\n' "$*"
    "$@"
    printf '  (%d.%01d s)\n' $((($(date +%s%N) - before) / 1000000000)) $((($(date +%s%N) - before) / 100000000 % 10))
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

step '1. Make up five weeks of usage: 12 organizations on one pool of A100 GPUs (seeded, calibrated to no real cluster)'
run datasets generate --days 35 --organizations 12 --seed 7 --out "$out"

step '2. Read it into the database. The pool has 320 GPUs'
run datasets ingest --format usage "$out/usage.csv" --time-zone Asia/Shanghai --capacity 320
run datasets describe

step '3. Train OrgLinear: how much will high-priority work need over the next 4 hours?'
run train --horizon 4h

step '4. Play the last three days again, each hour forecast from the hours before it alone, beside simple rules'
run train backtest --horizon 4h --from 2024-04-02T00:00:00+08:00 --to 2024-04-04T23:00:00+08:00 \
    --out "$out/forecasts.csv" --pool-out "$out/pool_bounds.csv"

step '5. Export the scores and the forecasts for notebooks'
run notebooks-export report --forecasts "$out/forecasts.csv" --pool-bounds "$out/pool_bounds.csv" --out "$out/report"

step '6. Serve the spot quota, with a clock that starts after the newest usage'
quota-service --as-of latest --listen 127.0.0.1:0 >"$out/service.out" 2>"$out/service.log" &
service=$!
for _ in $(seq 150); do
    url=$(sed -n 's/^listening on //p' "$out/service.out")
    if [ -n "$url" ] && curl --silent --fail --output /dev/null "$url/readyz"; then break; fi
    kill -0 "$service" 2>/dev/null || { cat "$out/service.log" >&2; exit 1; }
    sleep 0.2
done
query='cluster=demo&gpu_model=A100-SXM4-80GB&hours=4'
printf '$ curl "%s/quota?%s"\n' "$url" "$query"
curl --silent --show-error --fail "$url/quota?$query" >"$out/quota.json"
pretty <"$out/quota.json"
printf '$ curl "%s/v1/quota/explain?%s"   the steps of it:\n' "$url" "$query"
curl --silent --show-error --fail "$url/v1/quota/explain?$query" | pretty >"$out/explain.json"
awk '/"steps": \[/ { inside = 1; next } /\]/ { if (inside) exit } inside' "$out/explain.json"
stop

step 'Done; the service is stopped. Where to look next'
cat <<TEXT
  $out/explain.json            every number behind that quota
  $out/report/metrics.csv      errors, coverage and pinball losses, over all, by step and by organization
  $out/report/forecasts.parquet  every forecast beside what came, for pandas or polars
  HEADROOM_DATABASE=$HEADROOM_DATABASE quota-service --as-of latest   the same service, to ask by yourself
  README.md                    the same with your own usage
TEXT
