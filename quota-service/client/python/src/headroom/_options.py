"""Settings that both clients share."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True)
class Options:
    """Where the service is, and how patient the client."""

    api: str
    token: str | None
    token_file: str | Path | None
    patience_s: float
    limit_s: float

    def __post_init__(self) -> None:
        expected = "write http://HOST:PORT or https://HOST:PORT"
        try:
            url = httpx.URL(self.api)
        except httpx.InvalidURL as fault:
            raise ValueError(f"{self.api!r}: {fault}: {expected}") from fault
        is_sound = url.scheme in ("http", "https") and url.host and (url.port or 1) <= 65_535
        if not is_sound or any(one.isspace() for one in self.api):
            raise ValueError(f"{self.api!r}: {expected}")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file: give one of them")

    @staticmethod
    def verify(ca_file: str | Path | None) -> ssl.SSLContext | bool:
        """Authorities that the service's certificate is checked against."""
        return ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else True

    def headers(self, more: Mapping[str, str]) -> dict[str, str]:
        """Headers of a request. The file of the token is read each time: it may have been replaced."""
        headers = {"user-agent": "headroom-python/0.1.0", **more}
        token = self.token
        if self.token_file is not None:
            token = Path(self.token_file).read_text(encoding="utf-8").strip()
        if token is not None:
            # Without a token the request would go out as that of nobody.
            if not token or not all("!" <= one <= "~" for one in token):
                place = "token" if self.token_file is None else str(self.token_file)
                raise ValueError(f"{place}: expected one token of visible ASCII characters, on a line of its own")
            headers["authorization"] = f"Bearer {token}"
        return headers

    def until(self) -> float:
        """The end of the client's patience."""
        return time.monotonic() + self.patience_s

    @staticmethod
    def pause_s(until: float, pause_s: float, named_s: float | None) -> float | None:
        """The pause before the next try: the one that the service names, or else up to the end of the patience; none beyond it."""
        left_s = until - time.monotonic()
        if named_s is not None:
            return named_s if named_s <= left_s else None
        return min(pause_s, left_s) if left_s > 0.0 else None
