"""`understudy conformance`: on DuckDB in this process, or on Spark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from pipeline.audits.engine import Engine, EngineError
from pipeline.audits.registry import Check, NoSuchCheckError
from pipeline.commands.engines import needs_duckdb, reader_for
from pipeline.commands.output import deliver, terminal_width
from pipeline.commands.progress import Progress, refuse
from pipeline.decoding.damage import DamagedError

if TYPE_CHECKING:
    from pipeline.conformance.run import Run

PROGRAM: Final = "understudy conformance"


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: no new violation, 1: some. Exits with 2 for invalid arguments."""
    progress = Progress(quiet=arguments["quiet"])
    try:
        with TemporaryDirectory(prefix="understudy-conformance-") as scratch:
            code, text, summary = compared(arguments, progress, Path(scratch))
    except (NoSuchCheckError, OSError, DamagedError, EngineError) as error:
        refuse(PROGRAM, error)
    finally:
        progress.done()
    deliver(PROGRAM, arguments["journal"], arguments, text, summary)
    return code


def compared(arguments: Mapping[str, Any], progress: Progress, scratch: Path) -> tuple[int, str, str]:
    """Return the exit code, the report and a one-line summary; the pytest fixture's journals go through `scratch`.

    Raises:
        FileNotFoundError: no journal, or an empty one.
        NoSuchCheckError: no invariant has this name.
    """
    from pipeline.conformance import kept_journals, render, run  # noqa: PLC0415 - they bring the plots

    checks = run.invariants(arguments["only"], arguments["without"])
    journals = [path for path in (arguments["journal"], arguments["against"]) if path is not None]
    # Report a wrong path before starting an engine.
    paths = [kept_journals.readable(path, scratch / str(number)) for number, path in enumerate(journals)]
    look = looked_at(arguments, paths, progress)
    runs = [replace(look(path, checks), journal=name) for name, path in zip(journals, paths, strict=True)]
    conformance = render.Conformance(*runs)
    drawn = []
    if arguments["plots"] or arguments["format"] == "html":
        from pipeline.conformance.pictures import pictures  # noqa: PLC0415 - it brings the plots

        progress.show("drawing ...")
        drawn = pictures(conformance.now)
    if arguments["plots"]:
        for name, picture in drawn:
            arguments["write"](Path(arguments["plots"]) / f"{name}.png", picture.png, "--plots")
    if arguments["format"] == "html":
        text = render.as_html(conformance, [picture for _, picture in drawn])
    elif arguments["format"] == "json":
        text = render.as_json(conformance)
    elif arguments["format"] == "junit":
        text = render.as_junit(conformance, fail_on=arguments["fail_on"])
    else:
        text = render.as_table(conformance, terminal_width(arguments))
    return int(bool(conformance.failing(arguments["fail_on"]))), text, conformance.summary


def looked_at(
    arguments: Mapping[str, Any], paths: Sequence[str], progress: Progress
) -> "Callable[[str, Sequence[Check]], Run]":
    """Return a function that analyses a journal, on the engine that suits the size."""
    from pipeline.conformance import run  # noqa: PLC0415 - as above

    def ask(engine: Engine, path: str, checks: Sequence[Check]) -> "Run":
        return run.look(
            engine, path, checks, software=arguments["software"], show=lambda what: progress.show(f"{what} ...")
        )

    needs_duckdb()
    from pipeline.duck.engine import DuckEngine  # noqa: PLC0415 - it brings DuckDB
    from pipeline.duck.tables import register_conformance  # noqa: PLC0415 - as above

    def look(path: str, checks: Sequence[Check]) -> "Run":
        reader = reader_for(arguments, paths, progress)
        engine = DuckEngine()
        try:
            register_conformance(engine, path, reader)
            return ask(engine, path, checks)
        finally:
            engine.close()
            reader.close()

    return look
