#!/usr/bin/env bash
# tests/with-programs.sh COMMAND [ARGUMENT...]
#
# Installs what tests drive and this machine lacks, as Debian has it: Chromium with its driver for the dashboard, Prometheus for
# what scrapes us and what we read, Go for the chart, Slurm with its database; from PyPI the schemas of Kubernetes, and what the Python client is tested with. Then
# runs COMMAND. Where nothing can be installed (no root, no apt-get, no network) it says so, and the tests that need them say that they were
# not run.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'with-programs: %s\n' "$*" >&2; }

missing=()
[ -x /usr/bin/chromium ] || missing+=(chromium)
[ -x /usr/bin/chromedriver ] || missing+=(chromium-driver)
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
# Renders the chart of deploy/chart: there is no Helm in Debian.
command -v go >/dev/null || missing+=(golang-go)
[ -d /usr/share/gocode/src/github.com/Masterminds/sprig ] || missing+=(golang-github-masterminds-sprig-dev)
[ -d /usr/share/gocode/src/gopkg.in/yaml.v3 ] || missing+=(golang-gopkg-yaml.v3-dev)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
# A Slurm with its accounting, and the interpreter of its hook.
slurm=(slurm-wlm slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-client)
has_slurm() { [ -x /usr/sbin/slurmctld ] && [ -x /usr/sbin/slurmd ] && [ -x /usr/sbin/slurmdbd ] && [ -x /usr/bin/sbatch ]; }
has_slurm || missing+=("${slurm[@]}")
[ -x /usr/sbin/munged ] || missing+=(munge)
[ -x /usr/sbin/mariadbd ] || missing+=(mariadb-server)
command -v lua5.3 >/dev/null || missing+=(lua5.3)
# Text in pictures of pages needs a font.
fc-list 2>/dev/null | grep -q . || missing+=(fonts-dejavu-core)

if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing ${missing[*]}"
        # No package starts a server of its own, which would take a port and scrape.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e "$policy" ]; then
            trap 'rm -f "$policy"' EXIT
            printf '#!/bin/sh\nexit 101\n' >"$policy"
            chmod 755 "$policy"
        fi
        install() { DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@" >&2; }
        if ! { apt-get update >&2 && install "${missing[@]}"; }; then
            # A package that this release lacks keeps no other from being installed.
            absent=()
            for package in "${missing[@]}"; do install "$package" || absent+=("$package"); done
            [ "${#absent[@]}" -eq 0 ] || say "could not be installed: ${absent[*]}; the tests that need them are not run"
        fi
        # The command below takes the place of this shell, whose trap it does not know.
        [ -z "$(trap -p EXIT)" ] || rm -f "$policy"
        trap - EXIT
    else
        say "not installed: ${missing[*]}; the tests that need them are not run"
    fi
fi

has_slurm || say "there is no Slurm: its tests need ${slurm[*]} (22.05 or newer), munge and mariadb-server of this machine's distribution"

# virtual_environment NAME REQUIREMENTS VARIABLE TEXT
#
# Packages of PyPI, in an environment of their own in the target folder, which outlives a checkout; VARIABLE names its interpreter. Where they
# cannot be fetched, the tests that need them say so.
virtual_environment() {
    local venv=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/$1 wanted
    wanted=$(dirname "$0")/$2
    [ -z "${!3:-}" ] && command -v python3 >/dev/null || return 0
    if ! cmp -s "$wanted" "$venv/requirements.txt"; then
        { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --requirement "$wanted" && cp "$wanted" "$venv/"; } >&2 ||
            say "$4 could not be fetched: the tests that need them are not run"
    fi
    if cmp -s "$wanted" "$venv/requirements.txt"; then
        export "$3=$(cd "$venv" && pwd)/bin/python"
    fi
}
virtual_environment chart-python chart/requirements.txt HEADROOM_CHART_PYTHON 'schemas of Kubernetes'
virtual_environment python python/requirements.txt HEADROOM_PYTHON 'packages of Python'
[ $# -eq 0 ] || exec "$@"
