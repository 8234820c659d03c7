"""Asks TensorFlow Serving for sentence vectors, by gRPC.

    pip install tensorflow-serving-api
    python grpc_client.py localhost:8500 "Hello" "Hallo"

The server is that of tf-serving.Dockerfile. Vectors travel as numbers, not as text: a third of the
bytes of the REST interface. Prints the similarity of the first text to each.
"""

import sys

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

_SECONDS = 30


def embed(address: str, texts: list[str]) -> np.ndarray:
    """Returns float32 `[texts, dim]`, unit rows."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "labse"
    request.model_spec.signature_name = "serving_default"
    request.inputs["sentences"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        answer = stub.Predict(request, timeout=_SECONDS)
    return tf.make_ndarray(answer.outputs["default"])


def main(address: str, *texts: str) -> None:
    vectors = embed(address, list(texts))
    for text, similarity in zip(texts, vectors @ vectors[0], strict=True):
        print(f"{similarity:.3f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
