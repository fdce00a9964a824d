"""`understudy load`: in this process if the export is small, else on Spark."""

import math
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pipeline.amounts import Amount
from pipeline.audits.engine import EngineError
from pipeline.commands.engines import LOADED, engine_errors, session_for
from pipeline.commands.export import choice_of
from pipeline.commands.progress import Progress, code_of, refuse
from pipeline.locations import reachable
from pipeline.rendering.text import counted
from pipeline.transfer import cluster_target, export, load, load_notes, targets
from pipeline.transfer.manifest import ManifestError, Store
from pipeline.transfer.security import Security, SecurityError, read_security
from pipeline.transfer.selection import ChoiceError, parse_pairs
from pipeline.transfer.targets import LoadError, Target
from pipeline.transfer.wire import Cluster, WireError, is_bootstrap
from protocol.records.compression import Codec
from storage.files import DirectoryLockedError

PROGRAM: Final = "understudy load"
KEPT: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
"""Default settings of loaded topics: retention would delete old records before they can be read."""


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: done. Exits with 2 for invalid arguments, with 1 for a failure."""
    progress = Progress(quiet=arguments["quiet"])
    arguments = {**arguments, "source": reachable(arguments["source"], arguments["master"])}
    if not is_bootstrap(arguments["to"]):
        arguments["to"] = reachable(arguments["to"], arguments["master"])
    try:
        if "://" in arguments["to"]:
            raise ChoiceError(f"--to {arguments['to']}: name a data directory of this machine, or HOST:PORT")
        choice = choice_of(arguments)
        store = Store(arguments["source"])
        manifest = store.read_manifest()
        known = manifest.encode()
        if not arguments["unchecked"]:
            progress.show("comparing checksums ...")
            export.verify(store, manifest)
        codec, speed = _codec(arguments["codec"]), _speed(arguments["speed"])
        settings = KEPT | parse_pairs("--config", arguments["config"])
        targets.targets(store, manifest, choice)  # report an invalid selection before Spark starts
        security = read_security(arguments["client_config"])
        if is_bootstrap(arguments["to"]):  # report an unreachable address before Spark starts
            Cluster(arguments["to"], security=security).close()
        with engine_errors(), tempfile.TemporaryDirectory(prefix="understudy-load-") as folder:
            amount = Amount(sum(each.bytes for each in manifest.files), records=manifest.records)
            spark = session_for(arguments, arguments["source"], progress, LOADED, amount, needs_sql=choice.needs_sql)
            if choice.changes_records:
                progress.show("choosing records ...")
                store, manifest = export.chosen(spark, store, manifest, choice, folder)
            wanted = [
                replace(each, configs={**each.configs, **settings})
                for each in targets.targets(store, manifest, choice, codec=codec, speed=speed)
            ]
            progress.show("loading ...")
            count = _loaded(spark, {**arguments, "records": f"{known} {choice}"}, wanted, security)
    except (ChoiceError, SecurityError) as error:
        refuse(PROGRAM, error)
    except (ManifestError, LoadError, WireError, DirectoryLockedError, EngineError) as error:
        refuse(PROGRAM, error, 1)
    except OSError as error:
        refuse(PROGRAM, error, code_of(error))
    finally:
        progress.done()
    topics = len({each.topic for each in wanted})
    print(f"{counted(count, 'record')} of {counted(topics, 'topic')} in {arguments['to']}")  # noqa: T201
    return 0


def _loaded(spark: Any, arguments: Mapping[str, Any], wanted: list[Target], security: Security) -> int:
    if is_bootstrap(arguments["to"]):
        with Cluster(arguments["to"], security=security) as cluster:
            wanted = cluster_target.prepare(
                cluster, wanted, resume=arguments["resume"], overwrite=arguments["overwrite"]
            )
            for topic in cluster_target.replaced_times(cluster, wanted):
                text = (
                    f"{topic} has message.timestamp.type=LogAppendTime: the cluster replaces the times of its records"
                )
                print(f"{PROGRAM}: {text}", file=sys.stderr)  # noqa: T201
        return load.into_cluster(spark, arguments["to"], wanted, security)
    try:
        Path(arguments["to"]).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadError(f"--to {arguments['to']} cannot be created: {error.strerror}; name another folder") from None
    if not load_notes.is_unfinished(arguments["to"]):
        try:
            with arguments["serve"](arguments["to"]) as bootstrap, Cluster(bootstrap) as cluster:
                cluster.create(targets.counts(wanted))
        except RuntimeError as error:
            raise LoadError(f"no broker can work in {arguments['to']}: {error}") from None
    now_ms = int(time.time() * 1000)  # noqa: TID251 - a command's time is the machine's
    return load.into_directory(
        spark, arguments["to"], wanted, now_ms, overwrite=arguments["overwrite"], records=arguments["records"]
    )


def _codec(name: str) -> int:
    if name.upper() not in Codec.__members__:
        raise ChoiceError(f"--codec {name} is not one of none, gzip, snappy, lz4 and zstd")
    return int(Codec[name.upper()])


def _speed(text: str | None) -> float:
    try:
        speed = 0.0 if text is None else float(text)
    except ValueError:
        speed = -1.0
    if not 0 <= speed < math.inf:
        raise ChoiceError(f"--speed {text} is not a factor, such as 2 or 0.5")
    return speed
