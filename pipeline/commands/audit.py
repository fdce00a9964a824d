"""`understudy audit`: on DuckDB in this process, or on Spark."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pipeline.audits import client_history, findings, identities, registry, render
from pipeline.audits.engine import EngineError
from pipeline.audits.identities import Identity, IdentityError
from pipeline.audits.registry import Check, CheckFileError, NoSuchCheckError
from pipeline.audits.sidecar_files import Tree
from pipeline.client_history import HistoryError, read
from pipeline.commands.engines import needs_duckdb, reader_for
from pipeline.commands.output import deliver, terminal_width
from pipeline.commands.progress import Progress, refuse
from pipeline.decoding.damage import DamagedError
from pipeline.journal import find_files
from pipeline.live import counts as count_tables
from pipeline.live.counts import Counts
from pipeline.live.tables import OF_FILES
from pipeline.transfer.security import SecurityError
from pipeline.transfer.wire import WireError

if TYPE_CHECKING:
    from pipeline.duck.tables import DuckTables

PROGRAM: Final = "understudy audit"


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: no findings, 1: findings. Exits with 2 for invalid arguments."""
    progress = Progress(quiet=arguments["quiet"])
    try:
        known = registry.with_folder(arguments["checks"]) if arguments.get("checks") else registry.checks()
        if arguments["list"]:
            print(listed(known))  # noqa: T201 - a command's answer
            return 0
        if arguments["show"]:
            print(described(registry.chosen([arguments["show"]], has=registry.NEEDS, known=known)[0]))  # noqa: T201
            return 0
        without = [*arguments["without"], *(OF_FILES if arguments.get("is_cluster") else ())]
        wanted = registry.chosen(arguments["only"], without=without, has=tables_there(arguments), known=known)
        if not arguments["dir"]:
            wanted = [check for check in wanted if "history" in check.needs]
        if arguments.get("follow") is not None:
            return followed(arguments, wanted)
        report, text = audit(arguments, wanted, progress)
    except (NoSuchCheckError, CheckFileError, IdentityError, HistoryError, SecurityError, WireError) as error:
        refuse(PROGRAM, error)
    except (OSError, DamagedError, EngineError) as error:
        refuse(PROGRAM, error)
    finally:
        progress.done()
    if arguments["format"] != "html":
        text = written(report, arguments["format"], arguments["fail_on"], terminal_width(arguments))
    deliver(PROGRAM, report.path, arguments, text, render.summary(report))
    return 1 if report.at_least(arguments["fail_on"]) else 0


def tables_there(arguments: Mapping[str, Any]) -> set[str]:
    """Return the kinds of tables, besides those of the logs, that this command line provides. Raises IdentityError."""
    presence = {
        "records": arguments["records"],
        "journal": arguments["journal"],
        "id": identity_of(arguments) is not None,
        "counts": arguments.get("count_by"),
        "live": arguments.get("is_cluster"),
        "history": arguments.get("history"),
        "logs": arguments["dir"],
    }
    return {name for name, is_there in presence.items() if is_there}


def identity_of(arguments: Mapping[str, Any]) -> Identity | None:
    """Return the identity of `--id`. Raises IdentityError if it is invalid or its topics are missing."""
    topics = arguments.get("input"), arguments.get("output"), arguments.get("group")
    if arguments.get("id") is None:
        if any(topics) and not (arguments.get("count_by") and not topics[2]):
            raise IdentityError("--input, --output and --group need --id key, header:NAME or json:PATH, or --count-by")
        return None
    return identities.parse(arguments["id"], *topics)  # type: ignore[arg-type]  # lists, by the command line


def listed(checks: Mapping[str, Check]) -> str:
    """Return one line for every check."""
    known = checks.values()
    width = max(len(check.name) for check in known)
    return "\n".join(
        f"{check.severity:8}{check.name:{width + 2}}{check.title}"
        + (f" (needs {', '.join(sorted(check.needs))})" if check.needs else "")
        for check in known
    )


def described(check: Check) -> str:
    """Return a check with its query."""
    return f"{check.name} ({check.severity}): {check.title}\n{check.explanation}\n\n{check.sql}"


