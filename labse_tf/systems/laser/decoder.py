"""LASER's decoder: an LSTM that knows the source by its vector alone.

Artetxe and Schwenk (arXiv 1812.10464), section 3; the map to the start state, the layer below the
softmax and the initial range are those of LASER's code.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from labse_tf.systems.laser.config import LaserConfig


class LaserDecoder(tf_keras.layers.Layer):
    """Predicts each token of a translation from those before it.

    With the source's vector v, the target language's vector l, and the token vectors e(y):

        (h_0, c_0) = W v + b
        h_t = LSTM([e(y_(t-1)); v; l], h_(t-1))
        P(y_t | y_1 .. y_(t-1), v, l) = softmax(O (U h_t + a) + d)

    The products of the LSTM's kernel with v and l are the same at all steps, and computed once.

    With `rescale`, v is scaled to the length sqrt(dim) first, for encoders whose vectors may have
    any length: `labse train` trains the direction alone. An LSTM's maximum lies between -1 and 1.
    """

    def __init__(
        self,
        config: LaserConfig,
        *,
        vocab_size: int,
        token_size: int,
        rescale: bool = False,
    ) -> None:
        """Makes the layers; their variables exist once this one is called.

        Args:
          config: the decoder's sizes, initial range and target languages.
          vocab_size: number of tokens.
          token_size: width of e(y).
          rescale: whether the sources' vectors are brought to one length.
        """
        super().__init__(name="decoder")
        self._rescale = rescale
        self.vocab_size, self._output_size = vocab_size, config.output_size

        def uniform():
            # A new one each time: one that is used twice gives the same numbers twice.
            spread = config.initializer_range
            return tf_keras.initializers.RandomUniform(-spread, spread)

        def dense(size: int, name: str, **kwargs):
            return tf_keras.layers.Dense(size, kernel_initializer=uniform(), name=name, **kwargs)

        def table(rows: int, width: int, name: str):
            return layers.OnDeviceEmbedding(
                vocab_size=rows, embedding_width=width, initializer=uniform(), name=name
            )

        self._tokens = table(vocab_size, token_size, "word_embeddings")
        self._languages = table(len(config.targets), config.language_size, "languages")
        self._start = dense(2 * config.decoder_size, "start")
        self._of_tokens = dense(4 * config.decoder_size, "of_tokens", bias_initializer=uniform())
        self._of_context = dense(4 * config.decoder_size, "of_context", use_bias=False)
        self._lstm = tf_keras.layers.RNN(
            _Recurrence(config.decoder_size, uniform()), return_sequences=True, name="lstm"
        )
        self._below = dense(config.output_size, "below")
        self._initializer = uniform()

    def build(self, input_shape) -> None:
        # As a table, of which a sampled softmax reads few rows.
        shape = [self.vocab_size, self._output_size]
        self.output_table = self.add_weight(
            "output/word_embeddings", shape, tf.float32, self._initializer
        )
        self.output_bias = self.add_weight(
            "output/bias", [self.vocab_size], tf.float32, tf_keras.initializers.Zeros()
        )
        super().build(input_shape)

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table of e(y): float32 `[vocab_size, token_size]`."""
        return self._tokens.embeddings

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns U h_t + a: `[batch, length, output_size]`.

        Args:
          inputs: the sources' vectors, `[batch, dim]`; int32 `[batch]`, the numbers of the target
            languages; int32 `[batch, length]`, the tokens before those to predict.
        """
        vectors, languages, previous = inputs
        state = self.start(vectors, languages)
        products = self._of_tokens(self._tokens(previous)) + state["context"][:, tf.newaxis]
        initial = [state["hidden"], state["cell"]]
        return self._below(self._lstm(products, initial_state=initial))

    def start(self, vectors: tf.Tensor, languages: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the state before the first token, for `step`: a dict of `[batch, ...]`.

        Args:
          vectors: `[batch, dim]`, of the sources.
          languages: int32 `[batch]`, the numbers of the target languages.
        """
        if self._rescale:
            vectors = tf.math.l2_normalize(vectors, axis=-1) * vectors.shape[-1] ** 0.5
        hidden, cell = tf.split(self._start(vectors), 2, axis=-1)
        context = tf.concat([vectors, self._languages(languages)], axis=-1)
        return {"hidden": hidden, "cell": cell, "context": self._of_context(context)}

    def step(
        self, previous: tf.Tensor, state: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Returns the logits of the next tokens, float32 `[batch, vocab_size]`, and the next state.

        Args:
          previous: int32 `[batch]`, the tokens before.
          state: from `start` or the step before.
        """
        products = self._of_tokens(self._tokens(previous)) + state["context"]
        output, (hidden, cell) = self._lstm.cell(products, [state["hidden"], state["cell"]])
        return self.logits(self._below(output)), {**state, "hidden": hidden, "cell": cell}

    def logits(self, states: tf.Tensor) -> tf.Tensor:
        """Returns float32 `[..., vocab_size]` of what `call` returns."""
        states = tf.cast(states, tf.float32)
        flat = tf.reshape(states, [-1, self._output_size])
        logits = tf.matmul(flat, self.output_table, transpose_b=True) + self.output_bias
        return tf.reshape(logits, tf.concat([tf.shape(states)[:-1], [self.vocab_size]], axis=0))


class _Recurrence(tf_keras.layers.Layer):
    """An LSTM cell, whose input is the product of its kernel with an input, plus the bias."""

    def __init__(self, units: int, initializer) -> None:
        super().__init__(name="cell")
        self.state_size = [units, units]
        self.output_size = self._units = units
        self._initializer = initializer

    def build(self, input_shape) -> None:
        self._kernel = self.add_weight(
            "recurrent_kernel", [self._units, 4 * self._units], initializer=self._initializer
        )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, states: list[tf.Tensor]):
        hidden, cell = states
        gates = tf.split(inputs + tf.matmul(hidden, self._kernel), 4, axis=-1)
        into, forget, candidate, out = gates
        cell = tf.sigmoid(forget) * cell + tf.sigmoid(into) * tf.tanh(candidate)
        hidden = tf.sigmoid(out) * tf.tanh(cell)
        return hidden, [hidden, cell]


def previous_tokens(targets: tf.Tensor, start: int) -> tf.Tensor:
    """Returns int32 `[batch, length]`: the token before each target, `start` before the first."""
    return tf.concat([tf.fill([tf.shape(targets)[0], 1], start), targets[:, :-1]], axis=1)
