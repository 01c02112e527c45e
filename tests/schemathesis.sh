#!/usr/bin/env bash
# tests/schemathesis.sh
#
# Holds a running service against its own OpenAPI document with Schemathesis: answers that the document does not have,
# bodies that are not as it says, faults of the service. It is installed into a folder that is thrown away. The service runs
# on a synthetic cluster whose usage ends now, in SQLite, on a free port of loopback. SCHEMATHESIS_SEED, SCHEMATHESIS_EXAMPLES
# (of each operation) and SCHEMATHESIS_OUT (figures as JSON) may be set. `make schemathesis` builds the programs first.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.32.5 seed=${SCHEMATHESIS_SEED:-1} examples=${SCHEMATHESIS_EXAMPLES:-60}
out=$(realpath -m "${SCHEMATHESIS_OUT:-schemathesis.json}") commit=$(git rev-parse HEAD)
target=${CARGO_TARGET_DIR:-target}
PATH=$(cd "$target/debug" && pwd):$PATH
unset DATABASE_URL "${!HEADROOM_@}"
work=$(mktemp -d)
service=''
stop() {
    if [ -n "$service" ]; then
        kill -TERM "$service" 2>/dev/null || true
        wait "$service" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap stop EXIT

python3 -m venv "$work/python"
"$work/python/bin/pip" install --quiet "schemathesis==$version"

export HEADROOM_DATABASE=sqlite://$work/headroom.db
datasets generate --preset small --days 20 --seed 7 --start "$(date -u -d '20 days ago' +%Y-%m-%dT%H:00:00Z)" --out "$work/made"
datasets ingest --format usage "$work/made/usage.csv" --time-zone Europe/Berlin --capacity 900
train --horizon 4h --model seasonal-24h
token=$(quota-service token create --name schemathesis --role admin 2>/dev/null)
: >"$work/service.out" # Read below, maybe before the service in the background has opened it.
quota-service --listen 127.0.0.1:0 >"$work/service.out" 2>"$work/service.log" &
service=$!
for _ in $(seq 150); do
    url=$(sed -n 's/^listening on //p' "$work/service.out")
    if [ -n "$url" ] && curl --silent --fail --output /dev/null "$url/readyz"; then break; fi
    kill -0 "$service" 2>/dev/null || { cat "$work/service.log" >&2; exit 1; }
    sleep 0.1
done
for node in n1 n2; do
    curl --silent --show-error --fail --output /dev/null -X PUT "$url/v1/nodes/$node" -H 'content-type: application/json' -H "authorization: Bearer $token" \
        -d '{"cluster": "demo", "gpu_model": "A100-SXM4-80GB", "gpus": 8}'
done

# The two streams never end. Names, times and amounts are more than their JSON types say, and pools have to be there: that a
# body of the right types is refused (positive_data_acceptance) is no fault.
status=0
# It leaves a folder of its own where it runs.
cd "$work"
"$work/python/bin/st" run "$url/openapi.json" --exclude-path /v1/quota/stream --exclude-path /v1/events \
    --phases examples,coverage,fuzzing --checks all --exclude-checks positive_data_acceptance --continue-on-failure \
    --max-examples "$examples" --seed "$seed" --request-timeout 60 --no-color --header "Authorization: Bearer $token" \
    --report json --report-dir "$work/report" || status=$?
if grep -q ' ERROR ' "$work/service.log"; then
    grep ' ERROR ' "$work/service.log" >&2
    status=1
fi
"$work/python/bin/python" - "$work"/report/*.json "$out" "$commit" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
cases = report["test_cases"]
figures = {
    "cases": cases["generated"],
    "failures": cases["unique_failures"],
    "errors": cases["errored"],
    "operations": report["operations"]["tested"],
    "seed": report["seed"],
    "version": report["schemathesis_version"],
    "commit": sys.argv[3],
}
json.dump(figures, open(sys.argv[2], "w"))
print(f"schemathesis: {figures['cases']} cases of {figures['operations']} operations, {figures['failures']} failures")
PYTHON
exit "$status"
