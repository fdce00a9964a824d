"""Variables in a server.properties (KIP-421), as a real 4.4.0 broker replaced or refused them."""

from pathlib import Path

import pytest

from broker.options import OptionError, parse
from understudy.serve import gather

CLASSES = """
config.providers=file,dir,env,unset
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""


def settings(folder: Path, *lines: str, sets: tuple[str, ...] = ()) -> dict[str, str]:
    """What a server with this server.properties has, beside its providers."""
    file = folder / "server.properties"
    file.write_text(CLASSES + "\n".join(lines))
    typed = [argument for each in sets for argument in ("--set", each)]
    parsed = parse(gather(("--config", str(file), *typed), {})).settings
    return {name: value for name, value in parsed.items() if not name.startswith("config.providers")}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of properties, a directory with a file for each value, and a variable of the environment."""
    (tmp_path / "limits.properties").write_text("size=2000000\nref=${env:LIMIT}\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "retention").write_text("7200000\n")
    monkeypatch.setenv("LIMIT", "555000")
    return tmp_path


def test_each_provider_gives_its_value(secrets: Path) -> None:
    """Also within a value, and in a setting of the command line."""
    values = settings(
        secrets,
        f"message.max.bytes=${{file:{secrets}/limits.properties:size}}",
        f"log.retention.ms=${{dir:{secrets}/mounted:retention}}",
        "log.segment.bytes=1${env:LIMIT}0",
        sets=("connections.max.idle.ms=${env:LIMIT}",),
    )
    assert {name: value.strip() for name, value in values.items()} == {
        "message.max.bytes": "2000000",
        "log.retention.ms": "7200000",
        "log.segment.bytes": "15550000",
        "connections.max.idle.ms": "555000",
    }


@pytest.mark.parametrize(
    "variable",
    [
        "${env:NOPE}",
        "${file:{folder}/limits.properties:nokey}",
        "${file:{folder}/limits.properties:ref}",
        "${dir:{folder}/nonexistent:key}",
        "${dir:{folder}/mounted:nokey}",
        "${vault:a:b}",
        "${unset:a}",
    ],
)
def test_what_no_provider_has_stays_and_is_no_number(secrets: Path, variable: str) -> None:
    """Kafka's own message; what a provider returns is not replaced once more."""
    value = variable.replace("{folder}", str(secrets))
    shown = "${env:LIMIT}" if variable.endswith(":ref}") else value
    with pytest.raises(OptionError) as refused:
        settings(secrets, f"max.connections={value}")
    assert f"Invalid value {shown} for configuration max.connections: Not a number of type INT" in str(refused.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("max.connections=${file:/nonexistent/file:key}", "max.connections=.*No such file"),
        ("max.connections=${env:a:LIMIT}", "Path is not supported for EnvVarConfigProvider, invalid value 'a'"),
        ("config.providers.env.class=com.example.Vault", r"com\.example\.Vault is not supported"),
        ("config.providers.env.param.allowlist.pattern=(", r"allowlist\.pattern=\( of a provider is not a regular"),
    ],
)
def test_what_a_provider_refuses_ends_the_start(secrets: Path, line: str, problem: str) -> None:
    """A file that is not there, a path where none is taken, a class that Kafka does not bring."""
    with pytest.raises(OptionError, match=problem):
        settings(secrets, line)


def test_a_provider_may_be_limited(secrets: Path) -> None:
    """To folders, or to names of variables: others are not replaced."""
    size = f"message.max.bytes=${{file:{secrets}/limits.properties:size}}"
    allowed = settings(secrets, size, f"config.providers.file.param.allowed.paths=/nonexistent,{secrets}")
    assert allowed["message.max.bytes"] == "2000000"
    with pytest.raises(OptionError, match="Not a number"):
        settings(secrets, size, f"config.providers.file.param.allowed.paths={secrets}/mounted")
    limit = "max.connections=${env:LIMIT}"
    assert settings(secrets, limit, "config.providers.env.param.allowlist.pattern=LIM.*")["max.connections"] == "555000"
    with pytest.raises(OptionError, match="Not a number"):
        settings(secrets, limit, "config.providers.env.param.allowlist.pattern=OTHER.*")
