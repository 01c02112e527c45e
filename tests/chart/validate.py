"""Holds the rendered chart against the schemas of Kubernetes, and values against values.schema.json.

validate.py RENDERER [--mutant KIND PATH VALUE]...

A mutant is a field that is set in every manifest of a kind after rendering, to see that the check finds it:
--mutant Deployment spec.replica 2
"""

import json
import pathlib
import subprocess
import sys

import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent.parent / "deploy" / "chart" / "headroom"
VERSIONS = ["1.34", "1.35", "1.36"]
# Kinds of others, whose schemas are not among those of Kubernetes.
FOREIGN = ("kueue.x-k8s.io/", "monitoring.coreos.com/", "cert-manager.io/")
# Manifests that are no templates.
PLAIN = [CHART.parent / "tools.yaml", CHART.parent / "users.yaml"]
# Maps whose keys are the user's: the file of values may name any.
FREE = {
    "commonLabels", "claims.deviceClasses", "quotaService.settings", "quotaService.trainSettings", "connector.settings", "resourceQuota.shares",
    "serviceMonitor.labels", "kueue.namespaceSelector", "admissionPolicy.namespaceSelector", "global",
}
FREE_ENDINGS = ("resources", "podAnnotations", "nodeSelector")


def render(renderer, values):
    command = [renderer, str(CHART), "--release", "headroom", "--namespace", "gpu", "--json", "--values", str(values)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{values.name}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def mutate(manifests, mutants):
    for kind, path, value in mutants:
        *parents, last = path.split(".")
        for manifest in manifests:
            if manifest["kind"] == kind:
                at = manifest
                for part in parents:
                    at = at[int(part)] if isinstance(at, list) else at[part]
                at[last] = yaml.safe_load(value)


def check_manifests(name, manifests, skipped):
    """The faults of manifests, and how many were held against a schema."""
    faults, checked = [], 0
    for manifest in manifests:
        called = f"{name}: {manifest['kind']} {manifest['metadata']['name']}"
        if manifest["apiVersion"].startswith(FOREIGN):
            skipped.add(f"{manifest['apiVersion']} {manifest['kind']}")
            continue
        for version in VERSIONS:
            checked += 1
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as fault:
                path = ".".join(map(str, fault.absolute_path))
                faults.append(f"{called}, Kubernetes {version}: {path}: {fault.message[:300]}")
            except kubernetes_validate.SchemaNotFoundError as fault:
                faults.append(f"{called}: {fault.message}")
    return faults, checked


def paths_of_values(values, at=""):
    for key, value in values.items():
        path = f"{at}.{key}" if at else key
        if isinstance(value, dict) and path not in FREE and not key.endswith(FREE_ENDINGS):
            yield from paths_of_values(value, path)
        else:
            yield path


def paths_of_schema(schema, at=""):
    for key, value in schema.get("properties", {}).items():
        path = f"{at}.{key}" if at else key
        if "properties" in value:
            yield from paths_of_schema(value, path)
        elif key != "global":
            yield path


def check_values(files):
    faults = []
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    named, known = set(paths_of_values(defaults)), set(paths_of_schema(schema))
    faults += [f"values.yaml has {path}, the schema has not" for path in sorted(named - known)]
    faults += [f"the schema has {path}, values.yaml has not" for path in sorted(known - named)]
    validator = jsonschema.Draft7Validator(schema)
    for file in [CHART / "values.yaml", *files]:
        for fault in validator.iter_errors(yaml.safe_load(file.read_text())):
            faults.append(f"{file.name}: {'.'.join(map(str, fault.absolute_path))}: {fault.message}")
    for refused in [{"modes": {"kueue": False}}, {"connector": {"settings": {"database": "postgres://"}}}, {"mode": {}}]:
        if validator.is_valid(refused):
            faults.append(f"the schema takes {refused}")
    return faults


def check_comments():
    """Every value is commented: above it, or above what it is part of and beside a sibling that is."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    blocks = [at for at, line in enumerate(lines) if line and line[0] not in " #"]
    return [
        f"values.yaml: {lines[at]} has no comment"
        for at in blocks
        if not lines[at - 1].startswith("#") and not lines[at + 1].lstrip().startswith("#")
    ]


def main(renderer, *arguments):
    mutants = [arguments[at + 1:at + 4] for at, word in enumerate(arguments) if word == "--mutant"]
    files = sorted((HERE / "values").glob("*.yaml"))
    faults, checked, skipped = check_values(files) + check_comments(), 0, set()
    for file in files:
        manifests = render(renderer, file)
        mutate(manifests, mutants)
        found, count = check_manifests(file.name, manifests, skipped)
        faults, checked = faults + found, checked + count
    for file in PLAIN:
        found, count = check_manifests(file.name, list(yaml.safe_load_all(file.read_text())), skipped)
        faults, checked = faults + found, checked + count
    for fault in faults:
        print(fault)
    print(f"{len(files)} files of values, {checked} checks of manifests against Kubernetes {', '.join(VERSIONS)}: {len(faults)} faults")
    print(f"without a schema here: {', '.join(sorted(skipped))}")
    return 1 if faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
