"""Object stores for tests: servers on this machine that speak S3's and GCS's protocols."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
        return {
            name.removeprefix(start): self.get(name)
            for name in self.names()
            if name.startswith(start)
        }


class Unreliable:
    """A WSGI application that fails every tenth request, and once answers nothing for a while."""

    def __init__(self, application, *, stops_at: int, seconds: float) -> None:
        self._application = application
        self._stops_at = stops_at
        self._seconds = seconds
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
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket=BUCKET)

    def names() -> list[str]:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    try:
        yield Store(
            f"s3://{BUCKET}",
            [
                f"--s3_endpoint_url={endpoint}",
                "--s3_access_key_id=key",
                "--s3_secret_access_key=secret",
                "--s3_region_name=us-east-1",
            ],
            lambda name, data: client.put_object(Bucket=BUCKET, Key=name, Body=data),
            names,
            lambda name: client.get_object(Bucket=BUCKET, Key=name)["Body"].read(),
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
    before = os.environ.get("STORAGE_EMULATOR_HOST")
    os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{port}"
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
        if before is None:
            del os.environ["STORAGE_EMULATOR_HOST"]
        else:
            os.environ["STORAGE_EMULATOR_HOST"] = before


STORES = {"s3": s3, "gs": gcs}
