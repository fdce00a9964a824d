"""`understudy export`, behind the door."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from pipeline.commands.progress import Progress, reason, refuse
from pipeline.session import reachable, session
from pipeline.transfer import exporting, registering
from pipeline.transfer.choosing import (
    MASKABLE,
    Choice,
    ChoiceError,
    parse_offsets,
    parse_pairs,
    parse_sample,
    parse_time,
)
from pipeline.transfer.manifest import Manifest, ManifestError, Store
from pipeline.transfer.mirror import mirror
from pipeline.transfer.registering import RegisterError
from pipeline.transfer.wire import Cluster, WireError, is_bootstrap

PROGRAM: Final = "understudy export"


def choice_of(words: Mapping[str, Any]) -> Choice:
    """What the words say is wanted. Raises ChoiceError."""
    return Choice(
        topics=tuple(words["topic"]),
        offsets=parse_offsets(words["offsets"]),
        times=(parse_time("--since", words["since"]), parse_time("--until", words["until"])),
        sample=parse_sample(words["sample"]),
        masks=parse_pairs("--mask", words["mask"], MASKABLE),
        where=words["where"],
        renamed=parse_pairs("--topic-map", words["topic_map"]),
    )


def main(words: Mapping[str, Any]) -> int:
    """Do it; 0: done. Exits with 2 where the words make no sense, with 1 where it failed."""
    progress = Progress(quiet=words["quiet"])
    words = {**words, "out": reachable(words["out"], words["master"])}
    try:
        choice = choice_of(words)
        registering.check(words["register_as"])
        exporting.make_room(Store(words["out"]), overwrite=words["overwrite"])
        progress.tell("starting Spark ...")
        spark = session(words["register"], words["master"])
        if not is_bootstrap(words["source"]):
            progress.tell("copying ...")
            manifest = copied(spark, words, words["source"], choice)
        else:
            with tempfile.TemporaryDirectory(prefix="understudy-export-") as folder:
                with Cluster(words["source"]) as cluster:
                    progress.tell("fetching ...")
                    configs = mirror(cluster, Path(folder), choice)
                progress.tell("copying ...")
                manifest = copied(spark, words, folder, choice, configs)
        places = registering.register(Store(words["out"]), manifest, list(dict.fromkeys(words["register_as"])))
    except (ChoiceError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    except (ManifestError, RegisterError, WireError) as error:
        refuse(PROGRAM, error, 1)
    except PySparkException as error:
        refuse(PROGRAM, reason(error), 1)
    finally:
        progress.done()
    told = f"{manifest.records} records of {len(manifest.topics)} topics in {len(manifest.files)} files"
    print(f"{told}: {words['out']}")  # noqa: T201 - a command's answer
    for kind, place in places.items():
        print(f"{kind}: {place}")  # noqa: T201
    return 0


def copied(
    spark: Any, words: Mapping[str, Any], source: str, choice: Choice, configs: Mapping[str, Any] | None = None
) -> Manifest:
    """The export proper, from a directory."""
    return exporting.export(
        spark,
        source,
        words["out"],
        choice=choice,
        producers=words["producers"],
        isolation=words["isolation"],
        told_source=words["source"],
        configs=configs,
    )
