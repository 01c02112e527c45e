#!/usr/bin/env bash
# tests/with-programs.sh COMMAND [ARGUMENT...]
#
# Installs what tests drive and this machine lacks, as Debian has it: Chromium with its driver for the dashboard, Prometheus for
# what scrapes us and what we read, Go for the chart, Slurm with its database. Then runs COMMAND. Where nothing can be installed (no root, no apt-get) it says so, and the
# tests that need them say that they were not run.
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
for program in slurmctld slurmd slurmdbd; do
    [ -x "/usr/sbin/$program" ] || { missing+=(slurm-wlm slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-client); break; }
done
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
        {
            apt-get update &&
                DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
        } >&2 || say "not all of ${missing[*]} could be installed: the tests that need them are not run"
        # The command below takes the place of this shell, whose trap it does not know.
        [ -z "$(trap -p EXIT)" ] || rm -f "$policy"
        trap - EXIT
    else
        say "not installed: ${missing[*]}; the tests that need them are not run"
    fi
fi

# The schemas of Kubernetes; where they cannot be fetched, the test that needs them says so. They lie in the target folder, which
# outlives a checkout.
venv=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/chart-python
wanted=$(dirname "$0")/chart/requirements.txt
if [ -z "${HEADROOM_CHART_PYTHON:-}" ] && command -v python3 >/dev/null; then
    if ! cmp -s "$wanted" "$venv/requirements.txt"; then
        { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --requirement "$wanted" && cp "$wanted" "$venv/"; } >&2 ||
            say 'schemas of Kubernetes could not be fetched: the test that needs them is not run'
    fi
    if cmp -s "$wanted" "$venv/requirements.txt"; then
        HEADROOM_CHART_PYTHON=$(cd "$venv" && pwd)/bin/python
        export HEADROOM_CHART_PYTHON
    fi
fi
[ $# -eq 0 ] || exec "$@"
