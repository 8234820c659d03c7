"""The servers in examples/serve: vectors, batches, many clients, and bad requests."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import forked
import grpc
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401
from repository import ROOT
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

import labse_tf
from benchmarks.models import serving_load

SERVE = ROOT / "examples" / "serve"
PATH = "/v1/models/labse:predict"


@pytest.fixture(scope="module")
def onnx_file(every_format):
    return every_format / "onnx" / "model.onnx"


@pytest.fixture(scope="module")
def port(onnx_file):
    server, port = serving_load.start(onnx_file, texts_per_batch=64)
    yield port
    server.terminate()
    assert server.wait(20) is not None


def post(port, body):
    """Returns the status and the answer."""
    url = f"http://127.0.0.1:{port}{PATH}"
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_vectors_are_the_models(port, onnx_file, multilingual_sentences):
    texts = [*multilingual_sentences, "", "a" * 5000]
    status, answer = post(port, json.dumps({"instances": texts}))
    assert status == 200
    expected = labse_tf.load(onnx_file).encode(texts)
    np.testing.assert_allclose(answer["predictions"], expected, atol=1e-5)


BAD_REQUESTS = {
    '{"instances": []}': "instances: List should have at least 1 item",
    '{"instances": ["a", 7]}': "instances.1: Input should be a valid string",
    '{"instances": "text"}': "instances: Input should be a valid list",
    '{"texts": ["a"]}': "instances: Field required",
    '["a"]': "Input should be",
    '{"instances": ["\\ud800"]}': "instances.0",
    '{"instances": ["a': "JSON decode error",
    json.dumps({"instances": ["a"] * 257}): "instances: List should have at most 256",
    json.dumps({"instances": ["a" * 20_001]}): "instances.0: String should have at most",
}


def test_bad_requests(port):
    for body, problem in BAD_REQUESTS.items():
        status, answer = post(port, body)
        assert status == 400 and problem in answer["error"], body


def batches_of(port):
    url = f"http://127.0.0.1:{port}/v1/models/labse"
    with urllib.request.urlopen(url, timeout=30) as answer:
        found = json.load(answer)
    assert found["model_version_status"] == [{"version": "1", "state": "AVAILABLE"}]
    return found["batches"]


def test_many_clients_share_batches_and_none_is_dropped(port, multilingual_sentences):
    before = batches_of(port)
    found = asyncio.run(serving_load.load(port, list(multilingual_sentences), 100, 5))
    good = [right for bad, right, _ in found if not bad]
    assert len(found) == 500 and all(right for _, right, _ in found)
    assert 0 < batches_of(port) - before < len(good) / 2
    # The client of TensorFlow Serving works with it.
    client, url = ROOT / "examples" / "serving_client.py", f"http://127.0.0.1:{port}{PATH}"
    done = forked.run(client, url, "猫と家。", "猫と家。")
    assert done.stdout.splitlines() == ["1.000  猫と家。"] * 2


def assert_shown(done, vectors):
    """A client shows the similarities to the first text."""
    assert done.returncode == 0, done.stderr
    found = [float(line.split()[0]) for line in done.stdout.splitlines()]
    np.testing.assert_allclose(found, vectors @ vectors[0], atol=6e-4)


@pytest.mark.slow
def test_a_client_of_triton(onnx_file, multilingual_sentences):
    """Its HTTP interface, over the graph that it would serve."""
    session = onnxruntime.InferenceSession(str(onnx_file), providers=["CPUExecutionProvider"])

    class Served(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v2/models/labse/infer"
            assert [one["datatype"] for one in body["inputs"]] == ["INT64"] * 3
            feed = {
                one["name"]: np.array(one["data"], np.int64).reshape(one["shape"])
                for one in body["inputs"]
            }
            [vectors] = session.run([one["name"] for one in body["outputs"]], feed)
            output = {"name": "default", "shape": vectors.shape, "data": vectors.ravel().tolist()}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"outputs": [output]}).encode())

        def log_message(self, *arguments):
            pass

    texts = list(multilingual_sentences[:3])
    expected = labse_tf.load(onnx_file).encode(texts)
    with HTTPServer(("127.0.0.1", 0), Served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        tokenizer = onnx_file.parent / "tokenizer.json"
        done = forked.run(SERVE / "triton_client.py", url, tokenizer, *texts)
        server.shutdown()
        thread.join()
    assert_shown(done, expected)


@pytest.mark.slow
def test_a_client_of_tensorflow_serving_by_grpc(model_dir, multilingual_sentences):
    """Its service, over the signature that it would serve."""
    signature = tf.saved_model.load(str(model_dir / "text_encoder")).signatures["serving_default"]

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            assert request.model_spec.name == "labse"
            assert request.model_spec.signature_name == "serving_default"
            inputs = {name: tf.make_ndarray(one) for name, one in request.inputs.items()}
            outputs = signature(**{name: tf.constant(one) for name, one in inputs.items()})
            answer = predict_pb2.PredictResponse()
            for name, tensor in outputs.items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
            return answer

    texts = list(multilingual_sentences[:4])
    expected = labse_tf.load(model_dir).encode(texts)
    server = grpc.server(ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    done = forked.run(SERVE / "grpc_client.py", f"127.0.0.1:{port}", *texts)
    server.stop(None)
    assert_shown(done, expected)


class Encoder:
    def encode(self, texts):
        if "bad" in texts:
            raise RuntimeError("out of memory")
        return np.ones((len(texts), 2), np.float32)


def test_when_too_many_wait_others_come_back_and_a_failing_encoder_is_not_the_end(monkeypatch):
    monkeypatch.syspath_prepend(str(SERVE))
    monkeypatch.setenv("LABSE_MODEL", "unused")
    app = importlib.import_module("app")
    sys.modules.pop("app")

    async def overload():
        batcher = app.Batcher(Encoder())
        waiting = [asyncio.create_task(batcher.embed(["a"] * 256)) for _ in range(39)]
        await asyncio.sleep(0)
        with pytest.raises(app.HTTPException) as refused:
            await batcher.embed(["a"] * 256)
        assert refused.value.status_code == 503
        assert refused.value.headers == {"Retry-After": "1"}
        work = asyncio.create_task(batcher.run())
        assert [len(row) for row in await asyncio.gather(*waiting)] == [256] * 39
        with pytest.raises(RuntimeError, match="out of memory"):
            await batcher.embed(["bad"])
        found = await batcher.embed(["good"])
        work.cancel()
        return found

    assert asyncio.run(overload()).tolist() == [[1.0, 1.0]]
