"""The public keys that verify signed tokens: a JSON Web Key Set, in a file or at a URL (RFC 7517).

Follows Kafka's `JwksFileVerificationKeyResolver` and `RefreshingHttpsJwks`: a file is read again when it has changed; a
URL is fetched periodically, and soon after a token had an unknown key id.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from broker.logs import Logger

_log = Logger(__name__)
MISSING_MS = 60_000
"""How long an unknown key id causes no further refresh (`MISSING_KEY_ID_CACHE_IN_FLIGHT_MS`): Kafka's value."""
_MOST_MISSING, _LONGEST_ID = 16, 1000
"""The maximum of unknown key ids remembered, and of their length: clients choose the ids freely.

`MISSING_KEY_ID_CACHE_MAX_ENTRIES` and `MISSING_KEY_ID_MAX_KEY_LENGTH`.
"""
_TIMEOUT_S = 10
"""A login waits for it, and has to fail before its client gives up, after 30 s by default."""
_MOST_BYTES = 1024 * 1024
"""A key takes one or two KB: an issuer has far fewer, and an endless page is not read to its end."""
Key = Mapping[str, Any]


class KeySet:
    """The keys of one issuer."""

    def __init__(self, url: str, refresh_ms: int) -> None:
        """`url`: `file:`, `http:` or `https:`."""
        self._url, self._refresh_ms = url, refresh_ms
        self._keys: list[Key] = []
        self._due_ms = 0
        self._loading: asyncio.Event | None = None  # set when loading from the URL has succeeded or failed
        self._changed_ns = -1  # modification time of a file
        self._missing: OrderedDict[str, int] = OrderedDict()

    async def refresh(self, now_ms: int) -> None:
        """Load the keys if they are due; if that fails, keep the old ones and log a warning.

        While there are none, a token waits for the load that another token has started.
        """
        try:
            if urlsplit(self._url).scheme == "file":
                self._refresh_file()
            elif now_ms >= self._due_ms:
                self._due_ms = now_ms + self._refresh_ms
                await self._refresh_url()
            elif self._loading is not None and not self._keys:
                await self._loading.wait()
        except (OSError, ValueError, RecursionError) as error:
            self._due_ms = 0
            _log.warning("the keys of an issuer cannot be loaded", url=self._url, reason=str(error))

    async def _refresh_url(self) -> None:
        self._loading = loading = asyncio.Event()
        try:
            self._keys = _keys(await asyncio.to_thread(_fetch, self._url))
        finally:
            loading.set()

    def _refresh_file(self) -> None:
        path = Path(unquote(urlsplit(self._url).path))
        changed_ns = path.stat().st_mtime_ns
        if changed_ns != self._changed_ns:
            self._keys, self._changed_ns = _keys(path.read_bytes()), changed_ns

    def find(self, key_id: str | None, now_ms: int) -> list[Key]:
        """Return the keys with this id, or all for None; an unknown id makes a refresh due."""
        keys = [key for key in self._keys if key_id is None or key.get("kid") == key_id]
        if not keys and key_id is not None and len(key_id) <= _LONGEST_ID:
            self._note_missing(key_id, now_ms)
        return keys

    def _note_missing(self, key_id: str, now_ms: int) -> None:
        if now_ms - self._missing.get(key_id, now_ms - MISSING_MS) < MISSING_MS:
            return
        self._missing[key_id] = now_ms
        self._missing.move_to_end(key_id)
        if len(self._missing) > _MOST_MISSING:
            self._missing.popitem(last=False)
        self._due_ms = 0


def _fetch(url: str) -> bytes:
    """Return the document at a URL. Raises OSError, ValueError."""
    import urllib.request  # noqa: PLC0415 - few servers fetch keys, and each one starts
    from http.client import HTTPException  # noqa: PLC0415

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the operator's own setting
            content: bytes = answer.read(_MOST_BYTES)
            return content
    except HTTPException as error:
        raise OSError(repr(error)) from error


def _keys(raw: bytes) -> list[Key]:
    """Return the keys of a set that are for signatures. Raises ValueError."""
    document = json.loads(raw)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise ValueError("it is not a JSON Web Key Set")  # noqa: TRY004 - a mistake in a document
    return [key for key in keys if isinstance(key, dict) and key.get("use", "sig") == "sig"]