def audit(arguments: Mapping[str, Any], wanted: list[Check], progress: Progress) -> tuple[findings.Report, str]:
    """Make the tables, run the checks, and return the report and, on request, its HTML page.

    Raises:
        FileNotFoundError: there is nothing to read.
        EngineError: a query failed.
        DamagedError: a line of the journal cannot be read.
    """
    directory, journal = arguments["dir"], arguments["journal"]
    if directory:
        Tree(directory)  # report a wrong path before starting an engine
    if journal:
        find_files(journal)
    tables = tables_of(arguments, progress)
    try:
        progress.show(f"reading {len(tables.files)} partitions ...")
        _register(tables, arguments)
        if (counts := counts_of(arguments)) is not None:
            counts.add(directory, arguments["input"] + arguments["output"] or None)
            tables.add(count_tables.TABLES, counts.tables())
        finished: list[str] = []

        def show(check: Check, _count: int) -> None:
            finished.append(check.name)
            progress.show(f"{len(finished)} of {len(wanted)} checks: {check.name}")

        broken_checks = findings.ask_all(tables.engine, wanted, show)
        counted = findings.totals(tables.engine, journal=journal is not None)
        report = findings.Report(directory or arguments["history"], journal, wanted, broken_checks, counted)
        if arguments["format"] == "html":
            from pipeline.audits import html_report  # noqa: PLC0415 - it brings the plots

            progress.show("drawing ...")
            return report, html_report.as_html(report, html_report.draw(tables.engine, broken_checks))
        return report, ""
    finally:
        tables.forget()


def followed(arguments: Mapping[str, Any], wanted: list[Check]) -> int:
    """Audit repeatedly. Raises FileNotFoundError: no such directory."""
    from pipeline.commands import follow, live  # noqa: PLC0415 - for this alone

    if arguments.get("is_cluster"):
        return live.follow_cluster(arguments, wanted, registered)
    Tree(arguments["dir"])
    counts = counts_of(arguments)

    def register(progress: Progress) -> "DuckTables":
        tables = registered(arguments, progress)
        if counts is not None:
            counts.add(arguments["dir"], arguments["input"] + arguments["output"] or None)
            tables.add(count_tables.TABLES, counts.tables())
        return tables

    return follow.follow(arguments, wanted, register, counts)


def registered(arguments: Mapping[str, Any], progress: Progress) -> "DuckTables":
    """Return the tables of one step."""
    tables = tables_of(arguments, progress)
    try:
        _register(tables, arguments)
    except BaseException:
        tables.forget()
        raise
    return tables


def _register(tables: "DuckTables", arguments: Mapping[str, Any]) -> None:
    """Make the tables of the logs, the journal and `--history`, which is read first, while clients may be active.

    Raises:
        HistoryError: a history cannot be read.
        EngineError, DamagedError, OSError: something else cannot.
    """
    histories = read(arguments["history"]) if arguments.get("history") else None
    tables.register(records=arguments["records"], identity=identity_of(arguments))
    if histories is not None:
        client_history.register(tables, histories)


def counts_of(arguments: Mapping[str, Any]) -> Counts | None:
    """Return the counter for `--count-by`."""
    width_s = arguments.get("count_by")
    return None if width_s is None else Counts(width_s * 1000, arguments["input"], arguments["output"])


def tables_of(arguments: Mapping[str, Any], progress: Progress) -> "DuckTables":
    """Return the tables, decoded by whom it suits. Raises FileNotFoundError: there is no partition."""
    directory, journal = arguments["dir"], arguments["journal"]
    needs_duckdb()
    from pipeline.duck.tables import DuckTables, NoLogs  # noqa: PLC0415 - it brings DuckDB

    if not directory:
        return NoLogs()
    paths = [directory, journal] if journal else [directory]
    reader = reader_for(arguments, paths, progress, records=bool(arguments["records"]))
    return DuckTables(directory, journal, reader)


def written(report: findings.Report, form: str, fail_on: str, width: int | None = None) -> str:
    """Return the report in the format of the command line; `width`: of the terminal."""
    if form == "json":
        return render.as_json(report)
    if form == "junit":
        return render.as_junit(report, fails=fail_on)
    return render.as_table(report, width)
