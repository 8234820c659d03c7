"""Object stores for tests: servers on this machine that speak S3's and GCS's protocols."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

BUCKET = "labse"


class Store(NamedTuple):
    """A bucket, and what Beam needs to be told to reach it."""

    url: str
    options: list[str]
    put: object  # (name, bytes) -> None
    names: object  # () -> names of all objects
    get: object  # name -> bytes

    def upload(self, folder: Path, prefix: str) -> str:
        """Copies a folder; returns its URL."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())
        return f"{self.url}/{prefix}"

    def content(self, prefix: str) -> dict[str, bytes]:
        """Returns the name below `prefix` -> content of all its objects."""
        start = f"{prefix}/"
        found = (name for name in self.names() if name.startswith(start))
        return {name.removeprefix(start): self.get(name) for name in found}


class Unreliable:
    """A WSGI application that fails every tenth request, and once answers nothing for a while."""

    def __init__(self, application, *, stops_at: int, seconds: float) -> None:
        self._application, self._stops_at, self._seconds = application, stops_at, seconds
        self._back_at = None
        self._lock = threading.Lock()
        self.requests = self.failed = 0

    def __call__(self, environ, start_response):
        with self._lock:
            self.requests += 1
            number = self.requests
            if number == self._stops_at:
                self._back_at = time.monotonic() + self._seconds
        if self._back_at is not None:
            time.sleep(max(0.0, self._back_at - time.monotonic()))
        if number % 10 == 0:
            self.failed += 1
            start_response("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        return self._application(environ, start_response)


@contextlib.contextmanager
def s3(wrap=lambda application: application) -> Iterator[Store]:
    """An S3, by moto; `wrap` is put around its WSGI application."""
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.port}"
    place = {"region_name": "us-east-1", "endpoint_url": endpoint}
    secrets = {"access_key_id": "key", "secret_access_key": "secret"}
    of_amazon = {f"aws_{name}": value for name, value in secrets.items()}
    bucket = boto3.resource("s3", **place, **of_amazon).create_bucket(Bucket=BUCKET)
    try:
        yield Store(
            f"s3://{BUCKET}",
            [f"--s3_{name}={value}" for name, value in (place | secrets).items()],
            lambda name, data: bucket.put_object(Key=name, Body=data),
            lambda: [item.key for item in bucket.objects.all()],
            lambda name: bucket.Object(name).get()["Body"].read(),
        )
    finally:
        server.shutdown()


@contextlib.contextmanager
def gcs() -> Iterator[Store]:
    """A GCS, by gcp-storage-emulator."""
    from gcp_storage_emulator.server import create_server
    from google.cloud import storage

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    logging.getLogger("gcp_storage_emulator").setLevel(logging.ERROR)
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    with mock.patch.dict(os.environ, STORAGE_EMULATOR_HOST=f"http://127.0.0.1:{port}"):
        bucket = storage.Client.create_anonymous_client().bucket(BUCKET)
        try:
            yield Store(
                f"gs://{BUCKET}",
                ["--no_auth", "--project=labse"],
                lambda name, data: bucket.blob(name).upload_from_string(data),
                lambda: [blob.name for blob in bucket.list_blobs()],
                lambda name: bucket.blob(name).download_as_bytes(),
            )
        finally:
            server.stop()


STORES = {"s3": s3, "gs": gcs}


@contextlib.contextmanager
def proxy_to(port: int, folder: Path) -> Iterator[dict[str, str]]:
    """Yields the environment in which TensorFlow finds the emulator at `port` as gs://.

    TensorFlow's addresses of GCS are constants, but its HTTP client heeds `https_proxy` and
    `CURL_CA_BUNDLE`: so a proxy here, whose certificate says that it is Google, hands its requests
    to the emulator.
    """
    from werkzeug.serving import make_ssl_devcert

    # The certificate is for this domain and all below it.
    certificate, key = make_ssl_devcert(str(folder / "google"), cn="googleapis.com")
    _Proxy.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _Proxy.context.load_cert_chain(certificate, key)
    _Proxy.port = port
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "https_proxy": f"http://127.0.0.1:{server.server_port}",
            "CURL_CA_BUNDLE": certificate,
            "NO_GCE_CHECK": "true",
            "no_proxy": "127.0.0.1",  # gRPC between workers heeds the proxy too.
        }
    finally:
        server.shutdown()
        server.server_close()


class _Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    context: ssl.SSLContext
    port: int

    def do_CONNECT(self) -> None:
        """Goes on with the requests inside TLS."""
        self.send_response(200)
        self.end_headers()
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def _forward(self) -> None:
        names = {"host": f"127.0.0.1:{self.port}"}
        kept = ("content-type", "content-range", "range", "authorization")
        names |= {name: self.headers[name] for name in kept if name in self.headers}
        there = http.client.HTTPConnection("127.0.0.1", self.port)
        there.request(self.command, self.path, self._body(), names)
        answer = there.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                # Where to upload to: the emulator does not know by which name it is known.
                here = f"http://127.0.0.1:{self.port}"
                self.send_header(name, value.replace(here, "https://www.googleapis.com"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        there.close()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _forward

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_) -> None:
        pass
