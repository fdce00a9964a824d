from pathlib import Path

import pytest

from control_api.java_properties import properties
from understudy.config_file import ConfigFileError, read
from understudy.serve import OPTIONS

BY_NAME = {option.name: option for option in OPTIONS}


def test_a_toml_file_names_the_options_by_their_names(tmp_path: Path) -> None:
    """Arrays and tables for what may be repeated, a list or a number for the ports, a boolean for a flag."""
    file = tmp_path / "u.toml"
    file.write_text(
        'port = [19092, 19093]\ndata_dir = "d"\nread-only = true\nlog-format = "json"\ncontrol-port = "off"\n'
        'topic = ["a:3"]\n[set]\n"auto.create.topics.enable" = false\n[feature]\n"transaction.version" = 1\n'
    )
    assert read(str(file), BY_NAME) == {
        "port": ["19092,19093"],
        "data-dir": ["d"],
        "read-only": ["true"],
        "log-format": ["json"],
        "control-port": ["off"],
        "topic": ["a:3"],
        "set": ["auto.create.topics.enable=false"],
        "feature": ["transaction.version=1"],
    }


def test_the_name_of_a_setting_needs_no_quotes(tmp_path: Path) -> None:
    """TOML takes its dots for tables within tables."""
    (tmp_path / "u.toml").write_text(
        "[set]\nlog.retention.ms = 1000\nlog.retention.bytes = -1\nauto.create.topics.enable = true\n[topic]\na.b = 3\n"
    )
    assert read(str(tmp_path / "u.toml"), BY_NAME) == {
        "set": [
            "log.retention.ms=1000",
            "log.retention.bytes=-1",
            "auto.create.topics.enable=true",
        ],
        "topic": ["a.b:3"],
    }


def test_a_flag_that_is_false_counts_as_not_given(tmp_path: Path) -> None:
    """read-only = false is the same as no line."""
    (tmp_path / "u.toml").write_text("read-only = false\nport = 0\n")
    assert read(str(tmp_path / "u.toml"), BY_NAME) == {"port": ["0"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 1", "names an option that does not exist: prot (did you mean port?)"),
        ("brokers = [1, 2]", "brokers takes one value"),
        ("brokers = 1\nport = ", "is not TOML: Invalid value (at line 2, the last one)"),
        ("brokers == 1\nport = 0", "is not TOML: Invalid value (at line 1, column 10)"),
        ('read-only = "true"', "read-only is true or false, without quotes"),
        ("read-only = 1", "read-only is true or false, without quotes"),
        ("lifeline = true", "names an option that does not exist: lifeline"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    """One sentence with the file, the key and the nearest name."""
    (tmp_path / "u.toml").write_text(text)
    with pytest.raises(ConfigFileError, match=r"--config .*u\.toml") as refused:
        read(str(tmp_path / "u.toml"), BY_NAME)
    assert sentence in str(refused.value)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """Only the two endings of the contract are read."""
    (tmp_path / "u.yaml").write_text("a: b")
    with pytest.raises(ConfigFileError, match=r"neither \*\.toml nor \*\.properties"):
        read(str(tmp_path / "u.yaml"), BY_NAME)


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uZZZZ", "C\\uabcg=1", "log.dirs=C:\\users"])
def test_what_is_no_escape_of_javas_is_one_sentence(tmp_path: Path, text: str) -> None:
    """Of a path of Windows, mostly; Java refuses the file too."""
    (tmp_path / "server.properties").write_text(text)
    with pytest.raises(ConfigFileError, match=r"four hexadecimal digits"):
        read(str(tmp_path / "server.properties"), BY_NAME)


def test_a_server_properties_is_read_as_java_reads_it(tmp_path: Path) -> None:
    """Comments, three separators, continued lines, escapes, and values that hold '=' and ';'."""
    text = (
        "# a comment\n! another\n\nbroker.id=1\nlisteners : PLAINTEXT://:9092\nlog.dirs /tmp/a\\:b\n"
        'sasl.jaas=org.X required \\\n    username="a" \\\n    password="b=c";\nna\\u006de=v\\tw\nempty=\n'
    )
    assert properties(text) == {
        "broker.id": "1",
        "listeners": "PLAINTEXT://:9092",
        "log.dirs": "/tmp/a:b",
        "sasl.jaas": 'org.X required username="a" password="b=c";',
        "name": "v\tw",
        "empty": "",
    }
    (tmp_path / "server.properties").write_text("a.b=1\nc.d=2")
    assert read(str(tmp_path / "server.properties"), BY_NAME) == {"properties": ["a.b=1", "c.d=2"]}


def test_lines_and_blanks_are_those_of_java() -> None:
    """A password may have what other readers take for the end of a line, or for a blank."""
    parsed = properties("a=x\x85y\u2028z\x0bw\u00a0\r\nb\f=\f1 \r\u00a0c=2\n\fd=3\\\r\n \u20034")
    assert parsed == {"a": "x\x85y\u2028z\x0bw\u00a0", "b": "1", "\u00a0c": "2", "d": "3\u20034"}


def test_escapes_of_a_properties_file_may_be_halves_of_one_character() -> None:
    """As java.util.Properties writes what lies beyond U+FFFF; half of one is none."""
    parsed = properties(r"broker.rack=\ud83d\ude00" + "\n" + r"a\u0062=\ud83d")
    assert parsed == {"broker.rack": "\U0001f600", "ab": "\ud83d"}
