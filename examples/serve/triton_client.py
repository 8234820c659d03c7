"""Asks Triton for sentence vectors, by its HTTP interface (KServe's version 2).

    pip install tokenizers
    python triton_client.py http://localhost:8000 MODEL_DIR/onnx/tokenizer.json "Hello" "Hallo"

The server gets token ids; tokenizer.json makes those that the model was trained with. Prints the
similarity of the first text to each.
"""

import json
import math
import sys
import urllib.request

from tokenizers import Tokenizer


def embed(url: str, tokenizer: Tokenizer, texts: list[str]) -> list[list[float]]:
    """Returns a unit vector a text."""
    encoded = tokenizer.encode_batch(texts)  # Padded to the longest.
    rows = {
        "input_ids": [one.ids for one in encoded],
        "attention_mask": [one.attention_mask for one in encoded],
        "token_type_ids": [one.type_ids for one in encoded],
    }
    shape = [len(encoded), len(encoded[0].ids)]
    inputs = [
        {"name": name, "datatype": "INT64", "shape": shape, "data": sum(values, [])}
        for name, values in rows.items()
    ]
    request = urllib.request.Request(
        f"{url}/v2/models/labse/infer",
        json.dumps({"inputs": inputs, "outputs": [{"name": "default"}]}).encode("utf-8"),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        [output] = json.load(answer)["outputs"]
    _, dim = output["shape"]
    vectors = [output["data"][start : start + dim] for start in range(0, len(output["data"]), dim)]
    return [[value / math.hypot(*vector) for value in vector] for vector in vectors]


def main(url: str, tokenizer: str, *texts: str) -> None:
    vectors = embed(url, Tokenizer.from_file(tokenizer), list(texts))
    for text, vector in zip(texts, vectors, strict=True):
        similarity = sum(a * b for a, b in zip(vectors[0], vector, strict=True))
        print(f"{similarity:.3f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
