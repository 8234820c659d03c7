"""The weaker dual encoder: its network, a deep averaging network, and its training.

Tokens and bigrams are embedded, averaged and passed through dense layers (Iyyer et al. 2015, "Deep
Unordered Composition Rivals Syntactic Methods for Text Classification"; with bigrams and the square
root in the average as in the DAN of Cer et al. 2018, "Universal Sentence Encoder").
"""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf
import tf_keras

from labse_tf.data.pairs import pair_batches
from labse_tf.embedding.embedder import Embedder
from labse_tf.embedding.light import SortingEncoder
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.model.encoder import replayable_dropout
from labse_tf.systems.hard_negatives.config import AveragingEncoderConfig, NegativesRun
from labse_tf.training.dual_encoder import on_strategy, stage_of
from labse_tf.training.fit import fit
from labse_tf.training.objectives import DualEncoder
from labse_tf.training.runs.checkpoints import load_tokenizer, newest_whole
from labse_tf.training.runs.run_dir import RunDir
from labse_tf.training.validation import RunEmbedder

# A folder below checkpoints/, so that the run is not mistaken for a run of a full encoder.
_CHECKPOINTS = "averaging"
# Odd multipliers that spread ids over 32 bits, and the shift that mixes high bits into low ones.
_LEFT, _RIGHT, _SHIFT = 2654435761, 2246822519, 15
_32_BITS = 0xFFFFFFFF


class AveragingEncoder(tf_keras.Model):
    """Takes the inputs of the BERT encoder and returns a `pooled_output`, like BERT.

    Let e_1 to e_n be the embeddings of a sentence's n tokens and n - 1 bigrams ([CLS] and [SEP]
    count as tokens). With h_0 = sum(e) / sqrt(n):

        h_l = h_(l-1) + gelu(W_l layer_norm(h_(l-1)) + b_l),  pooled = W layer_norm(h_L) + b
    """

    def __init__(self, config: AveragingEncoderConfig, *, vocab_size: int) -> None:
        """Creates the variables."""
        super().__init__(name="averaging_encoder")
        self._vocab_size, self._bigram_buckets = vocab_size, config.bigram_buckets
        # One table for both, so that one gather reads them; the optimiser finds it by its name.
        self._table = self.add_weight(
            name="word_embeddings",
            shape=[vocab_size + config.bigram_buckets, config.hidden_size],
            initializer=tf_keras.initializers.TruncatedNormal(stddev=config.initializer_range),
        )
        self._norms = [
            tf_keras.layers.LayerNormalization(epsilon=1e-6, name=f"layer_norm_{layer}")
            for layer in range(config.num_layers + 1)
        ]
        self._hidden_layers = [
            tf_keras.layers.Dense(config.hidden_size, "gelu", name=f"dense_{layer}")
            for layer in range(config.num_layers)
        ]
        self._pooler = tf_keras.layers.Dense(config.hidden_size, name="pooler")
        self._dropout = tf_keras.layers.Dropout(config.dropout)
        self({name: tf.zeros([1, 4], tf.int32) for name in ("input_word_ids", "input_mask")})

    def get_embedding_table(self) -> tf.Variable:
        """Returns the embeddings of tokens, then bigrams: `[vocab_size + buckets, hidden_size]`."""
        return self._table

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the rows of the table that `inputs` need, int32: tokens, then any bigrams."""
        ids = inputs["input_word_ids"]
        if not self._bigram_buckets:
            return ids
        left, right = (tf.cast(side, tf.int64) for side in (ids[:, :-1], ids[:, 1:]))
        mixed = tf.bitwise.bitwise_and(left * _LEFT + right * _RIGHT, _32_BITS)
        mixed = tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, _SHIFT))
        bigrams = tf.cast(mixed % self._bigram_buckets, tf.int32)
        return tf.concat([ids, self._vocab_size + bigrams], axis=1)

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None):
        """Returns `{"pooled_output": float32 [batch, hidden_size]}`."""
        is_token = tf.cast(inputs["input_mask"], tf.float32)
        # A bigram counts if its second token is not padding.
        counted = tf.concat([is_token, is_token[:, 1:]], axis=1)
        weights = counted if self._bigram_buckets else is_token
        weights *= tf.math.rsqrt(tf.maximum(tf.reduce_sum(is_token, axis=1, keepdims=True), 1.0))
        embeddings = tf.gather(self._table, self.rows(inputs))
        hidden = tf.squeeze(tf.matmul(weights[:, tf.newaxis], embeddings), axis=1)
        for norm, layer in zip(self._norms, self._hidden_layers, strict=False):
            hidden += self._dropout(layer(norm(hidden)), training=training)
        return {"pooled_output": self._pooler(self._norms[-1](hidden))}


def train(config: NegativesRun, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains the encoder of `config.negatives`, or resumes where the run was stopped."""
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
    settings = on_strategy(config.train, strategy)
    batches = pair_batches(settings, tokenizer, languages=config.languages, seed=config.seed)
    stage = stage_of(settings, "train the averaging encoder", run_dir.checkpoints / _CHECKPOINTS)
    fit(DualEncoder(encoder, settings), batches, stage, run_dir, strategy)


def open_model(path: str | os.PathLike[str]) -> tuple[SortingEncoder, list[Path]]:
    """Opens a model dir, or a run of `train`; returns an encoder and the files of its weights.

    Raises:
      InputError: if the folder is neither.
    """
    run_dir = RunDir(Path(path))
    if not run_dir.config_file.is_file():
        model_dir = ModelDir.open(path)
        return Embedder(model_dir), sorted((model_dir.path / "encoder" / "variables").iterdir())
    checkpoint = newest_whole(run_dir.checkpoints / _CHECKPOINTS)
    if checkpoint is None:
        raise InputError(
            "the run has no checkpoint of an averaging encoder",
            path=path,
            remedy="name the --run-dir of `labse mine-negatives`, or a model dir",
        )
    config = run_dir.read_config(NegativesRun)
    network = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
    restored = tf.train.Checkpoint(encoder=network).restore(checkpoint)
    restored.assert_existing_objects_matched().expect_partial()
    length = config.train.bucket_lengths[-1]
    encoder = RunEmbedder(network, load_tokenizer(run_dir), sequence_length=length)
    return encoder, sorted(Path(checkpoint).parent.glob(f"{Path(checkpoint).name}.*"))
