"""A GCS on this machine for TensorFlow, whose addresses of the real one are constants.

TensorFlow's HTTP client heeds `https_proxy` and `CURL_CA_BUNDLE`: so a proxy here, whose
certificate says that it is Google, hands its requests to gcp-storage-emulator.
"""

from __future__ import annotations

import contextlib
import datetime
import http.client
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

HOSTS = ("www.googleapis.com", "storage.googleapis.com")


@contextlib.contextmanager
def proxy_to(port: int, folder: Path) -> Iterator[dict[str, str]]:
    """Yields the environment in which TensorFlow finds the emulator at `port` as gs://."""
    certificate, key = _certificate(folder)
    _Proxy.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _Proxy.context.load_cert_chain(certificate, key)
    _Proxy.port = port
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "https_proxy": f"http://127.0.0.1:{server.server_port}",
            "CURL_CA_BUNDLE": str(certificate),
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
                self.send_header(name, value.replace(here, f"https://{HOSTS[0]}"))
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


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Writes a certificate of Google's hosts, signed by itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(map(x509.DNSName, HOSTS)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "google.pem", folder / "google.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    )
    return paths
