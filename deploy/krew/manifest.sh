#!/usr/bin/env bash
# Prints the krew manifest of kubectl-headroom for one release: the digests are those of the archives that it is given.
#
#   deploy/krew/manifest.sh v0.1.0 https://releases.example/headroom linux-amd64=dist/kubectl-headroom-linux-amd64.tar.gz
#
# An archive holds kubectl-headroom and LICENSE. To try one: kubectl krew install --manifest=headroom.yaml --archive=ARCHIVE
set -euo pipefail

if [ $# -lt 3 ]; then
  echo "usage: ${0##*/} VERSION BASE_URL OS-ARCH=ARCHIVE..." >&2
  exit 2
fi
version=$1 base=${2%/}
shift 2
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
  echo "version $version: krew wants one such as v0.1.0" >&2
  exit 2
fi

cat "$(dirname "$0")/headroom.yaml" | sed "s|^  version: .*|  version: $version|"
for one in "$@"; do
  platform=${one%%=*} archive=${one#*=}
  if [ ! -f "$archive" ]; then
    echo "$archive: no such file" >&2
    exit 3
  fi
  digest=$(sha256sum "$archive" | cut -d ' ' -f 1)
  cat <<END
    - selector:
        matchLabels: {os: ${platform%%-*}, arch: ${platform#*-}}
      uri: $base/$version/$(basename "$archive")
      sha256: $digest
      bin: kubectl-headroom
      files:
        - {from: kubectl-headroom, to: .}
        - {from: LICENSE, to: .}
END
done
