"""Data classes from JSON, and back. Fields that the package does not know are left out: answers may grow."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Malformed(ValueError):
    """JSON is not as its type says."""


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> dict[str, Any]:
    """The types of a data class' fields; reading them is dear."""
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


def _name(one: dataclasses.Field[Any]) -> str:
    name: str = one.metadata.get("json", one.name)
    return name


def decode(kind: type[T], value: Any, place: str = "") -> T:
    """A value of a type, from JSON."""
    found: T = _decode(kind, value, place)
    return found


def _decode(kind: Any, value: Any, place: str) -> Any:
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        (inner,) = [one for one in typing.get_args(kind) if one is not type(None)]
        return _decode(inner, value, place)
    if origin is typing.Literal:
        # The service may have learned a new word.
        return _plain(str, value, place)
    if origin is list:
        (inner,) = typing.get_args(kind)
        return [_decode(inner, one, f"{place}/{index}") for index, one in enumerate(_plain(list, value, place))]
    if origin is dict:
        inner = typing.get_args(kind)[1]
        return {key: _decode(inner, one, f"{place}/{key}") for key, one in _plain(dict, value, place).items()}
    of: type[Any] = kind
    if dataclasses.is_dataclass(of):
        return _data(of, _plain(dict, value, place), place)
    return _plain(of, value, place)


def _data(kind: type[Any], value: Mapping[str, Any], place: str) -> Any:
    hints, given = _hints(kind), {}
    for one in dataclasses.fields(kind):
        name = _name(one)
        if name in value:
            given[one.name] = _decode(hints[one.name], value[name], f"{place}/{name}")
        elif one.default is dataclasses.MISSING:
            raise Malformed(f"{place}/{name} is missing")
    return kind(**given)


def _plain(kind: type[Any], value: Any, place: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    raise Malformed(f"{place or '/'}: expected {kind.__name__}, found {value!r:.80}")


def encode(value: Any) -> Any:
    """JSON of a data class; fields that are None are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((_name(one), getattr(value, one.name)) for one in dataclasses.fields(value))
        return {name: encode(one) for name, one in pairs if one is not None}
    if isinstance(value, list):
        return [encode(one) for one in value]
    if isinstance(value, Mapping):
        return {key: encode(one) for key, one in value.items()}
    return value
