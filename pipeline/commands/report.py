"""`understudy report`, behind the door."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from pipeline.audits.beside import Tree
from pipeline.commands.progress import Progress, reason, refuse
from pipeline.journal import find_files
from pipeline.reports import answers, registry
from pipeline.reports.registry import NoSuchReportError
from pipeline.reports.tables import Asked, ReportTables
from pipeline.showing.queries import Question
from pipeline.transfer.choosing import ChoiceError, parse_time

PROGRAM: Final = "understudy report"


def main(words: Mapping[str, Any]) -> int:
    """Do it; 0: done. Exits with 2 where the words make no sense, with 1 where it failed."""
    progress = Progress(quiet=words["quiet"])
    try:
        if words["list"]:
            print(listed())  # noqa: T201 - a command's answer
            return 0
        if words["show"]:
            print(told(registry.chosen([words["show"]])[0]))  # noqa: T201
            return 0
        wanted = registry.chosen(words["only"], words["without"], journal=words["journal"] is not None)
        text, summary = written(words, wanted, asked_of(words), progress)
    except (NoSuchReportError, ChoiceError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    except PySparkException as error:
        refuse(PROGRAM, reason(error), 1)
    finally:
        progress.done()
    if words["out"]:
        Path(words["out"]).write_text(text + "\n", encoding="utf-8")
        print(summary)  # noqa: T201
    else:
        sys.stdout.write(text + "\n")
    return 0


def asked_of(words: Mapping[str, Any]) -> Asked:
    """What the words ask. Raises ChoiceError."""
    now_ms = parse_time("--at", words["at"])
    return Asked(
        topics=tuple(words["topic"]),
        now_ms=int(time.time() * 1000) if now_ms is None else now_ms,  # noqa: TID251 - a command's time is the machine's
        retention_ms=words["retention_ms"],
        retention_bytes=words["retention_bytes"],
        top=words["top"],
        values=words["values"],
    )


def listed() -> str:
    """Every report in a line."""
    known = registry.questions().values()
    width = max(len(each.name) for each in known)
    return "\n".join(
        f"{each.name:{width + 2}}{each.title}" + (" (needs --journal)" if "journal" in each.needs else "")
        for each in known
    )


def told(question: Question) -> str:
    """A report with its query."""
    return f"{question.name}: {question.title}\n{question.explanation}\n\n{question.sql}"


def written(words: Mapping[str, Any], wanted: list[Question], asked: Asked, progress: Progress) -> tuple[str, str]:
    """Start Spark, make the tables, ask; the report in its format, and one line about it.

    Raises:
        FileNotFoundError: there is nothing to look at.
    """
    from pipeline.reports import shown  # noqa: PLC0415 - it brings the plots
    from pipeline.session import session  # noqa: PLC0415 - it starts Spark's gateway

    Tree(words["dir"])  # so that a wrong path is told before Spark starts
    if words["journal"]:
        find_files(words["journal"])
    if words["plots"]:
        Path(words["plots"]).mkdir(parents=True, exist_ok=True)
    progress.tell("starting Spark ...")
    spark = session(words["register"], words["master"])
    tables = ReportTables(spark, words["dir"], words["journal"], asked)
    try:
        progress.tell("reading ...")
        tables.register(wanted)
        found = answers.ask_all(tables, wanted, lambda name: progress.tell(f"{name} ..."))
        lags = answers.lags(tables) if any("journal" in each.needs for each in wanted) else []
        report = answers.Report(words["dir"], words["journal"], tables.topics, found, lags)
    finally:
        tables.forget()
    drawn = []
    if words["plots"] or words["format"] == "html":
        from pipeline.reports.pictures import pictures  # noqa: PLC0415 - it brings the plots

        progress.tell("drawing ...")
        drawn = pictures(report)
    if words["plots"]:
        for name, picture in drawn:
            (Path(words["plots"]) / f"{name}.png").write_bytes(picture.png)
    if words["format"] == "html":
        return shown.as_html(report, drawn), report.summary
    return (shown.as_json(report) if words["format"] == "json" else shown.as_table(report)), report.summary
