#!/bin/sh
# poll.sh [--api URL] [--token-file FILE] [--ca FILE] [--count N] CLUSTER GPU_MODEL HOURS
#
# Prints the quota of a pool as one line of JSON, and each new one as soon as there is one; --count ends it after so many.
# Needs curl. It asks with the tag of what it has seen and waits for another answer (If-None-Match, wait=30s), so that a quiet
# quota costs two requests a minute. Where the service is away or busy it tries again: after Retry-After, else after 1, 2, 4
# and at most 30 seconds. A scheduler goes on with the last answer until its valid_until, and admits nothing new after it.
#
# Ends with 2 where it is called wrongly, with 1 where trying again would not help: no token, an unknown pool.
set -eu

usage() {
    sed -n '2s/^# /usage: /p' "$0" >&2
    exit 2
}

api=http://127.0.0.1:8080 token_file='' ca='' count=0
while [ $# -gt 0 ]; do
    case $1 in
        --api | --token-file | --ca | --count)
            [ $# -ge 2 ] || usage
            case $1 in
                --api) api=${2%/} ;;
                --token-file) token_file=$2 ;;
                --ca) ca=$2 ;;
                --count) count=$2 ;;
            esac
            shift 2
            ;;
        -*) usage ;;
        *) break ;;
    esac
done
[ $# -eq 3 ] || usage
cluster=$1 gpu_model=$2 hours=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
etag='' # of the last answer, with its quotes
pause=1
seen=0

# Answers the status, 000 where there is none. The token goes by standard input: arguments are seen by everybody on the machine.
ask() {
    : >"$folder/head"
    {
        if [ -n "$token_file" ]; then
            # Read each time: it may have been replaced.
            printf 'header = "Authorization: Bearer %s"\n' "$(tr -d '\r\n' <"$token_file")"
        fi
        if [ -n "$etag" ]; then
            printf 'header = "If-None-Match: %s"\n' "$(printf '%s' "$etag" | sed 's/"/\\"/g')"
            printf 'data-urlencode = "wait=30s"\n'
        fi
        if [ -n "$ca" ]; then
            printf 'cacert = "%s"\n' "$ca"
        fi
    } | curl --config - --silent --show-error --connect-timeout 5 --max-time 75 --get \
        --data-urlencode "cluster=$cluster" --data-urlencode "gpu_model=$gpu_model" --data-urlencode "hours=$hours" \
        --dump-header "$folder/head" --output "$folder/body" --write-out '%{http_code}' "$api/quota" || true
}

header() {
    tr -d '\r' <"$folder/head" | awk -v name="$1:" 'tolower($1) == name { $1 = ""; sub(/^ /, ""); value = $0 } END { print value }'
}

later() {
    wait_s=$(header retry-after)
    case $wait_s in
        '' | *[!0-9]*) wait_s=$pause ;;
        # Of what a proxy names, a second is kept at least, ten minutes at most.
        0 | 00 | 000) wait_s=1 ;;
        ????*) wait_s=600 ;;
    esac
    echo "poll.sh: $1; again in $wait_s s" >&2
    sleep "$wait_s"
    pause=$((pause * 2))
    [ "$pause" -le 30 ] || pause=30
}

while :; do
    status=$(ask)
    case $status in
        200)
            pause=1
            etag=$(header etag)
            cat "$folder/body"
            echo
            seen=$((seen + 1))
            [ "$seen" -ne "$count" ] || exit 0
            ;;
        304)
            pause=1
            # A service that stops answers at once.
            sleep 1
            ;;
        000 | '') later 'the service does not answer' ;;
        429 | 5??) later "the service answers $status" ;;
        *)
            echo "poll.sh: the service answers $status: $(cat "$folder/body")" >&2
            exit 1
            ;;
    esac
done
