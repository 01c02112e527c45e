#!/usr/bin/env bash
# tests/slurm/cluster.sh FOLDER PORT... (six free ports)
#
# Runs a Slurm of four nodes with eight GPUs each in FOLDER: munged, MariaDB, slurmdbd, slurmctld and four slurmd, all on the
# loopback and none of them known to the machine. Prints "ready" once the nodes are idle, and runs until its standard input
# ends; then it ends all that it started, jobs included. As root or as any other user.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
folder=$(realpath "$1")
shift
ports=("$@")
user=$(id -un)
pids=()

say() { printf 'cluster: %s\n' "$*" >&2; }

# All that has this folder's settings in its environment, or was started here: jobs outlive their slurmd.
ours() {
    grep --files-with-matches --text --fixed-strings "SLURM_CONF=$folder/etc/slurm.conf" /proc/[0-9]*/environ 2>/dev/null |
        cut -d / -f 3 | grep --invert-match --line-regexp "$$" || true
}

stop() {
    trap '' TERM INT HUP
    exec >/dev/null
    timeout 10 scancel --user="$user" >/dev/null 2>&1 || true
    sleep 0.2
    [ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    for _ in $(seq 50); do
        left=$(ours)
        [ -n "$left" ] || break
        # shellcheck disable=SC2086
        kill $left 2>/dev/null || true
        sleep 0.1
    done
    # shellcheck disable=SC2046
    kill -KILL $(ours) "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
}
trap stop EXIT
trap 'exit 143' TERM INT HUP

settings() {
    mkdir -p "$folder"/{etc,run,log,spool,dev}
    local number
    # A GPU needs a file to be there.
    for number in 0 1 2 3 4 5 6 7; do ln -sf /dev/null "$folder/dev/gpu$number"; done
    local here
    here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
    for file in slurm.conf slurmdbd.conf gres.conf; do
        sed -e "s#@DIR@#$folder#g" -e "s#@USER@#$user#g" -e "s#@CTLD@#${ports[0]}#" -e "s#@DBD@#${ports[1]}#" \
            -e "s#@D1@#${ports[2]}#" -e "s#@D2@#${ports[3]}#" -e "s#@D3@#${ports[4]}#" -e "s#@D4@#${ports[5]}#" \
            "$here/$file" >"$folder/etc/$file"
    done
    chmod 600 "$folder/etc/slurmdbd.conf"
    (umask 077 && head -c 128 /dev/urandom >"$folder/etc/munge.key")
    # The hook of submissions is copied: the tests change its quota file and not the hook.
    sed -e "s#^local QUOTA_FILE = .*#local QUOTA_FILE = \"$folder/quota\"#" "$here/../../deploy/slurm/job_submit.lua" >"$folder/etc/job_submit.lua"
}

until_so() {
    local what=$1 end=$((SECONDS + 30)) pid
    shift
    while [ "$SECONDS" -lt "$end" ]; do
        "$@" >/dev/null 2>&1 && return
        # One that has ended, as where its port was taken meanwhile, does not come back: the next attempt has other ports.
        for pid in "${pids[@]}"; do
            kill -0 "$pid" 2>/dev/null || break 2
        done
        sleep 0.1
    done
    say "$what: not within 30 s, or a daemon has ended; the ends of the logs:"
    tail -n 5 "$folder"/log/* >&2
    exit 1
}

database() {
    local as=()
    [ "$(id -u)" -ne 0 ] || as=(--user=root)
    if [ ! -d "$folder/db" ]; then
        mariadb-install-db --no-defaults "${as[@]}" --datadir="$folder/db" --auth-root-authentication-method=normal \
            --skip-test-db >"$folder/log/install" 2>&1
        # Its tables of users are not asked: see --skip-grant-tables.
    fi
    mariadbd --no-defaults "${as[@]}" --datadir="$folder/db" --socket="$folder/run/mysql.sock" \
        --pid-file="$folder/run/mysql.pid" --skip-networking --skip-grant-tables --innodb-buffer-pool-size=32M \
        --innodb-flush-log-at-trx-commit=0 --innodb-log-file-size=8M >"$folder/log/mariadb" 2>&1 &
    pids+=($!)
}

idle_nodes() { [ "$(timeout 5 sinfo --noheader --format=%T --Node | grep --count idle)" -eq 4 ]; }

export SLURM_CONF=$folder/etc/slurm.conf MYSQL_UNIX_PORT=$folder/run/mysql.sock
settings
munged --foreground --force --key-file="$folder/etc/munge.key" --socket="$folder/run/munge.sock" \
    --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged" --seed-file="$folder/run/munge.seed" \
    >"$folder/log/munged.out" 2>&1 &
pids+=($!)
database
until_so MariaDB test -S "$folder/run/mysql.sock"
slurmdbd -D >"$folder/log/slurmdbd.out" 2>&1 &
echo $! >"$folder/run/slurmdbd"
pids+=($!)
until_so slurmdbd timeout 5 sacctmgr --noheader show cluster
timeout 20 sacctmgr --immediate add cluster t >/dev/null
slurmctld -D >"$folder/log/slurmctld.out" 2>&1 &
pids+=($!)
for node in g1 g2 g3 g4; do
    slurmd -D -N "$node" >"$folder/log/slurmd-$node.out" 2>&1 &
    pids+=($!)
done
until_so nodes idle_nodes
echo ready
# Until nobody holds the other end.
cat >/dev/null
