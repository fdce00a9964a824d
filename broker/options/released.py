"""The settings tables of an emulated release, by its name."""

from functools import cache

from broker.settings.of_release import TODAY, Tables, tables_of
from broker.settings.releases import release
from broker.settings.releases.definitions import known_versions


@cache
def setting_tables(name: str) -> Tables:
    """Return the settings that a release has, with their defaults. Raises KeyError."""
    emulated = release(name)
    return TODAY if emulated.newest else tables_of(emulated.settings, known_versions())
