import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import serve


def test_every_option_has_a_default_or_is_left_out() -> None:
    """Without arguments, only the documented defaults are there."""
    options = serve.gather([], {})
    assert options == {
        "host": ["127.0.0.1"],
        "port": ["9092"],
        "brokers": ["1"],
        "controllers": ["1"],
        "control-port": ["9099"],
        "control-host": ["127.0.0.1"],
        "log-format": ["console"],
        "log-level": ["info"],
        "given": [],
        "typed": [],
    }


def test_every_option_has_a_twin_in_the_environment() -> None:
    """UNDERSTUDY_SOME_NAME sets what --some-name sets, for each row of the table."""
    environ = {option.variable: "1" for option in serve.OPTIONS if option.name != "config"}
    options = serve.from_environment(environ)
    assert set(options) == {option.name for option in serve.OPTIONS} - {"config"}


def test_a_repeated_option_takes_one_value_a_line_in_the_environment() -> None:
    """Values keep their blanks, commas and semicolons: a JAAS entry survives."""
    environ = {"UNDERSTUDY_SET": "a.b=one two;\nc.d=x,y\n\n", "UNDERSTUDY_TOPIC": "orders:3"}
    options = serve.from_environment(environ)
    assert options == {"set": ["a.b=one two;", "c.d=x,y"], "topic": ["orders:3"]}


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("LOG_RETENTION_MS", "log.retention.ms"),
        ("A__B_C", "a_b.c"),
        ("LISTENER_NAME_X_SCRAM___SHA___256_SASL_JAAS_CONFIG", "listener.name.x.scram-sha-256.sasl.jaas.config"),
    ],
)
def test_a_setting_has_a_variable_of_its_own_as_in_kafkas_image(rest: str, name: str) -> None:
    """UNDERSTUDY_SET_... spells dots, underscores and dashes as Kafka's image does."""
    assert serve.from_environment({f"UNDERSTUDY_SET_{rest}": "v"}) == {"set": [f"{name}=v"]}


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    """Scalars are replaced; repeated ones are joined, the strongest voice last."""
    file = tmp_path / "u.toml"
    file.write_text('brokers = 2\nhost = "file"\nport = 1\ntopic = ["a:1"]\n[set]\nx = 1\n')
    environ = {"UNDERSTUDY_HOST": "env", "UNDERSTUDY_PORT": "2", "UNDERSTUDY_TOPIC": "b"}
    options = serve.gather(["--config", str(file), "--port", "3", "--topic", "c", "--set", "x=2"], environ)
    assert (options["brokers"], options["host"], options["port"]) == (["2"], ["env"], ["3"])
    assert (options["topic"], options["set"]) == (["a:1", "b", "c"], ["x=1", "x=2"])
    assert options["given"] == ["brokers", "config", "host", "port", "set", "topic"]


def test_a_flag_of_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """Also where it is false; and none is left out that is neither true nor false."""
    (tmp_path / "u.toml").write_text("read-only = true\nfor-tests = true\n")
    file = {"UNDERSTUDY_CONFIG": str(tmp_path / "u.toml")}
    options = serve.gather([], {**file, "UNDERSTUDY_FOR_TESTS": "Off"})
    assert options["read-only"] == ["true"]
    assert "for-tests" not in options
    assert options["given"] == ["config", "read-only"]


def test_a_flag_that_is_neither_true_nor_false_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The data directory of --read-only would be written to."""
    with pytest.raises(SystemExit):
        serve.gather([], {"UNDERSTUDY_READ_ONLY": "enabled"})
    assert capsys.readouterr().err == "understudy serve: UNDERSTUDY_READ_ONLY is true or false, not 'enabled'\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--prot", "1"], "understudy serve: no such option: --prot (did you mean --port?)\n"),
        (["--as-verson=3.9"], "understudy serve: no such option: --as-verson (did you mean --as-version?)\n"),
        (["--port"], "understudy serve: argument --port: expected one argument\n"),
        (["--config", "x.toml"], "understudy serve: --config x.toml cannot be read: No such file or directory\n"),
        (["--rack", "a\udcff"], "understudy serve: --rack has a value that is not UTF-8 text\n"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_exit_code_2(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nearest name is printed, and nothing else."""
    with pytest.raises(SystemExit) as left:
        serve.gather(argv, {})
    assert (left.value.code, capsys.readouterr().err) == (2, sentence)


def test_help_names_every_option_but_the_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    """--help is generated from the same table."""
    with pytest.raises(SystemExit):
        serve.gather(["--help"], {})
    text = capsys.readouterr().out
    assert [option.name for option in serve.OPTIONS if f"--{option.name}" not in text] == []


def test_names_of_settings_on_the_command_line_are_noted() -> None:
    """Secrets are refused there, and nowhere else."""
    options = serve.gather(["--set", "a=1", "--set", "b=2=3"], {"UNDERSTUDY_SET_C": "4"})
    assert (options["typed"], options["set"]) == (["a", "b"], ["c=4", "a=1", "b=2=3"])


@pytest.mark.parametrize("name", ["log.retention.ms", "listener.name.x_y.scram-sha-256.sasl.jaas.config"])
def test_a_setting_has_a_variable(name: str) -> None:
    """The one that is read as this setting."""
    assert serve.setting_name(str(serve.variable_of(name)).removeprefix("UNDERSTUDY_SET_")) == name


def test_a_name_without_a_variable() -> None:
    """A setting whose name cannot be a variable's has none."""
    assert serve.variable_of("Upper.Case") is None


def test_a_build_without_the_registry_refuses_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, as the binary does; a library that is missing is another matter."""

    def missing(name: str) -> Callable[[str], None]:
        def load(module: str) -> None:
            raise ModuleNotFoundError(f"No module named {name!r} for {module}", name=name)

        return load

    monkeypatch.setattr(importlib, "import_module", missing("registry"))
    with pytest.raises(SystemExit):
        serve.run({}, "registry.cli")
    assert "this build has no schema registry and cannot decode messages" in capsys.readouterr().err
    monkeypatch.setattr(importlib, "import_module", missing("structlog"))
    with pytest.raises(ModuleNotFoundError):
        serve.run({}, "broker.start.cli")
