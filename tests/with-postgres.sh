#!/usr/bin/env bash
# tests/with-postgres.sh COMMAND [ARGUMENT...]
#
# Starts a private Postgres in a fresh temporary folder, exports HEADROOM_TEST_POSTGRES (the URL of its maintenance
# database), runs COMMAND as the caller, stops the server and removes the folder. The exit code is COMMAND's.
#
# HEADROOM_TEST_FSYNC=on   every commit reaches the disk, as in production: for benches. Off by default, since the data
#                          of a test live as long as the test.
# HEADROOM_TEST_PG_BIN=DIR the folder of initdb and pg_ctl, where it is none of the usual ones.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # where runuser lives, which not every PATH has

say() { printf 'with-postgres: %s\n' "$*" >&2; }

find_binaries() {
    local candidate
    for candidate in "${HEADROOM_TEST_PG_BIN:-}" \
        "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort --version-sort | tail -n 1)" \
        "$(dirname "$(command -v pg_ctl || echo /missing/pg_ctl)")"; do
        if [ -x "$candidate/initdb" ] && [ -x "$candidate/pg_ctl" ]; then
            printf '%s' "$candidate"
            return
        fi
    done
}

install_postgres() {
    local conf=/etc/postgresql-common/createcluster.conf
    say 'no Postgres found: installing Debian'\''s package'
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update
        # postgresql-common comes first: its setting keeps the server package from creating and starting a cluster.
        apt-get install --yes --no-install-recommends postgresql-common
        echo 'create_main_cluster = false' >>"$conf"
        apt-get install --yes --no-install-recommends postgresql
    } >&2
}

# Postgres refuses to run as root; the caller's own user does otherwise.
as_server_user() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd "$folder" && exec runuser -u postgres -- "$@")
    else
        (cd "$folder" && exec "$@")
    fi
}

stop_server() {
    if [ -f "$folder/data/postmaster.pid" ]; then
        as_server_user "$bin/pg_ctl" --pgdata "$folder/data" --mode immediate --timeout 30 stop >/dev/null ||
            say "the server in $folder did not stop"
    fi
    rm -rf "$folder"
}

# A port is free when Postgres could bind it: a program that asks first and binds later may lose it in between.
start_server() {
    local durability='' attempt
    if [ "${HEADROOM_TEST_FSYNC:-off}" != on ]; then
        durability='-c fsync=off -c synchronous_commit=off -c full_page_writes=off'
    fi
    for attempt in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 12000)) # below the range from which the kernel lends ports to clients
        if as_server_user "$bin/pg_ctl" --pgdata "$folder/data" --log "$folder/log" --timeout 30 --wait start -o \
            "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$folder -c max_connections=400 $durability" \
            >/dev/null 2>&1; then
            return
        fi
    done
    say "the server did not start in $attempt attempts; the end of its log:"
    tail -n 20 "$folder/log" >&2 || true
    return 1
}

# Signals end COMMAND first, with all that it started; the server goes in the EXIT trap.
on_signal() {
    signal_code=$1
    if [ -n "$child" ]; then
        kill -TERM -- "-$child" 2>/dev/null || true
    fi
}

run_command() {
    local code
    set -m # its own process group, so that a signal reaches all of it
    "$@" &
    child=$!
    set +m
    while true; do
        code=0
        wait "$child" || code=$?
        kill -0 "$child" 2>/dev/null || break # else the wait was interrupted by a signal
    done
    return "${signal_code:-$code}"
}

[ $# -gt 0 ] || { say 'usage: tests/with-postgres.sh COMMAND [ARGUMENT...]'; exit 2; }

bin=$(find_binaries)
if [ -z "$bin" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    install_postgres
    bin=$(find_binaries)
fi
[ -n "$bin" ] || {
    say 'no Postgres found: install the server (Debian, Ubuntu: apt-get install postgresql), or set HEADROOM_TEST_PG_BIN'
    exit 1
}

child=''
signal_code=''
folder=$(mktemp -d "${TMPDIR:-/tmp}/headroom-postgres.XXXXXXXX")
trap stop_server EXIT
trap 'on_signal 130; [ -n "$child" ] || exit 130' INT
trap 'on_signal 143; [ -n "$child" ] || exit 143' TERM HUP

# A password, since everyone on this machine reaches the loopback port and this role may run programs.
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
(umask 077 && printf '%s\n' "$password" >"$folder/password")
[ "$(id -u)" -ne 0 ] || chown -R postgres "$folder"
as_server_user "$bin/initdb" --pgdata "$folder/data" --username headroom --pwfile "$folder/password" \
    --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 --no-sync >"$folder/initdb.log" 2>&1 || {
    say 'initdb failed:'
    tail -n 20 "$folder/initdb.log" >&2
    exit 1
}
start_server
export HEADROOM_TEST_POSTGRES="postgres://headroom:$password@127.0.0.1:$port/postgres"
run_command "$@"
