"""A realm of Kerberos for tests: Debian's key distribution centre, with its files in one folder."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_ports

REALM = "EXAMPLE.TEST"
_SBIN = "/usr/sbin:/usr/local/sbin"


def missing() -> str | None:
    """What this machine needs for it; ``None``: nothing."""
    path = f"{os.environ.get('PATH', '')}:{_SBIN}"
    installed = all(shutil.which(name, path=path) for name in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit"))
    return None if installed else "apt-get install krb5-kdc krb5-admin-server krb5-user"


@dataclass(frozen=True)
class Realm:
    """A running realm, and the environment of its users."""

    folder: Path
    environment: dict[str, str]

    def keytab(self, principal: str) -> Path:
        """A new principal, with a key in a file."""
        file = self.folder / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {file} {principal}")
        return file

    def login(self, principal: str) -> dict[str, str]:
        """The environment of a user with a ticket."""
        file = self.keytab(principal)
        cache = {"KRB5CCNAME": f"FILE:{self.folder}/{principal}.ccache"}
        self.run("kinit", "-k", "-t", str(file), principal, **cache)
        return {**self.environment, **cache}

    def run(self, *command: str, **more: str) -> None:
        """Run a command of Kerberos."""
        done = subprocess.run(command, env={**self.environment, **more}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def realm(folder: Path) -> Iterator[Realm]:
    """A realm while the block runs."""
    (port,) = free_ports(1)
    config, profile = folder / "krb5.conf", folder / "kdc.conf"
    config.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"
        f" dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
    )
    profile.write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
        f"  acl_file = {folder}/acl\n }}\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{os.environ.get('PATH', '')}:{_SBIN}",
        "KRB5_CONFIG": str(config),
        "KRB5_KDC_PROFILE": str(profile),
        "KRB5RCACHENAME": f"dfl:{folder}",
    }
    new_realm = Realm(folder, environment)
    new_realm.run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
    new_realm.run("krb5kdc", "-P", str(folder / "pid"))  # it goes to the background once it listens
    try:
        yield new_realm
    finally:
        os.kill(int((folder / "pid").read_text()), 15)
