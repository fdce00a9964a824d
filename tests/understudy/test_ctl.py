import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from control_api.calls import call
from control_api.parameters import Parameter
from control_api.verb import Verb
from control_api.verbs import BY_NAME, VERBS
from tests.understudy.fake import FakeControl
from understudy import ctl
from understudy.cli import main
from understudy.completion import tree
from understudy.ctl_values import duration_ms


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeControl]:
    """A control plane where `ctl` looks for one."""
    with FakeControl() as fake:
        monkeypatch.setenv("UNDERSTUDY_CONTROL_URL", fake.url)
        yield fake


SAMPLES = {
    "int": "7",
    "maybe": "null",
    "ints": "1,2",
    "json": '{"a": 1}',
    "ms": "15m",
    "float": "0.5",
    "names": "topics",
    "pairs": "a=1,b=2,3",
}
MEANT = {
    "int": 7,
    "maybe": None,
    "ints": [1, 2],
    "json": {"a": 1},
    "ms": 900_000,
    "float": 0.5,
    "names": ["topics"],
    "flag": True,
    "pairs": {"a": "1", "b": "2,3"},
}
OBJECTS = {"apply_then": ("disconnect=reset", {"disconnect": "reset"}), "bytes": ("truncate=9", {"truncate": 9})}


def sample(parameter: Parameter) -> str:
    """A value that the parameter takes."""
    if parameter.kind == "object":
        return OBJECTS[parameter.name][0]
    return parameter.choices[0] if parameter.choices else SAMPLES.get(parameter.kind, "text")


def meant(parameter: Parameter) -> object:
    """What the sample means."""
    if parameter.kind == "object":
        return OBJECTS[parameter.name][1]
    return parameter.choices[0] if parameter.choices else MEANT.get(parameter.kind, "text")


# What `scenario run` takes is a file, in which its body is.
@pytest.mark.parametrize("verb", [each for each in VERBS if each.name != ctl.RUNS], ids=lambda verb: verb.name)
def test_every_verb_is_called_with_every_parameter(verb: Verb, control: FakeControl) -> None:
    """The verb's name, then the parameters that path and body need, then options for the rest."""
    argv = ["ctl", *verb.name.split(), *("name" for _ in verb.places)]
    argv += [sample(parameter) for parameter in verb.parameters if parameter.required]
    for parameter in verb.parameters:
        if not parameter.required:
            option = f"--{parameter.name.replace('_', '-')}"
            argv += [option] if parameter.kind == "flag" else [option, sample(parameter)]
    if not verb.answer:
        control.answers[f"{verb.method} {verb.path}"] = b"text"
    assert main([*argv, *(["--json"] if verb.answer else [])]) == 0
    method, path, body = control.seen[-1]
    assert (method, path.partition("?")[0]) == (verb.method, re.sub(r"\{\w+\}", "name", verb.path))
    if verb.method not in {"GET", "DELETE"}:
        expected = verb.document({parameter.name: meant(parameter) for parameter in verb.fields})
        assert body == expected


