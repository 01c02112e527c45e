#!/usr/bin/env bash
# tests/chart/validate.sh
#
# Renders the chart of deploy/chart/headroom with each file of tests/chart/values and holds what comes out against the schemas of
# Kubernetes, strictly; and each file of values against values.schema.json. Needs Go with sprig and yaml.v3 as Debian has them,
# and Python. HEADROOM_CHART_PYTHON names a Python that has the packages of requirements.txt; without, they are fetched from the
# package index into a folder that is deleted in the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python=${HEADROOM_CHART_PYTHON:-}
if [ -z "$python" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
    python=$folder/venv/bin/python
fi
"$here/build-render.sh" "$folder/render"
"$python" -B "$here/validate.py" "$folder/render" "$@"
