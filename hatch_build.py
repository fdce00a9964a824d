"""Puts the server's packages into the wheel, below the one name that it installs (hatchling's build hook)."""

import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ServerPackages(BuildHookInterface[Any]):
    """Copies each of `understudy.server_path.SERVER_PACKAGES` to `understudy/_server/`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packages to a wheel; an editable install finds them in the checkout."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from understudy.server_path import SERVER_PACKAGES  # noqa: PLC0415 - its path was just added
        finally:
            sys.path.remove(self.root)
        build_data["force_include"].update({name: f"understudy/_server/{name}" for name in SERVER_PACKAGES})
