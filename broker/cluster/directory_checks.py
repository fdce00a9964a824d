"""Checks of data directories before anything in them is changed: owner, cluster, record format, metadata."""

from collections.abc import Mapping
from pathlib import Path

from storage.checkpoints import META_PROPERTIES, decode_properties, node_id_of
from storage.files import Files
from storage.log.recovery import OldRecordsError, check_format
from storage.log.segment import LOG_SUFFIX
from storage.log_dir import WrongDirectoryError, partition_of
from storage.ownership import OWNER_PROPERTIES, is_log
from storage.quorum_files import METADATA_DIRECTORY


def check_owners(roots: Mapping[int, Path]) -> None:
    """Check that each directory belongs to its broker and all to one cluster; the first one must have the metadata.

    Raises:
        WrongDirectoryError: one belongs to another node or cluster, or the metadata are missing.
    """
    properties_of_broker = {
        broker_id: decode_properties((root / META_PROPERTIES).read_bytes())
        for broker_id, root in roots.items()
        if (root / META_PROPERTIES).is_file()
    }
    cluster_id = next(
        (properties["cluster.id"] for properties in properties_of_broker.values() if "cluster.id" in properties), ""
    )
    for broker_id, properties in properties_of_broker.items():
        owner = node_id_of(properties)
        if owner not in (None, str(broker_id)):
            raise WrongDirectoryError(f"the data directory belongs to node {owner}, not to node {broker_id}")
        if properties.get("cluster.id", cluster_id) != cluster_id:
            other = properties["cluster.id"]
            raise WrongDirectoryError(f"{roots[broker_id]} belongs to cluster {other}, not to {cluster_id}")
    controller = next(iter(roots))
    if properties_of_broker and controller not in properties_of_broker:
        raise WrongDirectoryError(
            f"{roots[controller]} is missing or empty, but other brokers' directories are not: without the metadata "
            "that it had, their partitions would become strays; restore it, or remove the others too"
        )


def check_formats(files: Files) -> None:
    """Check that no log begins with records that only Kafka can read. Understudy's own directories have none.

    Raises:
        WrongDirectoryError: a log does.
    """
    if files.exists(OWNER_PROPERTIES):
        return
    for name in files.list():
        if partition_of(name) is None or not is_log(files, name):
            continue
        first = next((file_name for file_name in files.list(name) if file_name.endswith(LOG_SUFFIX)), None)
        if first is None:
            continue
        file = files.open(f"{name}/{first}", create=False)
        try:
            check_format(file, name)
        except OldRecordsError as error:
            raise WrongDirectoryError(str(error)) from None
        finally:
            file.close()


def check_metadata(files: Files) -> None:
    """Check that a directory without the cluster's metadata has no partitions: they would all become strays.

    Raises:
        WrongDirectoryError: it has.
    """
    if files.is_directory(METADATA_DIRECTORY):
        return
    orphan = next((name for name in files.list() if partition_of(name) and is_log(files, name)), None)
    if orphan is not None:
        raise WrongDirectoryError(
            f"the data directory has partitions ({orphan}) but no {METADATA_DIRECTORY} with their topics; use the "
            f"directory of a node that was broker and controller, or copy {METADATA_DIRECTORY} into it"
        )
