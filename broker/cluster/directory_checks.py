"""Checks of data directories before anything in them is changed: owner, cluster, record format, metadata."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from storage.checkpoints import META_PROPERTIES, decode_properties, node_id_of
from storage.files import Files
from storage.log.recovery import OldRecordsError, check_format
from storage.log.segment import LOG_SUFFIX
from storage.log_dir import WrongDirectoryError, partition_of
from storage.ownership import OWNER_PROPERTIES, is_log
from storage.quorum_files import METADATA_DIRECTORY


def check_owners(roots: Mapping[int, Sequence[Path]], controllers: Sequence[int]) -> None:
    """Check that each directory belongs to its node and all to one cluster, under ids of their own.

    The first directory of one of the controllers must have the metadata.

    Raises:
        WrongDirectoryError: one belongs to another node or cluster, or the metadata are missing.
    """
    formatted = {
        root: (node_id, decode_properties((root / META_PROPERTIES).read_bytes()))
        for node_id, own in roots.items()
        for root in own
        if (root / META_PROPERTIES).is_file()
    }
    cluster_id = next((each["cluster.id"] for _, each in formatted.values() if "cluster.id" in each), "")
    root_of_id: dict[str, Path] = {}
    for root, (node_id, properties) in formatted.items():
        owner = node_id_of(properties)
        if owner not in (None, str(node_id)):
            raise WrongDirectoryError(f"the data directory belongs to node {owner}, not to node {node_id}")
        if properties.get("cluster.id", cluster_id) != cluster_id:
            other = properties["cluster.id"]
            raise WrongDirectoryError(f"{root} belongs to cluster {other}, not to {cluster_id}")
        directory_id = properties.get("directory.id", "")
        if directory_id and root_of_id.setdefault(directory_id, root) is not root:
            raise WrongDirectoryError(
                f"{root} is a copy of {root_of_id[directory_id]}: both have the same directory.id"
            )
    first = roots[controllers[0]][0]
    if formatted and all(roots[each][0] not in formatted for each in controllers):
        raise WrongDirectoryError(
            f"{first} is missing or empty, but other directories are not: without the metadata that it had, their "
            "partitions would become strays; restore it, or remove the others too"
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


def check_metadata(trees: Sequence[Files]) -> None:
    """Check that the controller's directories without the cluster's metadata have no partitions, or only the first has.

    Without metadata all partitions would become strays.

    Raises:
        WrongDirectoryError: they have partitions; or another than the first directory has the metadata.
    """
    if any(files.is_directory(METADATA_DIRECTORY) for files in trees[1:]):
        raise WrongDirectoryError(
            f"{METADATA_DIRECTORY} is not in the first directory: name the one that has it first in --data-dir"
        )
    if trees and trees[0].is_directory(METADATA_DIRECTORY):
        return
    names = (name for files in trees for name in files.list() if partition_of(name) and is_log(files, name))
    orphan = next(names, None)
    if orphan is not None:
        raise WrongDirectoryError(
            f"the data directory has partitions ({orphan}) but no {METADATA_DIRECTORY} with their topics; use the "
            f"directory of a node that was broker and controller, or copy {METADATA_DIRECTORY} into it"
        )
