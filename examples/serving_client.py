"""Asks TensorFlow Serving for sentence vectors, by its REST interface and the standard library.

    mkdir -p served/labse && cp -r MODEL_DIR/text_encoder served/labse/1
    tensorflow_model_server --rest_api_port=8501 --model_name=labse \\
        --model_base_path=$PWD/served/labse
    python examples/serving_client.py http://localhost:8501/v1/models/labse:predict "Hello" "Hallo"

The server must be built with TF Text's ops. Prints the similarity of the first text to each.
"""

import json
import sys
import urllib.request


def embed(url: str, texts: list[str]) -> list[list[float]]:
    """Returns a unit vector a text."""
    request = urllib.request.Request(
        url,
        json.dumps({"instances": texts}).encode("utf-8"),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["predictions"]


def main(url: str, *texts: str) -> None:
    vectors = embed(url, list(texts))
    for text, vector in zip(texts, vectors, strict=True):
        similarity = sum(a * b for a, b in zip(vectors[0], vector, strict=True))
        print(f"{similarity:.3f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
