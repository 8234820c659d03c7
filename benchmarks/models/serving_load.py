"""Many clients at once on examples/serve/app.py: times of answers, dropped ones, bad requests.

    python -m benchmarks.models.serving_load ONNX_FILE TEXTS [--clients 200] [--requests 20]

Starts the server, on one process, with and without batches of several requests. Each client sends
its requests one after another, a sentence each, over a connection of its own; every 20th request
is bad, and must be answered by 400. The clients run on the same machine.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import machine, make_parser
from labse_tf.files.textio import read_lines

APP_DIR = Path(__file__).parents[2] / "examples" / "serve"
_PATH = "/v1/models/labse:predict"
_BAD = ('{"instances": []}', '{"instances": [7]}', "no JSON", '{"texts": ["a"]}', '["a"]')
_BAD_EVERY = 20


def start(model: Path, *, texts_per_batch: int) -> tuple[subprocess.Popen, int]:
    """Returns a server that answers, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "LABSE_MODEL": str(model), "LABSE_BATCH": str(texts_per_batch)}
    options = ("--app-dir", APP_DIR, "app:app", "--port", port, "--log-level", "warning")
    command = [sys.executable, "-m", "uvicorn", *map(str, options)]
    server = subprocess.Popen(command, env=environment)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if server.poll() is not None:
                raise SystemExit("the server has ended") from None
            time.sleep(0.1)
        else:
            return server, port


async def ask(reader, writer, body: str) -> tuple[int, dict]:
    """Sends a request over an open connection; returns the status and what is answered."""
    data = body.encode("utf-8")
    head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    await writer.drain()
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    answer = await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split()[1]), json.loads(answer)


async def client(number: int, port: int, texts: list[str], requests: int, found: list) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    draw = random.Random(number)
    for place in range(requests):
        bad = (number + place) % _BAD_EVERY == 0
        body = draw.choice(_BAD) if bad else json.dumps({"instances": [draw.choice(texts)]})
        begin = time.perf_counter()
        status, answer = await ask(reader, writer, body)
        right = status == 400 and "error" in answer if bad else len(answer["predictions"]) == 1
        found.append((bad, right, time.perf_counter() - begin))
    writer.close()


async def load(port: int, texts: list[str], clients: int, requests: int) -> list:
    found: list = []
    await asyncio.gather(*(client(one, port, texts, requests, found) for one in range(clients)))
    return found


def main() -> None:
    args = make_parser(__doc__, "onnx_file", "texts", clients=200, requests=20).parse_args()
    texts = [line for _, line in itertools.islice(read_lines(args.texts), 10_000)]
    print(json.dumps(machine.describe()))
    print("| texts a batch, at most | requests | right | a second | p50, ms | p95, ms |")
    print("|---|---|---|---|---|---|")
    for batch in (256, 1):
        server, port = start(args.onnx_file.resolve(), texts_per_batch=batch)
        try:
            asyncio.run(load(port, texts, 8, 10))
            begin = time.perf_counter()
            found = asyncio.run(load(port, texts, args.clients, args.requests))
            seconds = time.perf_counter() - begin
        finally:
            server.terminate()
            server.wait()
        times = [1000 * took for bad, _, took in found if not bad]
        middle, high = np.percentile(times, [50, 95])
        right = sum(one for _, one, _ in found)
        rate = len(found) / seconds
        print(f"| {batch} | {len(found)} | {right} | {rate:.0f} | {middle:.0f} | {high:.0f} |")


if __name__ == "__main__":
    main()
