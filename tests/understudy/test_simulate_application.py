"""`understudy simulate --application`: exit codes, the command that repeats a seed, and refusals."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.simulate import main

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, os, random
from aiokafka import AIOKafkaProducer

async def work(sim, names):
    names.append(random.choice(sorted({str(random.random()) for _ in range(9)}) + list({"a", "b", "c"})))
    await asyncio.sleep(0)

async def fine(sim):
    names = []
    sim.process("worker", lambda: work(sim, names))
    await sim.feed("in", range(5))
    await sim.calm()
    assert len(await sim.read("in")) == 5

async def wrong(sim):
    await fine(sim)
    for value in range(4):
        producer = AIOKafkaProducer(bootstrap_servers=sim.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        await producer.send_and_wait("in", b"%d" % value)
        await producer.stop()
    assert sim.seed % 3, f"a multiple of three: {sim.random.random()} {random.random()} {os.urandom(4).hex()}"

def plain(sim):
    pass
"""


def simulate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder with the program, without a fixed hash seed."""
    (folder / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONHASHSEED", None)
    command = [sys.executable, "-m", "understudy", "simulate", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def options(function: str, *rest: str) -> list[str]:
    """The options of short runs."""
    return ["--application", f"program:{function}", "--topic", "in", "--minutes", "0.02", *rest]


def test_a_program_without_findings_exits_with_0(tmp_path: Path) -> None:
    """Without findings the exit code is 0, and all seeds are counted."""
    done = simulate(tmp_path, *options("fine", "--seeds", "1-4", "--jobs", "2"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 seeds, 0 with findings" in done.stdout


def test_findings_exit_with_1_and_their_command_repeats_them_exactly(tmp_path: Path) -> None:
    """The last lines have seed and command; two further processes find the same, with the same hash."""
    done = simulate(tmp_path, *options("wrong", "--seeds", "2-4"))
    assert done.returncode == 1, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last == "seed 3: understudy simulate --application program:wrong --seed 3 --minutes 0.02 --topic in"
    again = [simulate(tmp_path, *last.split()[4:]).stdout for _ in range(2)]
    outputs = [re.findall("a multiple of three: .*|hash .*", each) for each in (done.stdout, *again)]
    assert outputs[0]
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--application", "program"], "needs MODULE:FUNCTION"),
        (["--application", "missing:main"], "cannot be imported"),
        (["--application", "program:nothing"], "cannot be imported"),
        (["--application", "program:plain"], "needs an async def main"),
        (options("fine", "--faults", "earthquakes"), "earthquakes is no kind of fault"),
        (options("fine", "--topic", "out:none"), "--topic needs NAME or NAME:PARTITIONS"),
        (options("fine", "--seeds", "9-1"), "A not above B"),
        (options("fine", "--brokers", "0"), "brokers needs a number from 1 to 9"),
    ],
)
def test_wrong_options_exit_with_2_and_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    """Invalid options end with exit code 2 and one sentence before a seed is played."""
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_no_shrink_reports_the_plan_as_it_is(tmp_path: Path) -> None:
    """Faults are left out unless that is switched off."""
    arguments = options("wrong", "--seeds", "3-4", "--minutes", "0.2", "--faults", "clock")
    assert "faults are enough" in simulate(tmp_path, *arguments).stdout
    done = simulate(tmp_path, *arguments, "--no-shrink")
    assert "played twice, with the same hash" in done.stdout
    assert "faults are enough" not in done.stdout


def test_a_terminal_has_a_progress_bar_and_stdout_the_report(tmp_path: Path) -> None:
    """Seeds, findings and seeds per second are on stderr's terminal; the file that stdout goes to has whole lines."""
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = [sys.executable, "-m", "understudy", "simulate", *options("wrong", "--seeds", "2-4", "--no-shrink")]
    terminal, other = pty.openpty()
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(
            arguments, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"},
            stdout=out, stderr=other,
        )  # fmt: skip
        os.close(other)
        shown = b""
        with contextlib.suppress(OSError):  # the end of the terminal
            while piece := os.read(terminal, 4096):
                shown += piece
        os.close(terminal)
        assert process.wait(60) == 1
    assert re.search(r"3/3\D.*1 found.*per s", shown.decode())
    report = (tmp_path / "out").read_text()
    assert re.search(r"^seed 3: understudy simulate --application program:wrong .*--topic in$", report, re.MULTILINE)
    assert "seeds" not in report.partition("3 seeds, 1 with findings")[0]
