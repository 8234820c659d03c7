# NVIDIA Triton with the ONNX file: token ids in, vectors out. NVIDIA publishes the image as
# `tritonserver`; give its full name. From a folder with a model dir `model` and this folder's
# `triton/`:
#
#   docker build -f triton.Dockerfile --build-arg IMAGE=.../tritonserver:25.06-py3 -t labse-triton .
#   docker run --gpus all -p 8000:8000 labse-triton
#   python examples/serve/triton_client.py http://localhost:8000 model/onnx/tokenizer.json Hello Hallo
ARG IMAGE
FROM ${IMAGE}
COPY triton/ /models/
COPY model/onnx/model.onnx /models/labse/1/model.onnx
CMD ["tritonserver", "--model-repository=/models"]
