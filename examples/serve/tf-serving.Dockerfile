# TensorFlow Serving, from strings to vectors: text_encoder/ has TF Text's ops, which the published
# images have since 2.4. From a folder with a model dir `model`:
#
#   docker build -f tf-serving.Dockerfile -t labse-serving .
#   docker run -p 8500:8500 -p 8501:8501 labse-serving
#   python examples/serving_client.py http://localhost:8501/v1/models/labse:predict Hello Hallo
#
# For a server without these ops, copy model/encoder instead and send token ids: tokenizer.json of
# `labse export --format onnx` makes them.
FROM tensorflow/serving:2.19.1
COPY model/text_encoder /models/labse/1
ENV MODEL_NAME=labse
