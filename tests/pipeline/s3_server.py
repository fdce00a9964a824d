"""An object store of this machine: the part of S3's protocol that Arrow's client speaks, on a folder.

Keys are flat, as in S3: `a/` is an object beside `a/b`, which a client may write and remove at any time. Servers that
make folders of keys (`rclone serve s3`) refuse it, or take it for the folder; it is kept in memory here. The folder's
own folders are buckets, and files may be put into it and read from it beside the server.
"""

import hashlib
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_PAGE = 1000
_NOT_FOUND = "<Error><Code>NoSuchKey</Code><Message>There is no such key.</Message></Error>"


class Store:
    """The objects of all buckets: files, but for those whose keys end in a slash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.markers: set[str] = set()
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = count(1)

    def keys(self, bucket: str) -> list[str]:
        """All keys of a bucket, in their order."""
        root = self.folder / bucket
        stored = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        return sorted([*stored, *(name.partition("/")[2] for name in self.markers if name.startswith(f"{bucket}/"))])

    def get(self, name: str) -> bytes | None:
        """An object's bytes, by bucket and key."""
        if name.endswith("/"):
            return b"" if name in self.markers else None
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    def put(self, name: str, content: bytes) -> None:
        """Make or replace an object. Others see all of it, or what was there before."""
        if name.endswith("/"):
            self.markers.add(name)
            return
        path, aside = self.folder / name, self.folder / f".writing-{next(self.numbers)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        shutil.move(aside, path)

    def remove(self, name: str) -> None:
        """Remove an object, if there is one."""
        self.markers.discard(name)
        if not name.endswith("/"):
            (self.folder / name).unlink(missing_ok=True)


class Handler(BaseHTTPRequestHandler):
    """One connection. Signatures are not checked, only that there is one."""

    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def handle_one_request(self) -> None:
        """Serve a request; a client may hang up at any time."""
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def parse_request(self) -> bool:
        """Take the request's name and options apart, and read its body."""
        if not super().parse_request():
            return False
        url = urlsplit(self.path)
        self.name = unquote(url.path).removeprefix("/")
        self.query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        if "Content-Length" in self.headers:
            self.body = self.rfile.read(int(self.headers["Content-Length"]))
        else:
            self.body = _joined(self.rfile) if "Transfer-Encoding" in self.headers else b""
        if "STREAMING" in self.headers.get("x-amz-content-sha256", ""):
            self.body = _joined(BytesIO(self.body))
        if "AWS4-HMAC-SHA256 Credential=key/" not in self.headers.get("Authorization", ""):
            self.reply(HTTPStatus.FORBIDDEN)
            return False
        return True

    def reply(self, status: HTTPStatus, body: bytes | str = b"", **headers: str) -> None:
        """Answer; a HEAD gets the headers only."""
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_GET(self) -> None:
        """GetObject, HeadObject, ListObjectsV2."""
        bucket, _, key = self.name.partition("/")
        if not key:
            self.reply(HTTPStatus.OK, self.listed(bucket), Content_Type="application/xml")
            return
        content = self.store.get(self.name)
        if content is None:
            self.reply(HTTPStatus.NOT_FOUND, _NOT_FOUND)
            return
        more = {"ETag": _etag(content), "Last_Modified": formatdate(usegmt=True)}
        pattern_match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if pattern_match is None:
            self.reply(HTTPStatus.OK, content, **more)
            return
        first, last = int(pattern_match[1]), min(int(pattern_match[2] or len(content)), len(content) - 1)
        where = f"bytes {first}-{last}/{len(content)}"
        self.reply(HTTPStatus.PARTIAL_CONTENT, content[first : last + 1], Content_Range=where, **more)

    def do_HEAD(self) -> None:
        """Answer like a GET, without the body."""
        self.do_GET()

    def listed(self, bucket: str) -> str:
        """A page of keys, and of their beginnings up to the delimiter."""
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after, most = self.query.get("continuation-token", ""), int(self.query.get("max-keys", _PAGE))
        entries: dict[str, bool] = {}
        for key in self.store.keys(bucket):
            if key.startswith(prefix):
                head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                entries[prefix + head + cut if cut else key] = bool(cut)
        names = sorted(name for name in entries if name > after)
        page, more = names[:most], len(names) > most
        lines = [f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"]
        lines += [f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"] if more else []
        for name in page:
            if entries[name]:
                lines.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
            elif (content := self.store.get(f"{bucket}/{name}")) is not None:
                lines.append(
                    f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size><ETag>{_etag(content)}</ETag>"
                    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                )
        return _xml("ListBucketResult", "".join(lines))

    def do_PUT(self) -> None:
        """PutObject, CopyObject, UploadPart."""
        if (upload := self.query.get("uploadId")) is not None:
            self.store.uploads[upload][int(self.query["partNumber"])] = self.body
        elif (source := self.headers.get("x-amz-copy-source")) is not None:
            content = self.store.get(unquote(source).removeprefix("/"))
            if content is None:
                self.reply(HTTPStatus.NOT_FOUND, _NOT_FOUND)
                return
            self.store.put(self.name, content)
            self.reply(HTTPStatus.OK, _xml("CopyObjectResult", f"<ETag>{_etag(content)}</ETag>"))
            return
        else:
            self.store.put(self.name, self.body)
        self.reply(HTTPStatus.OK, ETag=_etag(self.body))

    def do_POST(self) -> None:
        """CreateMultipartUpload, CompleteMultipartUpload, DeleteObjects."""
        bucket, _, key = self.name.partition("/")
        about = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if "uploads" in self.query:
            upload = str(next(self.store.numbers))
            self.store.uploads[upload] = {}
            result = f"{about}<UploadId>{upload}</UploadId>"
            self.reply(HTTPStatus.OK, _xml("InitiateMultipartUploadResult", result))
        elif (done := self.query.get("uploadId")) is not None:
            content = b"".join(part for _, part in sorted(self.store.uploads.pop(done).items()))
            self.store.put(self.name, content)
            result = f"{about}<ETag>{_etag(content)}</ETag>"
            self.reply(HTTPStatus.OK, _xml("CompleteMultipartUploadResult", result))
        else:
            for name in re.findall(r"<Key>([^<]*)</Key>", self.body.decode()):
                self.store.remove(f"{bucket}/{unescape(name)}")
            self.reply(HTTPStatus.OK, _xml("DeleteResult", ""))

    def do_DELETE(self) -> None:
        """DeleteObject, AbortMultipartUpload."""
        if (upload := self.query.get("uploadId")) is not None:
            self.store.uploads.pop(upload, None)
        else:
            self.store.remove(self.name)
        self.reply(HTTPStatus.NO_CONTENT)


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Serve the folder; the address, as `AWS_ENDPOINT_URL` takes it. Its one key is `key`."""
    handler = type("Bound", (Handler,), {"store": Store(folder)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _xml(name: str, inside: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{NAMESPACE}">{inside}</{name}>'


def _joined(stream: BufferedIOBase) -> bytes:
    """A body in chunked encoding, HTTP's or AWS's: sizes in hex, perhaps with signatures; checksums may follow it."""
    pieces = []
    while size := int(stream.readline().partition(b";")[0], 16):
        pieces.append(stream.read(size))
        stream.readline()
    while stream.readline().strip():
        pass
    return b"".join(pieces)
