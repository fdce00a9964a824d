"""`understudy conformance`, behind the door."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from pipeline.audits.registry import NoSuchCheckError
from pipeline.commands.progress import Progress, reason, refuse
from pipeline.journal import find_files

PROGRAM: Final = "understudy conformance"


def main(words: Mapping[str, Any]) -> int:
    """Do it; 0: no invariant broken (with `--against`: none anew), 1: some; leaves with 2 where words make no sense."""
    progress = Progress(quiet=words["quiet"])
    try:
        code, text, summary = told(words, progress)
    except (NoSuchCheckError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    except PySparkException as error:
        refuse(PROGRAM, reason(error), 2)
    finally:
        progress.done()
    if words["out"]:
        Path(words["out"]).write_text(text + "\n", encoding="utf-8")
        print(summary)  # noqa: T201 - a command's answer
    else:
        sys.stdout.write(text + "\n")
    return code


def told(words: Mapping[str, Any], progress: Progress) -> tuple[int, str, str]:
    """Exit code, report, one line about it.

    Raises:
        FileNotFoundError: no journal, or nothing in it.
        NoSuchCheckError: a name that no invariant has.
    """
    from pipeline.conformance import run, shown  # noqa: PLC0415 - they bring Spark and the plots
    from pipeline.session import session  # noqa: PLC0415 - as above

    checks = run.invariants(words["only"], words["without"])
    paths = [path for path in (words["journal"], words["against"]) if path is not None]
    for path in paths:
        find_files(path)  # so that a wrong path is told before Spark starts
    progress.tell("starting Spark ...")
    spark = session(words["register"], words["master"])
    runs = [
        run.look(spark, path, checks, software=words["software"], tell=lambda what: progress.tell(f"{what} ..."))
        for path in paths
    ]
    conformance = shown.Conformance(*runs)
    drawn = []
    if words["plots"] or words["format"] == "html":
        from pipeline.conformance.pictures import pictures  # noqa: PLC0415 - it brings the plots

        progress.tell("drawing ...")
        drawn = pictures(conformance.now)
    if words["plots"]:
        Path(words["plots"]).mkdir(parents=True, exist_ok=True)
        for name, picture in drawn:
            (Path(words["plots"]) / f"{name}.png").write_bytes(picture.png)
    if words["format"] == "html":
        text = shown.as_html(conformance, [picture for _, picture in drawn])
    elif words["format"] == "json":
        text = shown.as_json(conformance)
    elif words["format"] == "junit":
        text = shown.as_junit(conformance, fail_on=words["fail_on"])
    else:
        text = shown.as_table(conformance)
    return int(bool(conformance.failing(words["fail_on"]))), text, conformance.summary
