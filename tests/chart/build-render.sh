#!/usr/bin/env bash
# tests/chart/build-render.sh FILE
#
# Builds what renders the chart, of Debian's packages: golang, golang-github-masterminds-sprig-dev, golang-gopkg-yaml.v3-dev.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=${GOCACHE:-${TMPDIR:-/tmp}/headroom-chart-go} GOFLAGS=
cd "$here/render" && go build -o "$1" .
