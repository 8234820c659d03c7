"""Fine-tunes the whole encoder on similar texts of one's own, and saves it as a SavedModel.

    python examples/fine_tune.py MODEL_DIR pairs.tsv OUT [LEARNING_RATE]

A line of pairs.tsv is `text<TAB>text that means the same`. Plain Keras and TF Hub, as with
google/LaBSE/2; the texts of the other pairs in a batch are what a text must be told from. (With
labse_tf installed, `labse train --init MODEL_DIR` does more: docs/training.md.)
"""

import os
import sys

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # hub.KerasLayer is built on Keras 2.

import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401  The preprocessor's ops live in it.
import tf_keras  # noqa: E402

BATCH, EPOCHS, SCALE = 16, 10, 10.0


def main(model_dir: str, pairs_file: str, out: str, learning_rate: str = "2e-5") -> None:
    tf.io.gfile.makedirs(out)  # What cannot be written to is found before the work.
    with tf.io.gfile.GFile(pairs_file) as file:
        pairs = [tuple(line.rstrip("\n").split("\t")[:2]) for line in file]
    preprocessor = hub.KerasLayer(os.path.join(model_dir, "preprocessor"))
    encoder = hub.KerasLayer(os.path.join(model_dir, "encoder"), trainable=True)
    optimizer = tf_keras.optimizers.Adam(float(learning_rate))

    def embed(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.math.l2_normalize(encoder(inputs, training=True)["default"], axis=1)

    @tf.function
    def step(sources, targets) -> tf.Tensor:
        with tf.GradientTape() as tape:
            similarities = SCALE * tf.matmul(embed(sources), embed(targets), transpose_b=True)
            labels = tf.range(tf.shape(similarities)[0])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, similarities)
            loss = tf.reduce_mean(losses)
        variables = encoder.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    batches = tf.data.Dataset.from_tensor_slices((sources, targets)).shuffle(len(pairs), seed=1)
    batches = batches.batch(BATCH).map(lambda *sides: tuple(preprocessor(side) for side in sides))
    for epoch in range(EPOCHS):
        losses = [float(step(*batch)) for batch in batches]
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.3f}")
    # The layer holds what was loaded, with its interface and its asset.
    tf.saved_model.save(encoder.resolved_object, out)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
