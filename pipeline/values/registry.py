"""Fetches schemas from a schema registry over its REST API, each of them once."""

import json
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from http.client import HTTPException
from typing import Any, Final

from pipeline.values.formats import AVRO, Schema

_PATIENCE_S: Final = 30  # as long as Kafka's clients wait for a response
_MOST_DEEP: Final = 32  # references of references: a circle would not end; ours, no schema has so many
_NOT_FOUND: Final = 404


class RegistryError(RuntimeError):
    """A registry that cannot be used; the message is for the user."""


class Registry:
    """A registry by its URL; `http://USER:PASSWORD@HOST:PORT` authenticates."""

    def __init__(self, url: str, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        try:
            parts = urllib.parse.urlsplit(url)
            is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:  # raised for an invalid port or an invalid address in brackets
            is_url = False
        if not is_url:
            raise RegistryError(f"{url} is not the URL of a registry, such as http://localhost:8081")
        host = parts.netloc.rpartition("@")[2]
        self.url = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"

    def check(self) -> None:
        """Check that the registry answers. Raises RegistryError."""
        if self._get("/subjects") is None:
            raise RegistryError(f"{self.url} is not the URL of a registry: it has no /subjects")

    def by_id(self, schema_id: int) -> Schema | None:
        """Return a schema by its id; None: there is none. Raises RegistryError."""
        return self._schema(self._get(f"/schemas/ids/{schema_id}"))

    def by_guid(self, guid: str) -> Schema | None:
        """Return a schema by its GUID; None: there is none. Raises RegistryError."""
        return self._schema(self._get(f"/schemas/guids/{guid}"))

    def subjects_of(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects and versions that have an id. Raises RegistryError."""
        return [(each["subject"], each["version"]) for each in self._get(f"/schemas/ids/{schema_id}/versions") or ()]

    def _schema(self, answer: dict[str, Any] | None, depth: int = 0) -> Schema | None:
        if answer is None or depth > _MOST_DEEP:
            return None
        references = {}
        for each in answer.get("references") or ():
            subject = urllib.parse.quote(each["subject"], safe="")
            place = f"/subjects/{subject}/versions/{each['version']}?deleted=true"  # ids outlive deletions
            referenced = self._schema(self._get(place), depth + 1)
            if referenced is not None:
                references[each["name"]] = referenced
        return Schema(answer.get("schemaType") or AVRO, answer["schema"], references)

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310 - http or https only
        try:
            with urllib.request.urlopen(request, timeout=self._patience_s) as answer:  # noqa: S310 - as above
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return None
            raise RegistryError(f"the registry at {self.url} answers {path} with {error.code}") from None
        except HTTPException as error:  # another protocol, such as TLS, or a truncated response
            raise RegistryError(f"the registry at {self.url} does not answer with valid HTTP: {error!r}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise RegistryError(f"the registry at {self.url} does not answer: {reason}") from None
