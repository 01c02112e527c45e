#!/usr/bin/env python3
"""Packs the chart as Helm does, and as an OCI artefact.

package.py FOLDER

Writes FOLDER/headroom-VERSION.tgz, and FOLDER/oci, an OCI image layout with the chart in it, which any client of registries can
push:

    oras cp --from-oci-layout FOLDER/oci:VERSION registry.example/charts/headroom:VERSION
    skopeo copy oci:FOLDER/oci:VERSION docker://registry.example/charts/headroom:VERSION
    helm push FOLDER/headroom-VERSION.tgz oci://registry.example/charts

helm install headroom oci://registry.example/charts/headroom --version VERSION takes it from there. The same chart gives the same
bytes. Needs Python alone.
"""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile

CHART = pathlib.Path(__file__).resolve().parent / "headroom"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def metadata():
    """The fields of Chart.yaml, which has one on each line."""
    lines = (CHART / "Chart.yaml").read_text().splitlines()
    fields = (line.split(": ", 1) for line in lines if ": " in line and not line.startswith(("#", " ")))
    return {key: value.strip().strip('"') for key, value in fields}


def ignored():
    return [line for line in (CHART / ".helmignore").read_text().splitlines() if line and not line.startswith("#")]


def packed():
    """The chart as a tar file, compressed: in the order of names, without times and owners."""
    patterns = ignored()
    files = sorted(path for path in CHART.rglob("*") if path.is_file())
    files = [path for path in files if path.name != ".helmignore" and not any(path.match(one) for one in patterns)]
    # Helm reads Chart.yaml first.
    files.sort(key=lambda path: path.name != "Chart.yaml")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            entry = tarfile.TarInfo(f"headroom/{path.relative_to(CHART).as_posix()}")
            content = path.read_bytes()
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    compressed = io.BytesIO()
    with gzip.GzipFile(fileobj=compressed, mode="wb", mtime=0, filename="") as stream:
        stream.write(plain.getvalue())
    return compressed.getvalue()


def stored(layout, media_type, content):
    """Keeps a blob. Answers its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def written(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main(folder):
    folder = pathlib.Path(folder)
    chart, archive = metadata(), packed()
    version = chart["version"]
    layout = folder / "oci"
    layout.mkdir(parents=True, exist_ok=True)
    (folder / f"headroom-{version}.tgz").write_bytes(archive)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": stored(layout, CONFIG, written(chart)),
        "layers": [stored(layout, LAYER, archive)],
        "annotations": {
            "org.opencontainers.image.title": chart["name"],
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.description": chart["description"],
        },
    }
    entry = stored(layout, MANIFEST, written(manifest))
    entry["annotations"] = {"org.opencontainers.image.ref.name": version}
    (layout / "index.json").write_bytes(written({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}))
    (layout / "oci-layout").write_bytes(written({"imageLayoutVersion": "1.0.0"}))
    print(f"{folder}/headroom-{version}.tgz {entry['digest']}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
