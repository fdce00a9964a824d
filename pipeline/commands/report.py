"""`understudy report`, in a process that has Spark."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from pipeline.audits.sidecar_files import Tree
from pipeline.commands.output import deliver, terminal_width
from pipeline.commands.progress import Progress, refuse
from pipeline.journal import find_files
from pipeline.rendering.queries import Question
from pipeline.rendering.text import last_line
from pipeline.reports import answers, registry
from pipeline.reports.registry import NoSuchReportError
from pipeline.reports.tables import Asked, ReportTables
from pipeline.transfer.selection import ChoiceError, parse_time

PROGRAM: Final = "understudy report"


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: done. Exits with 2 for invalid arguments, with 1 for a failure."""
    progress = Progress(quiet=arguments["quiet"])
    try:
        if arguments["list"]:
            print(listed())  # noqa: T201 - a command's answer
            return 0
        if arguments["show"]:
            print(described(registry.chosen([arguments["show"]])[0]))  # noqa: T201
            return 0
        wanted = registry.chosen(arguments["only"], arguments["without"], journal=arguments["journal"] is not None)
        text, summary = written(arguments, wanted, asked_of(arguments), progress)
    except (NoSuchReportError, ChoiceError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    except PySparkException as error:
        refuse(PROGRAM, last_line(error), 1)
    finally:
        progress.done()
    deliver(PROGRAM, arguments["dir"], arguments, text, summary)
    return 0


def asked_of(arguments: Mapping[str, Any]) -> Asked:
    """The selection that the arguments describe. Raises ChoiceError."""
    now_ms = parse_time("--at", arguments["at"])
    return Asked(
        topics=tuple(arguments["topic"]),
        now_ms=int(time.time() * 1000) if now_ms is None else now_ms,  # noqa: TID251 - a command's time is the machine's
        retention_ms=arguments["retention_ms"],
        retention_bytes=arguments["retention_bytes"],
        top=arguments["top"],
        values=arguments["values"],
    )


def listed() -> str:
    """Every report in a line."""
    known = registry.questions().values()
    width = max(len(each.name) for each in known)
    return "\n".join(
        f"{each.name:{width + 2}}{each.title}" + (" (needs --journal)" if "journal" in each.needs else "")
        for each in known
    )


def described(question: Question) -> str:
    """A report with its query."""
    return f"{question.name}: {question.title}\n{question.explanation}\n\n{question.sql}"


def written(arguments: Mapping[str, Any], wanted: list[Question], asked: Asked, progress: Progress) -> tuple[str, str]:
    """Start Spark, make the tables, ask; the report in its format, and one line about it.

    Raises:
        FileNotFoundError: there is nothing to look at.
    """
    from pipeline.reports import render  # noqa: PLC0415 - it brings the plots
    from pipeline.session import session  # noqa: PLC0415 - it starts Spark's gateway

    Tree(arguments["dir"])  # reports a wrong path before Spark starts
    if arguments["journal"]:
        find_files(arguments["journal"])
    if arguments["plots"]:
        Path(arguments["plots"]).mkdir(parents=True, exist_ok=True)
    progress.show("starting Spark ...")
    spark = session(arguments["register"], arguments["master"])
    tables = ReportTables(spark, arguments["dir"], arguments["journal"], asked)
    try:
        progress.show("reading ...")
        tables.register(wanted)
        found = answers.ask_all(tables, wanted, lambda name: progress.show(f"{name} ..."))
        lags = answers.lags(tables) if any("journal" in each.needs for each in wanted) else []
        report = answers.Report(arguments["dir"], arguments["journal"], tables.topics, found, lags)
    finally:
        tables.forget()
    drawn = []
    if arguments["plots"] or arguments["format"] == "html":
        from pipeline.reports.pictures import pictures  # noqa: PLC0415 - it brings the plots

        progress.show("drawing ...")
        drawn = pictures(report)
    if arguments["plots"]:
        for name, picture in drawn:
            arguments["write"](Path(arguments["plots"]) / f"{name}.png", picture.png, "--plots")
    if arguments["format"] == "html":
        return render.as_html(report, drawn), report.summary
    is_json = arguments["format"] == "json"
    text = render.as_json(report) if is_json else render.as_table(report, terminal_width(arguments))
    return text, report.summary