def test_a_list_is_a_table(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are aligned to the right, inner lists are counted, long cells are cut, what is not there is a dash."""
    control.answers["GET /v1/topics"] = {
        "topics": [
            {"name": "orders", "id": "x" * 70, "internal": False, "partitions": [{"partition": 0}, {"partition": 1}]},
            {"name": "p", "id": None, "internal": True, "partitions": []},
        ]
    }
    assert main(["ctl", "topics", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"NAME    {'ID':60}  INTERNAL  PARTITIONS",
        f"orders  {'x' * 57}...  no                 2",
        f"p       {'-':60}  yes                -",
    ]


def test_an_answer_without_a_list_is_facts(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a field; the list, if there is one, comes after them."""
    brokers = [{"id": 1, "port": 9092, "up": True}]
    control.answers["GET /v1/cluster"] = {"controller": 1, "features": {"a": 1}, "brokers": brokers}
    assert main(["ctl", "cluster"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *("controller  1", 'features    {"a": 1}'),
        *("ID  HOST  PORT  UP   FENCED  EPOCH", "1   -     9092  yes  -       -"),
    ]


def test_lists_within_an_answer_are_tables_that_awk_divides(
    control: FakeControl, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each under its name, after a blank line; an empty text does not shift the columns after it."""
    lags = [{"topic": "t", "partition": at, "offset": None if at else 3, "lag": 51 - at} for at in (0, 1)]
    offsets = [{"topic": "t", "partition": 0, "offset": 3, "metadata": "", "lag": 51}]
    members = [{"member_id": "m-1", "client_id": "", "instance_id": None, "assignment": ["t-0", "t-1"]}]
    answer = {"group_id": "g", "offsets": offsets, "lags": lags, "timeline": [], "lag": 51, "members": members}
    control.answers["GET /v1/groups/g"] = answer
    assert main(["ctl", "groups", "show", "g"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines() == [
        *("group_id  g", "timeline  -", "lag       51", ""),
        *("offsets:", "TOPIC  PARTITION  OFFSET  METADATA  LAG", 't              0       3  ""         51', ""),
        *(
            "lags:",
            "TOPIC  PARTITION  OFFSET  LAG",
            "t              0       3   51",
            "t              1       -   50",
            "",
        ),
        *("members:", "MEMBER_ID  CLIENT_ID  INSTANCE_ID  ASSIGNMENT", 'm-1        ""         -            t-0,t-1'),
    ]
    script = '/^[a-z_]+:$/ { list = $0 } list == "lags:" && NF == 4 { print $2, $4 }'
    done = subprocess.run(["awk", "-F", "  +", script], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["PARTITION LAG", "0 51", "1 50"]


def test_what_a_terminal_obeys_is_shown_instead(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients choose names; control characters in one are escaped in the output. JSON stays as it is."""
    evil = "a\x1b[2Jb\r\nc\x9bd\u202ee ü"
    row = {"transactional_id": evil, "state": "Empty", "pending_offsets": {evil: 1}}
    control.answers["GET /v1/transactions"] = {"transactions": [row]}
    control.answers["GET /v1/transactions/name"] = row
    for verb in (["list"], ["show", "name"]):
        assert main(["ctl", "transactions", *verb]) == 0
        output = capsys.readouterr().out
        assert r"a\x1b[2Jb\r\nc\x9bd\u202ee ü" in output
        assert all(each.isprintable() or each == "\n" for each in output)
    assert main(["ctl", "transactions", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["transactions"] == [row]


def test_json_is_the_servers_answer(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints the server's response unchanged."""
    control.answers["GET /v1/clock"] = {"now_ms": 5, "frozen": False}
    assert main(["ctl", "--json", "clock", "show"]) == 0
    assert json.loads(capsys.readouterr().out) == {"now_ms": 5, "frozen": False}


def test_bytes_go_to_a_file(control: FakeControl, tmp_path: pytest.TempPathFactory) -> None:
    """`journal pcap -o FILE` writes the bytes to the file."""
    control.answers["GET /v1/journal.pcap"] = b"\xd4\xc3"
    assert main(["ctl", "journal", "pcap", "-o", f"{tmp_path}/j.pcap"]) == 0
    with open(f"{tmp_path}/j.pcap", "rb") as file:  # noqa: PTH123 - as the user wrote it
        assert file.read() == b"\xd4\xc3"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250", 250), ("250ms", 250), ("1.5s", 1500), ("15m", 900_000), ("2h", 7_200_000), ("7d", 604_800_000)],
)
def test_a_duration_has_a_unit_or_is_milliseconds(text: str, ms: int) -> None:
    """A number and a unit, or a plain number."""
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("ctl clok", "understudy ctl: no such verb: clok (did you mean clock?)\n"),
        ("ctl --contrl http://x clock", "understudy ctl: no such option: --contrl (did you mean --control?)\n"),
        ("ctl clock", "understudy ctl clock: needs one of show, advance, freeze, thaw\n"),
        ("ctl clock advance soon", "argument MS: needs milliseconds, 90s, 15m, 2h or 7d, not 'soon'\n"),
        pytest.param(
            "ctl clock advance " + "9" * 400 + "s",
            "argument MS: needs milliseconds, 90s, 15m, 2h or 7d, not '9999",
            id="long number",
        ),
        pytest.param("ctl faults add --alter " + "[" * 5_000, "error_code -> new value), not '[", id="nested"),
        ("ctl faults add --apl EndTxn", "understudy ctl faults add: no such option: --apl (did you mean --api?)\n"),
        (
            "ctl faults add --api EndTxn --skip 1",
            "needs an effect, one of --error, --disconnect, --drop, --delay-ms,",
        ),
        ("ctl faults add --drop --times thrice", "argument --times: needs a whole number or null, not 'thrice'\n"),
        ("ctl faults add --drop --versions all", "argument --versions: needs first,last, such as 0,3; not 'all'\n"),
        ("ctl faults add --drop --versions 0", "argument --versions: needs first,last, such as 0,3; not '0'\n"),
        ("ctl faults add --bytes corrupt=1", "needs offset,mask with a mask from 1 to 255; not '1'\n"),
        ("ctl why x", "understudy ctl: no such verb: why (there are health, cluster, "),
        ("ctl brokers kill", "understudy ctl brokers kill: needs BROKER: understudy ctl brokers kill BROKER\n"),
        ("ctl transactions hold x", "needs AT: understudy ctl transactions hold TRANSACTIONAL_ID AT\n"),
        ("ctl versions set 2.8", "takes no further argument, such as '2.8'; its options are --as-version, --apis\n"),
        ("ctl leader move t 0 none-of-them", "argument BROKER: needs a whole number or null, not 'none-of-them'\n"),
        ("ctl isr set t 0 one,two", "argument REPLICAS: needs whole numbers such as 1,2, not 'one,two'\n"),
        ("ctl records write t hello", """needs JSON, such as '[{"key": "k", "value": "v", "partition": 0}]', not"""),
        ("ctl journal list --limit ten", "argument --limit: needs a whole number, not 'ten'\n"),
        ("ctl faults add --apply-then hangup", "argument --apply-then: knows error, disconnect, drop, delay_ms, not"),
        ("ctl faults add --alter {", "error_code -> new value), not '{'"),
        ("srve", "understudy: no such command: srve (did you mean serve?)\n"),
        ("--versoin", "understudy: no such option: --versoin (did you mean --version?)\n"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    argv: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the nearest name where one is near."""
    with pytest.raises(SystemExit) as left:
        main(argv.split())
    printed = capsys.readouterr()
    assert (left.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert sentence in printed.err


def test_a_refusal_is_one_sentence_and_exit_code_1(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """The problem's detail; likewise when no server answers."""
    control.answers["GET /v1/topics/t"] = (404, {"title": "Not Found", "detail": "no such topic: t"})
    with pytest.raises(SystemExit) as left:
        main(["ctl", "topics", "show", "t"])
    assert (left.value.code, capsys.readouterr().err) == (1, "understudy ctl: no such topic: t\n")
    with pytest.raises(SystemExit) as left:
        main(["ctl", "health", "--control", "127.0.0.1:1"])
    assert left.value.code == 1
    assert "no control plane answers at http://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"), [((), "requires a token"), (("--token", "guess"), "refuses this token")]
)
def test_a_missing_token_is_answered_with_the_option_that_gives_it(
    options: tuple[str, ...], sentence: str, control: FakeControl, capsys: pytest.CaptureFixture[str]
) -> None:
    """HTTP's header is nothing that a shell could set."""
    detail = "send the header 'Authorization: Bearer TOKEN' with the token of --control-token"
    control.answers["GET /v1/topics"] = (401, {"title": "Unauthorized", "detail": detail})
    with pytest.raises(SystemExit) as left:
        main(["ctl", "topics", "list", *options])
    ways = "pass the server's --control-token with --token or in UNDERSTUDY_CONTROL_TOKEN"
    assert (left.value.code, capsys.readouterr().err) == (1, f"understudy ctl: {control.url} {sentence}; {ways}\n")


@pytest.mark.parametrize("closes_early", [False, True])
def test_a_reader_that_has_enough_is_no_error(closes_early: bool, control: FakeControl) -> None:
    """`understudy ctl topics list | head -1`: the pipe is closed before all of it is written."""
    control.answers["GET /v1/topics"] = {"topics": [{"name": f"t{number}"} for number in range(10_000)]}
    command = [sys.executable, "-m", "understudy", "ctl", "--control", control.url, "topics", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        if not closes_early:
            assert len(process.stdout.readlines()) == 10_000
        process.stdout.close()
        errors = process.stderr.read()
    assert (first.split()[0], errors, process.returncode) == ("NAME", "", 0)


def test_ctrl_c_is_no_failure(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a command that waits: the exit code that shells give it, and no traceback."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.transport.Transport.ask", interrupted)
    assert main(["ctl", "--control", control.url, "clock", "advance", "1d"]) == 130


def test_an_example_in_the_help_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    """Examples in the help can be pasted into a shell: their JSON is quoted."""
    with pytest.raises(SystemExit):
        main(["ctl", "records", "write", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    pasted = shlex.split(help_text[help_text.index("as JSON, such as ") :])
    assert json.loads(pasted[4].rstrip(")")) == [{"key": "k", "value": "v", "partition": 0}]


def test_the_port_is_the_servers_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a container `understudy ctl health` needs no argument, also where the server's port was configured."""
    monkeypatch.delenv("UNDERSTUDY_CONTROL_URL", raising=False)
    monkeypatch.setenv("UNDERSTUDY_CONTROL_PORT", "7777")
    monkeypatch.setenv("UNDERSTUDY_CONTROL_TOKEN", "t")
    address = ctl.address({})
    assert (address.url, address.token) == ("http://127.0.0.1:7777", "t")


def test_every_command_can_be_completed(capsys: pytest.CaptureFixture[str]) -> None:
    """All three shells know each verb; options are in the tree too."""
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "advance freeze thaw" in capsys.readouterr().out
    assert "--transactional-id" in tree()["ctl faults add"]
    assert "--as-version" in tree()["serve"]


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Help lists the commands, also where nothing was typed; the version shows how it was built."""
    for argv in ([], ["--help"], ["help"]):
        assert main(argv) == 0
        assert re.search(r"^  serve +serve a Kafka cluster", capsys.readouterr().out, re.MULTILINE)
    assert main(["--version"]) == 0
    assert re.fullmatch(r"understudy \d+\.\d+\.\d+ \((compiled|pure Python)\)\n", capsys.readouterr().out)


def test_an_option_that_a_scenario_does_not_have_is_not_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    """The version of the file's form is a field of its body, and no option."""
    with pytest.raises(SystemExit) as left:
        main(["ctl", "scenario", "run", "file.json", "--scenario", "1"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "understudy ctl scenario run: no such option: --scenario\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--control", "http://h:port", "health"], "http://h:port is not the URL of a control plane, such as http://"),
        (["--control", "http://[::1", "health"], "http://[::1 is not the URL of a control plane, such as http://"),
        (["--control", "http://a..b:1", "health"], "no control plane answers at http://a..b:1: "),
        (["--token", "a\nb", "health"], "the token has a character that cannot be sent; use letters and digits"),
        (["--token", "☃", "health"], "the token has a character that cannot be sent; use letters and digits"),
    ],
)
def test_an_address_that_none_can_have_is_one_sentence(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And exit code 1, as where no control plane answers."""
    with pytest.raises(SystemExit) as left:
        main(["ctl", *argv])
    output = capsys.readouterr().err
    assert (left.value.code, output.count("\n")) == (1, 1)
    assert sentence in output


def test_an_argument_that_is_no_text_is_refused(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that are not UTF-8, as Python hands them over."""
    with pytest.raises(SystemExit) as left:
        main(["ctl", "topics", "show", "a\udcff"])
    assert (left.value.code, control.seen) == (2, [])
    assert capsys.readouterr().err == "understudy ctl topics show: an argument is not UTF-8 text\n"


def test_what_stdout_cannot_write_is_escaped(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with the arguments."""
    control.answers["GET /v1/topics"] = {"topics": [{"name": "\u65e5\u672c", "partitions": 1}]}
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii", write_through=True))
    assert main(["ctl", "topics", "list", "--json"]) == 0
    assert main(["ctl", "topics", "list"]) == 0
    assert b"\\u65e5\\u672c" in out.getvalue().splitlines()[-1]


def test_the_exit_code_counts_also_if_no_one_reads_the_output() -> None:
    """Such as `understudy audit DIR | true` in a shell with pipefail."""
    code = "import sys; from understudy import cli; cli.run = lambda _: print('a finding') or 1; sys.exit(cli.main([]))"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, env=kept, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    "configs", [{"retention.ms": None}, {"a": "x,b=c"}, {"cleanup.policy": "compact,delete", "b": "1"}]
)
def test_settings_are_sent_as_their_recorded_command_has_them(configs: Mapping[str, Any], control: FakeControl) -> None:
    """Also null, back to the default, and a value that looks like two."""
    command = call(BY_NAME["topics configure"], {"topic": "t", "configs": configs})[2]
    assert main(shlex.split(command)[1:]) == 0
    assert control.seen[-1] == ("PUT", "/v1/topics/t/configs", {"configs": configs})


def test_settings_that_are_no_json_are_refused(control: FakeControl, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings that are not JSON are refused in one sentence."""
    with pytest.raises(SystemExit):
        main(["ctl", "topics", "configure", "t", '{"a": '])
    assert "needs KEY=VALUE,... or an object as JSON, not" in capsys.readouterr().err
    assert control.seen == []
