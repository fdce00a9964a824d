"""`understudy export`: in this process if the logs are small, else on Spark."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.audits.engine import EngineError
from pipeline.commands.engines import EXPORTED, engine_errors, session_for
from pipeline.commands.progress import Progress, code_of, refuse
from pipeline.decoding.damage import DamagedError
from pipeline.live.asking import LiveCluster
from pipeline.locations import reachable
from pipeline.rendering.text import counted
from pipeline.transfer import catalog, export
from pipeline.transfer.catalog import RegisterError
from pipeline.transfer.manifest import Manifest, ManifestError, Store
from pipeline.transfer.mirror import mirror
from pipeline.transfer.security import Security, SecurityError, read_security
from pipeline.transfer.selection import (
    MASKABLE,
    Choice,
    ChoiceError,
    parse_offsets,
    parse_pairs,
    parse_sample,
    parse_time,
)
from pipeline.transfer.wire import Cluster, WireError, is_bootstrap
from pipeline.values.columns import SIDES, Schemas
from pipeline.values.formats import SchemaError, read_file
from pipeline.values.registry import RegistryError

PROGRAM: Final = "understudy export"


def choice_of(arguments: Mapping[str, Any]) -> Choice:
    """Return the selection of the command line. Raises ChoiceError."""
    return Choice(
        topics=tuple(arguments["topic"]),
        offsets=parse_offsets(arguments["offsets"]),
        times=(parse_time("--since", arguments["since"]), parse_time("--until", arguments["until"])),
        sample=parse_sample(arguments["sample"]),
        masks=parse_pairs("--mask", arguments["mask"], MASKABLE),
        where=arguments["where"],
        renamed=parse_pairs("--topic-map", arguments["topic_map"]),
    )


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: done. Exits with 2 for invalid arguments, with 1 for a failure."""
    progress = Progress(quiet=arguments["quiet"])
    arguments = {**arguments, "out": reachable(arguments["out"], arguments["master"])}
    try:
        choice = choice_of(arguments)
        catalog.check(arguments["register_as"])
        if arguments["append"] and arguments["overwrite"]:
            raise ChoiceError("--append continues an export and --overwrite replaces it: use one of them")
        security = read_security(arguments["client_config"])
        schemas = schemas_of(arguments)
        schemas.check()
        check_source(arguments["source"], choice, security)
        before = export.prepare(Store(arguments["out"]), overwrite=arguments["overwrite"], append=arguments["append"])
        with engine_errors():
            if not is_bootstrap(arguments["source"]):
                manifest = copied(arguments, arguments["source"], choice, schemas, progress)
            else:
                starts = starts_of(before if arguments["append"] else None)
                with tempfile.TemporaryDirectory(prefix="understudy-export-") as folder:
                    with LiveCluster(arguments["source"], security=security) as cluster:
                        progress.show("fetching ...")
                        configs = mirror(cluster, Path(folder), choice, starts)
                    manifest = copied(arguments, folder, choice, schemas, progress, configs)
        store = Store(arguments["out"])
        kinds = dict.fromkeys([*arguments["register_as"], *(catalog.registered(store) if arguments["append"] else ())])
        catalog.forget(store)
        places = catalog.register(store, manifest, list(kinds))
    except (ChoiceError, SecurityError, SchemaError, RegistryError) as error:
        refuse(PROGRAM, error)
    except (ManifestError, RegisterError, WireError, EngineError, DamagedError) as error:
        refuse(PROGRAM, error, 1)
    except OSError as error:
        refuse(PROGRAM, error, code_of(error))
    finally:
        progress.done()
    amounts = (
        counted(manifest.records, "record"),
        counted(len(manifest.topics), "topic"),
        counted(len(manifest.files), "file"),
    )
    print(f"{amounts[0]} of {amounts[1]} in {amounts[2]}: {arguments['out']}")  # noqa: T201 - a command's answer
    for kind, place in places.items():
        print(f"{kind}: {place}")  # noqa: T201
    return 0


def schemas_of(arguments: Mapping[str, Any]) -> Schemas:
    """Return the sources of schemas for keys and values. Raises SchemaError."""
    files = [read_file(text, side) for side in SIDES for text in arguments[f"{side}_schema"]]
    return Schemas(arguments["schema_registry"], dict(files), arguments["schema_ids"])


def starts_of(before: Manifest | None) -> dict[tuple[str, int], int]:
    """Return the offset at which each partition of an earlier export continues, by the names in the export."""
    return {
        (name, number): bounds.last_offset + 1
        for name, partitions in (before.topics if before is not None else {}).items()
        for number, bounds in partitions.items()
        if bounds.last_offset is not None
    }


def check_source(source: str, choice: Choice, security: Security) -> None:
    """Check, before Spark starts, that the source is reachable and has a selected topic.

    Raises:
        FileNotFoundError: no such directory, or no such topic.
        WireError: no broker answers at the address.
    """
    if is_bootstrap(source):
        with Cluster(source, security=security) as cluster:
            export.check_topics(source, cluster.topics, choice)
    else:
        export.check_source(source, choice)


def copied(
    arguments: Mapping[str, Any], source: str, choice: Choice, schemas: Schemas, progress: Progress,
    configs: Mapping[str, Any] | None = None,
) -> Manifest:  # fmt: skip
    """Run the export of a directory."""
    spark = session_for(arguments, source, progress, EXPORTED, needs_sql=choice.needs_sql)
    progress.show("copying ...")
    return export.export(
        spark,
        source,
        arguments["out"],
        choice=choice,
        producers=arguments["producers"],
        isolation=arguments["isolation"],
        overwrite=arguments["overwrite"],
        append=arguments["append"],
        warn=lambda sentence: print(f"{PROGRAM}: {sentence}", file=sys.stderr),  # noqa: T201
        source_name=arguments["source"],
        configs=configs,
        schemas=schemas,
    )
