"""The documentation agrees with the code: code is copied from examples, commands parse, links have a target."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import understudy
from broker.options import parse
from broker.options.released import setting_tables
from broker.settings.names import is_setting
from broker.settings.tables import BROKER
from control_api.verb import Verb
from control_api.verbs import VERBS
from understudy import ctl, serve

ROOT = Path(__file__).resolve().parent.parent
TASK = re.compile(r"^```\n((?:GET|POST|PUT|DELETE) .*)\n(kafka\..*)\n(understudy ctl .*)\n```$", re.MULTILINE)
"""A task of docs/faults-and-time.md: the call over HTTP, in Python and in the shell."""
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def commands(name: str) -> Iterator[list[str]]:
    """The arguments of each `understudy <name> ...` line of a code block, continued lines joined."""
    for page in PAGES:
        for block in re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip().startswith(f"understudy {name} "):
                    arguments = shlex.split(line, comments=True)[2:]
                    yield list(takewhile(lambda each: each != "|", arguments))


def test_every_serve_command_starts_a_server() -> None:
    """Its options exist and make sense together."""
    command_lines = list(commands("serve"))
    assert command_lines
    for argv in command_lines:
        assert parse(serve.gather(argv, {})).brokers >= 1


def test_every_ctl_command_is_a_verb() -> None:
    """Each `ctl` command in the documentation has a verb and options that exist."""
    command_lines = list(commands("ctl"))
    assert command_lines
    parser = ctl.build_parser()
    for argv in command_lines:
        assert parser.parse_args(argv).verb.path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_from_an_example_is_the_examples(page: Path) -> None:
    """Literally, so that the examples' tests are the documentation's."""
    pattern = r"<!-- from (\S+) -->\n```\w+\n(.*?)```"
    for name, code in re.findall(pattern, page.read_text(encoding="utf-8"), re.DOTALL):
        assert code in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file or a folder of the repository."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    """A path in code that begins with one of our folders."""
    built = {"build", "dist"}  # by make, where it has run
    ours = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    folders = "|".join(name for name in ours if name not in built)
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_names_that_are_promised_exist() -> None:
    """`understudy.something` in a page is public."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = set(re.findall(r"\bunderstudy\.([a-z]+)\(", text))
    assert names - set(understudy.__all__) == set()
    assert [name for name in understudy.__all__ if not hasattr(understudy, name)] == []


def test_the_settings_that_are_named_exist() -> None:
    """`--set name=` in a page is a setting of Kafka's."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = set(re.findall(r"--set ([a-z][a-z.]+)=", text))
    assert names
    known = {**BROKER, **setting_tables("3.9").removed}
    assert [name for name in names if not is_setting(name, known)] == []


def test_the_make_targets_that_are_named_exist() -> None:
    """`make something` in a page is a target."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) - targets == set()


def test_the_tables_are_made_from_the_code() -> None:
    """tools/generate_reference.py --check finds nothing stale."""
    tool = ROOT / "tools" / "generate_reference.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "written: nothing")


def test_the_comparison_is_right_about_us() -> None:
    """The verbs that it names exist; the features that it calls missing are in GAPS.md."""
    page = (ROOT / "docs" / "migrate-and-other-mocks.md").read_text(encoding="utf-8")
    gaps = (ROOT / "docs" / "GAPS.md").read_text(encoding="utf-8")
    named = re.findall(r"`(GET|POST|PUT|DELETE) (/v1/[^`]*)`", page)
    assert named
    assert set(named) - {(verb.method, verb.path) for verb in VERBS} == set()
    missing_here = re.findall(
        r"\*\*([^*]+)\*\*", page.partition("Missing Kafka features.**")[2].partition("* **In-process")[0]
    )
    missing_here += re.findall(r"\*\*([^*]+\(KIP-\d+\))\*\*", page)
    assert missing_here
    answer = [each for each in missing_here if f"* **{each}" not in gaps]
    assert answer == [], "GAPS.md does not list them, or under another name: correct docs/migrate-and-other-mocks.md"


def test_every_verb_has_its_task_in_steering() -> None:
    """The three lines of each are run by test_steering.py, which has to know every block of the page."""
    text = (ROOT / "docs" / "faults-and-time.md").read_text(encoding="utf-8")
    tasks = TASK.findall(text)
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * (
        len(tasks) + 2
    )  # and what starts the example: the server, and its clients
    ways = [(line.split()[0], line.split()[1].partition("?")[0].split("/")) for line, _, _ in tasks]

    def is_there(verb: Verb) -> bool:
        wanted = verb.path.split("/")
        return any(
            method == verb.method
            and len(way) == len(wanted)
            and all(part == segment or part.startswith("{") for part, segment in zip(wanted, way, strict=True))
            for method, way in ways
        )

    missing = [verb.name for verb in VERBS if verb.example is None and not is_there(verb)]
    assert missing == [], "give each a task in docs/faults-and-time.md, in all three forms, or its row an example"


def pasted(page: Path) -> Iterator[tuple[str, str]]:
    """The JSON in a page's code: whole blocks, bodies of requests, arguments of shell lines; with its place."""
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"```(\w*)\n(.*?)```", text, re.DOTALL):
        place = f"{page.name}:{text[: block.start()].count(chr(10)) + 1}"
        if block[1] == "json":
            yield place, block[2]
        for line in block[2].splitlines():
            request = re.match(r"(?:GET|POST|PUT|DELETE) \S+ ([\[{].*)", line)
            arguments = shlex.split(line) if "understudy ctl" in line else []
            for snippet in ([request[1]] if request else []) + [each for each in arguments if each[:1] in {"{", "["}]:
                yield place, snippet


def test_json_in_the_docs_can_be_pasted() -> None:
    """No dots for what was left out, no names for values; a block may also be JSON lines."""

    def is_json(text: str) -> bool:
        try:
            json.loads(text)
        except ValueError:
            lines = text.strip().splitlines()
            return len(lines) > 1 and all(map(is_json, lines))
        return True

    snippets = [each for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")] for each in pasted(page)]
    assert len(snippets) > 10
    assert [each for each in snippets if not is_json(each[1])] == []
