"""`understudy load`, behind the door."""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from pipeline.commands.export import choice_of
from pipeline.commands.progress import Progress, reason, refuse
from pipeline.session import reachable, session
from pipeline.transfer import exporting, loading, targets
from pipeline.transfer.choosing import ChoiceError, parse_pairs
from pipeline.transfer.manifest import ManifestError, Store
from pipeline.transfer.targets import LoadError, Target
from pipeline.transfer.wire import Cluster, WireError, is_bootstrap
from protocol.records.compression import Codec
from storage.files import DirectoryLockedError

PROGRAM: Final = "understudy load"
KEPT: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of loaded topics unless told otherwise: old records would be deleted before anybody reads them."""


def main(words: Mapping[str, Any]) -> int:
    """Do it; 0: done. Exits with 2 where the words make no sense, with 1 where it failed."""
    progress = Progress(quiet=words["quiet"])
    words = {**words, "source": reachable(words["source"], words["master"])}
    if not is_bootstrap(words["to"]):
        words["to"] = reachable(words["to"], words["master"])
    try:
        choice = choice_of(words)
        store = Store(words["source"])
        manifest = store.read_manifest()
        if not words["unchecked"]:
            progress.tell("comparing checksums ...")
            exporting.verify(store, manifest)
        codec, speed = _codec(words["codec"]), _speed(words["speed"])
        settings = KEPT | parse_pairs("--config", words["config"])
        targets.targets(store, manifest, choice)  # so that a wish that makes no sense is told before Spark starts
        progress.tell("starting Spark ...")
        spark = session(words["register"], words["master"])
        with tempfile.TemporaryDirectory(prefix="understudy-load-") as folder:
            if choice.changes_records:
                progress.tell("choosing records ...")
                store, manifest = exporting.chosen(spark, store, manifest, choice, folder)
            wanted = [
                replace(each, configs={**each.configs, **settings})
                for each in targets.targets(store, manifest, choice, codec=codec, speed=speed)
            ]
            progress.tell("loading ...")
            count = _loaded(spark, words, wanted)
    except (ChoiceError, FileNotFoundError) as error:
        refuse(PROGRAM, error)
    except (ManifestError, LoadError, WireError, DirectoryLockedError) as error:
        refuse(PROGRAM, error, 1)
    except PySparkException as error:
        refuse(PROGRAM, reason(error), 1)
    finally:
        progress.done()
    print(f"{count} records of {len({each.topic for each in wanted})} topics in {words['to']}")  # noqa: T201
    return 0


def _loaded(spark: Any, words: Mapping[str, Any], wanted: list[Target]) -> int:
    if is_bootstrap(words["to"]):
        with Cluster(words["to"]) as cluster:
            cluster.create(targets.counts(wanted))
        return loading.into_cluster(spark, words["to"], wanted)
    Path(words["to"]).mkdir(parents=True, exist_ok=True)
    try:
        with words["serve"](words["to"]) as bootstrap, Cluster(bootstrap) as cluster:
            cluster.create(targets.counts(wanted))
    except RuntimeError as error:
        raise LoadError(f"no broker can work in {words['to']}: {error}") from None
    now_ms = int(time.time() * 1000)  # noqa: TID251 - a command's time is the machine's
    return loading.into_directory(spark, words["to"], wanted, now_ms)


def _codec(name: str) -> int:
    if name.upper() not in Codec.__members__:
        raise ChoiceError(f"--codec {name}: there is none, gzip, snappy, lz4 and zstd")
    return int(Codec[name.upper()])


def _speed(text: str | None) -> float:
    try:
        speed = 0.0 if text is None else float(text)
    except ValueError:
        speed = -1.0
    if speed < 0:
        raise ChoiceError(f"--speed {text} is not a factor, such as 2 or 0.5")
    return speed


