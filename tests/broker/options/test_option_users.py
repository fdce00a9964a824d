"""`--add-scram`, in the syntax of `kafka-storage format`."""

from pathlib import Path

import pytest

from broker.access.sasl.scram import credential, salted
from broker.options import OptionError, ServeOptions, parse
from understudy.launcher import command_line, off_the_command_line
from understudy.serve import gather

USER = "SCRAM-SHA-256=[name=alice,password=secret]"


def options(*argv: str, environ: dict[str, str] | None = None) -> ServeOptions:
    """What the server makes of a command line and an environment."""
    return parse(gather(argv, environ or {}))


def test_a_password_becomes_a_credential_with_a_salt_of_its_own() -> None:
    """With the least iterations; nothing holds the password."""
    (user,) = options("--add-scram", USER).users
    assert (user.name, user.mechanism, user.iterations) == ("alice", 1, 4096)
    assert user == credential("alice", 1, user.salt, salted(1, "secret", user.salt, 4096), 4096)
    assert options("--add-scram", USER).users != (user,)
    assert "secret" not in repr(options("--add-scram", USER))


def test_blanks_around_and_quotation_marks_are_taken_off() -> None:
    """Of the whole and of values; a password may have equals signs."""
    (user,) = options("--add-scram", ' SCRAM-SHA-512=[name="bob",password="a=b",iterations=8192]').users
    assert (user.name, user.mechanism, user.iterations) == ("bob", 2, 8192)
    assert user == credential("bob", 2, user.salt, salted(2, "a=b", user.salt, 8192), 8192)


def test_a_salted_password_makes_the_keys_that_kafka_makes() -> None:
    """As kafka-storage of 4.3.1 wrote them."""
    (user,) = options("--add-scram", "SCRAM-SHA-256=[name=alice,saltedpassword=aaaa,salt=aaaa]").users
    assert user.salt == bytes([105, 166, 154])
    assert user.stored_key[:8] == bytes([57, 237, 156, 175, 64, 72, 219, 253])
    assert user.server_key[:4] == bytes([205, 16, 98, 107])


def test_the_environment_has_a_user_on_each_line_and_a_file_a_list(tmp_path: Path) -> None:
    """Joined; a credential that is named twice is as it was named last."""
    file = tmp_path / "serve.toml"
    file.write_text('add-scram = ["SCRAM-SHA-256=[name=carol,password=x]", "SCRAM-SHA-256=[name=bob,password=x]"]')
    environ = {"UNDERSTUDY_ADD_SCRAM": f"{USER}\nSCRAM-SHA-256=[name=bob,password=y,iterations=5000]"}
    users = options("--config", str(file), environ=environ).users
    assert [(user.name, user.iterations) for user in users] == [("carol", 4096), ("bob", 5000), ("alice", 4096)]


def test_the_launcher_keeps_passwords_off_the_command_line() -> None:
    """They are in the environment of the server."""
    left, environ = off_the_command_line(command_line(add_scram=[USER, "SCRAM-SHA-512=[name=bob,password=b]"], seed=7))
    assert left == ["--seed", "7"]
    assert [user.name for user in options(environ=environ).users] == ["alice", "bob"]


def test_options_of_start_may_be_any_iterable() -> None:
    """As their types allow: sets, generators, and a single path."""
    assert command_line(brokers={7}, rack=(each for each in "ab"), value_schema=Path("a.avsc")) == [
        *("--brokers", "7,", "--rack", "a,b", "--value-schema", "a.avsc"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SCRAM-SHA-256[]", "needs SCRAM-SHA-256=[name=USER,password=PASSWORD]"),
        ("SCRAM-SHA-256=name=alice,password=hush", "needs SCRAM-SHA-256=["),
        ("SCRAM-SHA-256= [name=alice,password=hush]", "needs SCRAM-SHA-256=["),
        ("SCRAM-SHA-1=[name=alice,password=hush]", "has no mechanism SCRAM-SHA-1"),
        ("SCRAM-SHA-256=[password=hush]", "needs name=USER"),
        ("SCRAM-SHA-256=[name=alice]", "needs password=PASSWORD"),
        ("SCRAM-SHA-256=[name=alice,password=]", "needs password=PASSWORD"),
        ("SCRAM-SHA-256=[name=alice, password=hush]", "without blanks, not ' password'"),
        ("SCRAM-SHA-256=[name=alice,password=hu,sh]", "a password cannot have commas"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=aaaa]", "needs the salt"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=hush!,salt=aaaa]", "saltedpassword in base64"),
        ("SCRAM-SHA-256=[name=alice,password=hush,iterations=4095]", "iterations needs a number from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=alice,password=hush,iterations=16385]", "iterations needs a number from 4096 to 16384"),
    ],
)
def test_what_kafka_s_tool_refuses_is_refused(text: str, sentence: str) -> None:
    """In one sentence that does not repeat the password."""
    with pytest.raises(OptionError) as refused:
        options("--add-scram", text)
    assert sentence in str(refused.value)
    assert "hush" not in str(refused.value)


def test_scram_needs_a_metadata_version_that_has_it() -> None:
    """In KRaft since 3.5-IV2; with ZooKeeper it was always there."""
    assert options("--add-scram", USER, "--as-version", "2.4").users
    assert options("--add-scram", USER, "--as-version", "3.5").users
    for older in (("--as-version", "3.4"), ("--as-version", "3.5", "--feature", "metadata.version=10")):
        with pytest.raises(OptionError, match=r"--add-scram needs metadata.version 11"):
            options("--add-scram", USER, *older)
