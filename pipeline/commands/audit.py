"""`understudy audit`, behind the door."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.audits import findings, registry, shown
from pipeline.audits.beside import Tree
from pipeline.audits.registry import Check, NoSuchCheckError
from pipeline.commands.progress import Progress, refuse
from pipeline.journal import find_files

PROGRAM: Final = "understudy audit"


def main(words: Mapping[str, Any]) -> int:
    """Do it; 0: nothing found, 1: findings. Exits with 2 where the words make no sense."""
    try:
        if words["list"]:
            print(listed())  # noqa: T201 - a command's answer
            return 0
        if words["show"]:
            print(told(registry.chosen([words["show"]], has=registry.NEEDS)[0]))  # noqa: T201
            return 0
        has = {"records"} if words["records"] else set()
        if words["journal"]:
            has.add("journal")
        wanted = registry.chosen(words["only"], without=words["without"], has=has)
        report, text = audit(words, wanted)
    except (NoSuchCheckError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    if words["format"] != "html":
        text = written(report, words["format"], words["fail_on"])
    if words["out"]:
        Path(words["out"]).write_text(text + "\n", encoding="utf-8")
        print(shown.summary(report))  # noqa: T201
    else:
        sys.stdout.write(text + "\n")
    return 1 if report.at_least(words["fail_on"]) else 0


def listed() -> str:
    """Every check in a line."""
    known = registry.checks().values()
    width = max(len(check.name) for check in known)
    return "\n".join(
        f"{check.severity:8}{check.name:{width + 2}}{check.title}"
        + (f" (needs {', '.join(sorted(check.needs))})" if check.needs else "")
        for check in known
    )


def told(check: Check) -> str:
    """A check with its query."""
    return f"{check.name} ({check.severity}): {check.title}\n{check.explanation}\n\n{check.sql}"


def audit(words: Mapping[str, Any], wanted: list[Check]) -> tuple[findings.Report, str]:
    """Start Spark, make the tables, ask; the report, and its page if that was wanted.

    Raises:
        FileNotFoundError: there is nothing to look at.
    """
    from pipeline.audits.tables import Tables  # noqa: PLC0415 - it brings Spark
    from pipeline.session import session  # noqa: PLC0415 - as above

    progress = Progress(quiet=words["quiet"])
    Tree(words["dir"])  # so that a wrong path is told before Spark starts
    if words["journal"]:
        find_files(words["journal"])
    progress.tell("starting Spark ...")
    spark = session(words["register"], words["master"])
    tables = Tables(spark, words["dir"], words["journal"])
    try:
        progress.tell(f"reading {len(tables.files)} partitions ...")
        tables.register(records=words["records"])
        asked: list[str] = []

        def tell(check: Check, _count: int) -> None:
            asked.append(check.name)
            progress.tell(f"{len(asked)} of {len(wanted)} checks: {check.name}")

        found = findings.ask_all(spark, wanted, tell)
        counted = findings.totals(spark, journal=words["journal"] is not None)
        report = findings.Report(words["dir"], words["journal"], wanted, found, counted)
        if words["format"] == "html":
            from pipeline.audits import page  # noqa: PLC0415 - it brings the plots

            progress.tell("drawing ...")
            return report, page.as_html(report, page.draw(spark, found))
        return report, ""
    finally:
        progress.done()
        tables.forget()


def written(report: findings.Report, form: str, fail_on: str) -> str:
    """The report in a format of the command line."""
    if form == "json":
        return shown.as_json(report)
    if form == "junit":
        return shown.as_junit(report, fails=fail_on)
    return shown.as_table(report)
