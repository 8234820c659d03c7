"""Trains a classifier on frozen sentence vectors: labels in one language, use in all of them.

    python examples/classify.py MODEL_DIR train.tsv test.tsv

A line of the files is `label<TAB>text`. The encoder is a hub.KerasLayer that is not trained, as in
code for google/LaBSE/2; only a linear layer learns. Prints the accuracy on the test file.
"""

import os
import sys

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # hub.KerasLayer is built on Keras 2.

import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401  The preprocessor's ops live in it.
import tf_keras  # noqa: E402


def read(path: str) -> tuple[list[str], list[str]]:
    with tf.io.gfile.GFile(path) as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t")[:2] for line in file), strict=True)
    return list(labels), list(texts)


def build_classifier(model_dir: str, classes: int) -> tf_keras.Model:
    texts = tf_keras.Input(shape=(), dtype=tf.string)
    inputs = hub.KerasLayer(os.path.join(model_dir, "preprocessor"))(texts)
    vectors = hub.KerasLayer(os.path.join(model_dir, "encoder"), trainable=False)(inputs)["default"]
    vectors = tf_keras.layers.UnitNormalization()(vectors)
    return tf_keras.Model(texts, tf_keras.layers.Dense(classes)(vectors))


def main(model_dir: str, train_file: str, test_file: str) -> None:
    labels, texts = read(train_file)
    test_labels, test_texts = read(test_file)
    names = sorted({*labels, *test_labels})
    model = build_classifier(model_dir, len(names))
    model.compile(
        optimizer=tf_keras.optimizers.Adam(0.03),
        loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    numbers = tf.constant([names.index(label) for label in labels])
    model.fit(tf.constant(texts), numbers, epochs=20, batch_size=32, verbose=0)
    numbers = tf.constant([names.index(label) for label in test_labels])
    _, accuracy = model.evaluate(tf.constant(test_texts), numbers, batch_size=32, verbose=0)
    print(f"accuracy on {len(test_texts)} texts: {100 * accuracy:.1f} %")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
