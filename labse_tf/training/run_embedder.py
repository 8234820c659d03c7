"""Embeds text with the network of a run, without exporting it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.embedding.light import SortingEncoder
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.model.static_encoder import StaticEncoder
from labse_tf.tokenization.protocol import Tokenizer


class RunEmbedder(SortingEncoder):
    """An encoder (`encode(list of str)`) made of a network and its tokeniser."""

    def __init__(
        self, network: EncoderNetwork, tokenizer: Tokenizer, *, sequence_length: int
    ) -> None:
        """Traces the network once, for batches of any shape; longer texts are truncated."""
        self._tokenizer = tokenizer
        self._run = tf.function(
            lambda inputs: tf.cast(network(inputs, training=False)["pooled_output"], tf.float32),
            input_signature=[ENCODER_INPUTS],
        )
        self.dim = self._run.get_concrete_function().structured_outputs.shape[1]
        self.sequence_length = sequence_length
        if isinstance(network, StaticEncoder):
            self._has_no_layers()

    def _tokenize(self, texts: Sequence[str]) -> tf.RaggedTensor:
        return self._tokenizer(tf.constant(texts))

    def _embed(self, tokens: tf.RaggedTensor, rows: np.ndarray, length: int) -> np.ndarray:
        packed = self._tokenizer.pack([tf.gather(tokens, rows)], tf.constant(length))
        return self._run(packed).numpy()
