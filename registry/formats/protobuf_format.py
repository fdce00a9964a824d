"""Protobuf: compiled by protoc (of `grpcio-tools`) in its own process; stored as written by `protobuf_text`.

A schema is sent as the text of a file, or as a serialized FileDescriptorProto in base64, as Python's serializer does.
Its references are the imported files, by their names; google/protobuf/*.proto come with protoc.
"""

import base64
import binascii
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import anyio
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from registry.errors import InvalidSchema
from registry.formats import ParsedSchema, Resolved
from registry.formats.protobuf_differences import differences
from registry.formats.protobuf_text import has_custom_options, written

_FILE = "understudy_schema.proto"
_PATIENCE_S = 30  # for protoc, which needs some hundredths of a second; ours, for a busy machine
_AT_ONCE = 2
_MOST_LINES = 3  # of its errors, which repeat each other
_limiter: list[anyio.CapacityLimiter] = []


class Protobuf(ParsedSchema):
    """A Protobuf file."""

    def __init__(self, file: FileDescriptorProto, text: str) -> None:
        self.file, self.text = file, text

    def incompatibilities(self, earlier: ParsedSchema) -> list[str]:
        """List the changes that break readers of the earlier file's messages."""
        assert isinstance(earlier, Protobuf)
        changes = differences(earlier.file, self.file)
        return [f"{{errorType:'{kind}', description:'at {path}', additionalInfo:''}}" for kind, path in changes]

    def formatted(self, name: str) -> str:
        """Return the FileDescriptorProto in base64 for `serialized`, else the text."""
        return base64.b64encode(self.file.SerializeToString()).decode() if name == "serialized" else self.text


async def parse(text: str, references: Sequence[Resolved], *, normalize: bool) -> Protobuf:
    """Parse a file. Raises InvalidSchema."""
    sent = decoded(text)
    try:
        source = text if sent is None else written(sent, normalize=normalize)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InvalidSchema(f"its descriptor is incomplete: {error!r}") from error
    file = await compiled(source, references)
    if has_custom_options(file):  # written without them, it would differ from the file that was sent
        return Protobuf(file, source)
    return Protobuf(file, written(file, normalize=normalize))


def decoded(text: str) -> FileDescriptorProto | None:
    """Decode a file that was sent as base64; None if it was sent as text."""
    try:
        data = base64.b64decode(text.strip(), validate=True)
        return FileDescriptorProto.FromString(data)
    except (binascii.Error, ValueError, DecodeError):
        return None


async def compiled(source: str, references: Sequence[Resolved]) -> FileDescriptorProto:
    """Compile a file with protoc. Raises InvalidSchema."""
    if not _limiter:
        _limiter.append(anyio.CapacityLimiter(_AT_ONCE))
    async with _limiter[0]:
        with tempfile.TemporaryDirectory(prefix="understudy-protoc-") as folder:
            place = Path(folder)
            for reference in references:
                _place(reference, place / safe(reference.name))
            (place / _FILE).write_text(source, encoding="utf-8", errors="replace")
            result = place / "understudy_result"
            command = [
                sys.executable,
                "-P",  # the folder's files are the request's, not modules
                "-m",
                "grpc_tools.protoc",
                f"-I{folder}",
                f"--descriptor_set_out={result}",
                _FILE,
            ]
            try:
                with anyio.fail_after(_PATIENCE_S):
                    done = await anyio.run_process(command, check=False, cwd=folder)
            except TimeoutError as error:
                raise InvalidSchema(f"protoc takes longer than {_PATIENCE_S} s") from error
            if done.returncode or not result.exists():
                raise InvalidSchema(_complaint(done.stderr.decode(errors="replace"), folder))
            (file,) = FileDescriptorSet.FromString(result.read_bytes()).file
    file.name = ""
    return file


def _place(reference: Resolved, path: Path) -> None:
    """Write an imported file. Raises InvalidSchema if its name is not possible beside the others."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reference.text, encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise InvalidSchema(f"no file can be called {reference.name!r} here") from error


def safe(name: str) -> PurePosixPath:
    """Return the path of a reference within a folder. Raises InvalidSchema for a path outside of it."""
    path = PurePosixPath(name)
    if (
        not path.parts
        or path.is_absolute()
        or ".." in path.parts
        or "\0" in name
        or name in {_FILE, "understudy_result"}
    ):
        raise InvalidSchema(f"{name!r} is not the name of a file that can be imported")
    return path


def _complaint(output: str, folder: str) -> str:
    """Return the first lines of protoc's output, without names of temporary files."""
    lines = [line for line in output.replace(f"{folder}/", "").splitlines() if ".proto:" in line]
    return "; ".join(lines[:_MOST_LINES]).replace(_FILE, "line") or "protoc rejects it"
