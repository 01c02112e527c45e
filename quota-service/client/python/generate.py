"""Writes `src/headroom/models.py` from the OpenAPI document of a service.

    python generate.py openapi.json            # or a URL: http://127.0.0.1:8080/openapi.json
    python generate.py openapi.json --check    # fails where the file in the repository is another one
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
import textwrap
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE / "src" / "headroom" / "models.py"

#: Bodies and answers of the requests that the package has; what they refer to comes along.
ROOTS = [
    "DemandAnswer",
    "EventBody",
    "Explanation",
    "ForecastAnswer",
    "NodeBody",
    "NodeList",
    "NodeViews",
    "OutcomeBatch",
    "OutcomeReceipt",
    "PoolList",
    "PoolStateBody",
    "PoolStateReceipt",
    "PriceList",
    "PriceQuestion",
    "Problem",
    "PromiseReport",
    "QuotaAnswer",
    "QuotaHistory",
    "ReservationBody",
    "ReservationList",
    "ReservationRequest",
    "RunList",
    "SettingsBody",
    "ShareList",
    "StartAnswer",
    "StartQuestion",
    "StatementAnswer",
    "TaskAnswer",
    "TaskBody",
    "TaskExplanation",
    "TaskList",
    "UsageBatch",
    "UsageReceipt",
    "WhatIfAnswer",
]

HEADER = '''"""Bodies and answers of the service, as its OpenAPI document describes them. Written by `generate.py`: do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal
'''

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
#: Characters of a line.
WIDTH = 116


def read(source: str) -> dict[str, Any]:
    """The document of a file or a URL."""
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source, timeout=10) as answer:
            document: dict[str, Any] = json.load(answer)
            return document
    loaded: dict[str, Any] = json.loads(Path(source).read_text())
    return loaded


def references(schema: Any) -> Iterator[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rsplit("/", 1)[-1]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reachable(schemas: Mapping[str, Any]) -> list[str]:
    """Names of the schemas of the package, sorted."""
    found: set[str] = set()
    left = list(ROOTS)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(references(schemas[name]))
    return sorted(found)


def annotation(schema: Mapping[str, Any]) -> tuple[str, bool]:
    """The type of a schema, and whether it may be null."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[-1], False
    if "oneOf" in schema:
        others = [one for one in schema["oneOf"] if one.get("type") != "null"]
        if len(others) != 1:
            raise ValueError(f"a choice among several schemas: {schema}")
        return annotation(others[0])[0], len(others) < len(schema["oneOf"])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    nullable = "null" in kinds
    kinds = [kind for kind in kinds if kind != "null"]
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(one) for one in schema['enum'] if one is not None)}]", nullable
    if kinds == ["array"]:
        inner, inner_nullable = annotation(schema["items"])
        return f"list[{inner}{' | None' if inner_nullable else ''}]", nullable
    if kinds == ["object"]:
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and values:
            inner, inner_nullable = annotation(values)
            return f"dict[str, {inner}{' | None' if inner_nullable else ''}]", nullable
        return "dict[str, Any]", nullable
    if len(kinds) == 1:
        return PLAIN[kinds[0]], nullable
    return "Any", nullable


def documented(text: str, indent: str) -> list[str]:
    """A docstring."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    lines = textwrap.wrap(text, WIDTH - len(indent) - 6) or [""]
    lines[0] = f'"""{lines[0]}'
    lines[-1] += '"""'
    return [indent + line for line in lines]


def field_of(name: str, schema: Mapping[str, Any], required: bool) -> tuple[bool, list[str]]:
    """Whether a field has a default, and its lines."""
    kind, nullable = annotation(schema)
    has_default = nullable or not required
    own = f"{name}_" if keyword.iskeyword(name) else name
    kind = f"{kind} | None" if has_default and kind != "Any" else kind
    arguments = ["default=None"] if has_default else []
    if own != name:
        arguments.append(f'metadata={{"json": "{name}"}}')
    if not arguments:
        value = ""
    elif arguments == ["default=None"]:
        value = " = None"
    else:
        value = f" = field({', '.join(arguments)})"
    texts = [schema.get("description", "")] + [one.get("description", "") for one in schema.get("oneOf", [])]
    text = next((text for text in texts if text), "")
    lines = [f"    {own}: {kind}{value}"]
    return has_default, lines + (documented(text, "    ") if text else [])


def class_of(name: str, schema: Mapping[str, Any]) -> list[str]:
    """A schema as a data class, or as a name of its values."""
    if schema.get("type") != "object" or "properties" not in schema:
        return [f"{name} = {annotation(schema)[0]}", *documented(schema.get("description", name), "")]
    required = set(schema.get("required", []))
    fields = [field_of(key, value, key in required) for key, value in schema["properties"].items()]
    lines = ["@dataclass(frozen=True, kw_only=True)", f"class {name}:"]
    lines += documented(schema.get("description", name), "    ")
    for _, of in sorted(fields, key=lambda one: one[0]):
        lines += ["", *of] if lines[-1].endswith('"""') else of
    return lines


def written(document: Mapping[str, Any]) -> str:
    """The module."""
    schemas = document["components"]["schemas"]
    names = reachable(schemas)
    # Names of values come first: they are no strings when the module is read.
    names.sort(key=lambda name: (schemas[name].get("type") == "object", name))
    parts = ["\n".join(class_of(name, schemas[name])) for name in names]
    listed = "\n".join(f'    "{name}",' for name in sorted(names))
    return HEADER + f"\n__all__ = [\n{listed}\n]\n\n" + "\n\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", help="a file or a URL")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file would change")
    asked = parser.parse_args()
    text = written(read(asked.document))
    if not asked.check:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        print(f"{TARGET} is not that of {asked.document}: run {HERE.name}/generate.py {asked.document}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
