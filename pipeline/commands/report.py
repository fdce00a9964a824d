"""`understudy report`: on DuckDB in this process, or on Spark."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.audits.engine import EngineError
from pipeline.audits.sidecar_files import Tree
from pipeline.client_history import HistoryError, read
from pipeline.commands.engines import needs_duckdb, reader_for
from pipeline.commands.output import deliver, terminal_width
from pipeline.commands.progress import Progress, code_of, refuse
from pipeline.decoding.damage import DamagedError
from pipeline.journal import find_files
from pipeline.rendering.queries import Question
from pipeline.reports import answers, registry
from pipeline.reports.asking import Selection, TablesOfReports
from pipeline.reports.registry import NoSuchReportError
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
        text, summary = written(arguments, wanted, selection_of(arguments), progress)
    except (NoSuchReportError, ChoiceError, HistoryError) as error:
        refuse(PROGRAM, error)
    except (DamagedError, EngineError) as error:
        refuse(PROGRAM, error, 1)
    except OSError as error:
        refuse(PROGRAM, error, code_of(error))
    finally:
        progress.done()
    deliver(PROGRAM, arguments["dir"], arguments, text, summary)
    return 0


def selection_of(arguments: Mapping[str, Any]) -> Selection:
    """Return the selection of the command line. Raises ChoiceError."""
    now_ms = parse_time("--at", arguments["at"])
    return Selection(
        topics=tuple(arguments["topic"]),
        now_ms=int(time.time() * 1000) if now_ms is None else now_ms,  # noqa: TID251 - a command's time is the machine's
        retention_ms=arguments["retention_ms"],
        retention_bytes=arguments["retention_bytes"],
        top=arguments["top"],
        values=arguments["values"],
    )


def listed() -> str:
    """Return one line for every report."""
    known = registry.questions().values()
    width = max(len(each.name) for each in known)
    return "\n".join(
        f"{each.name:{width + 2}}{each.title}" + (" (needs --journal)" if "journal" in each.needs else "")
        for each in known
    )


def described(question: Question) -> str:
    """Return a report with its query."""
    return f"{question.name}: {question.title}\n{question.explanation}\n\n{question.sql}"


def written(
    arguments: Mapping[str, Any], wanted: list[Question], selection: Selection, progress: Progress
) -> tuple[str, str]:
    """Make the tables, run the queries, and return the report in its format with a one-line summary.

    Raises:
        FileNotFoundError: there is nothing to report on.
        EngineError: a query failed.
        DamagedError: a line of the journal cannot be read.
    """
    from pipeline.reports import render  # noqa: PLC0415 - it brings the plots

    Tree(arguments["dir"])  # report a wrong path before starting an engine
    if arguments["journal"]:
        find_files(arguments["journal"])
    report = reported(arguments, wanted, selection, progress)
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


def reported(
    arguments: Mapping[str, Any], wanted: list[Question], selection: Selection, progress: Progress
) -> answers.Report:
    """Return all results. Raises FileNotFoundError, EngineError, DamagedError, HistoryError."""
    directory, journal = arguments["dir"], arguments["journal"]
    histories = read(arguments["history"]) if arguments.get("history") else None
    needs_duckdb()
    from pipeline.reports.duck_tables import DuckReportTables  # noqa: PLC0415 - it brings DuckDB

    paths = [directory, journal] if journal else [directory]
    reader = reader_for(arguments, paths, progress, records=any("records" in each.needs for each in wanted))
    return answered(DuckReportTables(directory, journal, selection, reader, histories), arguments, wanted, progress)


def answered(
    tables: TablesOfReports, arguments: Mapping[str, Any], wanted: list[Question], progress: Progress
) -> answers.Report:
    """Make the tables and query them."""
    try:
        progress.show("reading ...")
        tables.prepare(wanted)
        results = answers.ask_all(tables, wanted, lambda name: progress.show(f"{name} ..."))
        lags = answers.lags(tables) if any("journal" in each.needs for each in wanted) else []
        return answers.Report(arguments["dir"], arguments["journal"], tables.topics, results, lags)
    finally:
        tables.forget()
