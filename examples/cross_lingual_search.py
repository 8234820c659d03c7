"""Searches sentences in any language with a query in any other, through the TF-Hub interface alone.

python examples/cross_lingual_search.py demo/model sentences.txt "Wie ändere ich mein Passwort?"
"""

import os
import sys

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # hub.KerasLayer is built on Keras 2.

import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401  The preprocessor's ops live in it.


def main(model_dir: str, sentences_file: str, query: str) -> None:
    preprocessor = hub.KerasLayer(os.path.join(model_dir, "preprocessor"))
    encoder = hub.KerasLayer(os.path.join(model_dir, "encoder"))

    def embed(texts: list[str]) -> tf.Tensor:
        return tf.math.l2_normalize(encoder(preprocessor(tf.constant(texts)))["default"], axis=1)

    with tf.io.gfile.GFile(sentences_file) as file:
        sentences = [line.rstrip("\n") for line in file]
    batches = [sentences[start : start + 64] for start in range(0, len(sentences), 64)]
    vectors = tf.concat([embed(batch) for batch in batches], axis=0)
    similarities = tf.linalg.matvec(vectors, embed([query])[0])
    best, places = tf.math.top_k(similarities, k=min(5, len(sentences)))
    for similarity, place in zip(best.numpy(), places.numpy(), strict=True):
        print(f"{similarity:.3f}  {sentences[place]}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
