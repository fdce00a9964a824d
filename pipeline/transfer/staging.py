"""Stages an export: its files are written to a folder of their own, and moved to the target when all are complete.

`OUT/_writing-RUN` holds the files, `owner.json` (who writes) and, once everything is written, `plan.json` (which files
the export adds and removes). A later export removes what a killed one has left: every planned file that the current
manifest does not list. Readers of the folder ignore names that begin with `_`.
"""

import json
import os
import re
import socket
from collections.abc import Iterable
from typing import Any, Final

from pipeline.transfer import catalog
from pipeline.transfer.manifest import NAME, Manifest, ManifestError, Store, file_name

PREFIX: Final = "_writing-"
_FOLDER: Final = re.compile(rf"{PREFIX}[0-9a-f]{{8}}")
_OWNER, _PLAN = "owner.json", "plan.json"


class Staging:
    """One run of an export. `begin`, then `commit` or `discard`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.run = os.urandom(4).hex()  # noqa: TID251 - a name of its own
        self.folder = f"{PREFIX}{self.run}"
        self.out = f"{store.path}/{self.folder}"
        """Where tasks write files."""

    def begin(self) -> None:
        """Record the owner, before any file is written."""
        owner = {"host": socket.gethostname(), "pid": os.getpid()}
        self._store.write(f"{self.folder}/{_OWNER}", json.dumps(owner).encode())

    def commit(self, manifest: Manifest, before: Manifest | None) -> None:
        """Move the files and the manifest into place, and remove files that only the previous manifest lists.

        Raises:
            ManifestError: another export was committed meanwhile, and would be lost.
        """
        now = self._store.read_manifest() if self._store.exists(NAME) else None
        if _encoded(now) != _encoded(before):
            raise ManifestError(
                f"another export into {self._store.path} has completed meanwhile, so this one was discarded"
            )
        kept = {each.path for each in manifest.files}
        known = set() if before is None else {each.path for each in before.files}
        added, removed = sorted(kept - known), sorted(known - kept)
        plan = json.dumps({"added": added, "removed": removed}).encode()
        self._store.write(f"{self.folder}/{_PLAN}", plan)
        for path in added:
            self._store.move(f"{self.folder}/{path}", path)
        if removed:
            catalog.forget(self._store)
        self._store.write(f"{self.folder}/{NAME}", manifest.encode().encode())
        self._store.move(f"{self.folder}/{NAME}", NAME)
        for path in removed:
            self._store.remove(path)
        self._store.remove_folder(self.folder)

    def discard(self) -> None:
        """Remove what was written, unless it is committed."""
        if self._store.exists(self.folder):
            _undo(self._store, self.folder)


def _encoded(manifest: Manifest | None) -> str | None:
    return None if manifest is None else manifest.encode()


def recover(store: Store) -> None:
    """Remove what killed exports have left in a folder.

    Raises:
        ManifestError: an export is being written, or may be.
    """
    for folder in filter(_FOLDER.fullmatch, store.names()):
        owner = _document(store, f"{folder}/{_OWNER}")
        if not owner and not store.exists(f"{folder}/{_OWNER}") and store.names(folder):
            continue  # not of an export, which records its owner before it writes anything
        if owner and owner.get("host") != socket.gethostname():
            raise ManifestError(
                f"an export into {store.path} was started on {owner.get('host')} and has not ended; if it is not "
                f"running any more, remove {store.path}/{folder} and the files that {NAME} does not list"
            )
        if owner and owner.get("pid") != os.getpid() and _is_running(int(owner.get("pid", 0))):
            raise ManifestError(f"an export into {store.path} is running (process {owner['pid']})")
        _undo(store, folder)


def _undo(store: Store, folder: str) -> None:
    plan = _document(store, f"{folder}/{_PLAN}")
    in_force = {each.path for each in store.read_manifest().files} if store.exists(NAME) else set()
    for path in _names(plan.get("added", ())) | _names(plan.get("removed", ())):
        if path not in in_force:
            store.remove(path)
    store.remove_folder(folder)


def _names(paths: Iterable[str]) -> set[str]:
    return {file_name(path) for path in paths}


def _document(store: Store, name: str) -> dict[str, Any]:
    """Return a JSON file; empty if it does not exist or was being written."""
    if not store.exists(name):
        return {}
    try:
        document = json.loads(store.read(name))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
