"""LASER's encoder and decoder (Artetxe and Schwenk, arXiv 1812.10464, section 3).

The initial range, the place of dropout, the map to the decoder's start state and the layer below
its softmax are those of LASER's code.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from labse_tf.config import EncoderConfig
from labse_tf.model.protocol import symbolic_inputs
from labse_tf.systems.laser.config import LaserConfig


class BiLstmEncoder(tf_keras.layers.Layer):
    """A bidirectional LSTM whose outputs are max-pooled, with the interface of the BERT encoder.

    LASER has token vectors of 320, one to five layers of 512 a direction, and so vectors of 1,024:
    the maximum over all tokens, [CLS] and [SEP] included, of the last layer's outputs, forward and
    backward side by side. A row of padding alone has no maximum; its vector is 0. Dropout is
    between the layers alone. Token types do not matter.
    """

    def __init__(
        self,
        config: EncoderConfig,
        num_layers: int,
        *,
        embedding_layer: tf_keras.layers.Layer | None = None,
    ) -> None:
        """A direction has `hidden_size` / 2 units; `embedding_layer` replaces a float32 table."""
        super().__init__(name="encoder")
        spread = config.initializer_range
        self._embedding_layer = embedding_layer or layers.OnDeviceEmbedding(
            vocab_size=config.vocab_size,
            embedding_width=config.token_size,
            initializer=_uniform(spread),
            name="word_embeddings",
        )

        def lstm(name: str) -> tf_keras.layers.LSTM:
            starts = ("kernel_initializer", "recurrent_initializer", "bias_initializer")
            return tf_keras.layers.LSTM(
                config.hidden_size // 2,
                return_sequences=True,
                unit_forget_bias=False,
                name=name,
                **{start: _uniform(spread) for start in starts},
            )

        self._forward, self._backward = (
            [lstm(f"lstm/layer_{number}/{direction}") for number in range(num_layers)]
            for direction in ("forward", "backward")
        )
        # One layer has nothing behind it that would call this.
        self._dropout = tf_keras.layers.Dropout(config.dropout if num_layers > 1 else 0.0)
        self.inputs = symbolic_inputs()
        self.transformer_layers: list = []  # Neither stacked nor compiled one by one.

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table: float32 `[vocab_size, token_size]`."""
        return self._embedding_layer.embeddings

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns int32 `[batch, length]`: the rows of the table that `inputs` read."""
        return inputs["input_word_ids"]

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None):
        """Returns `pooled_output`, `[batch, hidden_size]`, and the vectors of the tokens.

        `sequence_output` is `[batch, length, hidden_size]`, `encoder_outputs` a list of such.
        """
        mask = inputs["input_mask"] > 0
        lengths = tf.reduce_sum(inputs["input_mask"], axis=1)
        hidden = self._embedding_layer(inputs["input_word_ids"])
        outputs = []
        for forward, backward in zip(self._forward, self._backward, strict=True):
            if outputs:
                hidden = self._dropout(hidden, training=training)
            # Padding comes last in either direction, so no token's output depends on it. A mask
            # would do the same, but at each step, and ONNX knows no LSTM with one.
            reversed_ = backward(tf.reverse_sequence(hidden, lengths, seq_axis=1))
            reversed_ = tf.reverse_sequence(reversed_, lengths, seq_axis=1)
            hidden = tf.concat([forward(hidden), reversed_], axis=-1)
            outputs.append(hidden)
        # A unit may be negative at all tokens, so padding must not count as 0.
        pooled = tf.reduce_max(tf.where(mask[..., tf.newaxis], hidden, hidden.dtype.min), axis=1)
        pooled = tf.where(lengths[:, tf.newaxis] > 0, pooled, 0)
        return {"pooled_output": pooled, "sequence_output": hidden, "encoder_outputs": outputs}


def _uniform(spread: float) -> tf_keras.initializers.Initializer:
    """Returns a new initialiser: one that is used twice gives the same numbers twice."""
    return tf_keras.initializers.RandomUniform(-spread, spread)


class LaserDecoder(tf_keras.layers.Layer):
    """Predicts each token of a translation from those before it; knows the source by its vector.

    With the source's vector v, the target language's vector l, and the token vectors e(y):

        (h_0, c_0) = W v + b
        h_t = LSTM([e(y_(t-1)); v; l], h_(t-1))
        P(y_t | y_1 .. y_(t-1), v, l) = softmax(O (U h_t + a) + d)

    The products of the LSTM's kernel with v and l are the same at all steps, and computed once.

    With `rescale`, v is scaled to the length sqrt(dim) first, for encoders whose vectors may have
    any length: `labse train` trains the direction alone. An LSTM's maximum lies between -1 and 1.
    """

    def __init__(
        self, config: LaserConfig, *, vocab_size: int, token_size: int, rescale: bool = False
    ) -> None:
        """Vectors e(y) are `token_size` wide; variables exist once the decoder is called."""
        super().__init__(name="decoder")
        self._rescale = rescale
        self.vocab_size, self._output_size = vocab_size, config.output_size
        spread = config.initializer_range

        def dense(size: int, name: str, **kwargs):
            kwargs["kernel_initializer"] = _uniform(spread)
            return tf_keras.layers.Dense(size, name=name, **kwargs)

        def table(rows: int, width: int, name: str):
            return layers.OnDeviceEmbedding(
                vocab_size=rows, embedding_width=width, initializer=_uniform(spread), name=name
            )

        units = config.decoder_size
        self._tokens = table(vocab_size, token_size, "word_embeddings")
        self._languages = table(len(config.targets), config.language_size, "languages")
        self._start = dense(2 * units, "start")
        self._of_tokens = dense(4 * units, "of_tokens", bias_initializer=_uniform(spread))
        self._of_context = dense(4 * units, "of_context", use_bias=False)
        cell = _Recurrence(units, _uniform(spread))
        self._lstm = tf_keras.layers.RNN(cell, return_sequences=True, name="lstm")
        self._below = dense(config.output_size, "below")
        self._initializer = _uniform(spread)

    def build(self, input_shape) -> None:
        def weight(name: str, shape: list[int], initializer) -> tf.Variable:
            return self.add_weight(f"output/{name}", shape, tf.float32, initializer)

        # As a table, of which a sampled softmax reads few rows.
        shape = [self.vocab_size, self._output_size]
        self.output_table = weight("word_embeddings", shape, self._initializer)
        self.output_bias = weight("bias", shape[:1], tf_keras.initializers.Zeros())
        super().build(input_shape)

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table of e(y): float32 `[vocab_size, token_size]`."""
        return self._tokens.embeddings

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns U h_t + a: `[batch, length, output_size]`.

        Takes the arguments of `start`, and the tokens before, int32 `[batch, length]`.
        """
        vectors, languages, previous = inputs
        state = self.start(vectors, languages)
        products = self._of_tokens(self._tokens(previous)) + state["context"][:, tf.newaxis]
        initial = [state["hidden"], state["cell"]]
        return self._below(self._lstm(products, initial_state=initial))

    def start(self, vectors: tf.Tensor, languages: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the state before the first token, for `step`: a dict of `[batch, ...]`.

        Takes the sources' vectors, `[batch, dim]`, and target languages' numbers, int32 `[batch]`.
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

        Takes the tokens before, int32 `[batch]`, and the state of `start` or of the step before.
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
        shape = [self._units, 4 * self._units]
        self._kernel = self.add_weight("recurrent_kernel", shape, initializer=self._initializer)
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, states: list[tf.Tensor]):
        hidden, cell = states
        gates = inputs + tf.matmul(hidden, self._kernel)
        into, forget, candidate, out = tf.split(gates, 4, axis=-1)
        cell = tf.sigmoid(forget) * cell + tf.sigmoid(into) * tf.tanh(candidate)
        hidden = tf.sigmoid(out) * tf.tanh(cell)
        return hidden, [hidden, cell]


def previous_tokens(targets: tf.Tensor, start: int) -> tf.Tensor:
    """Returns int32 `[batch, length]`: the token before each target, `start` before the first."""
    return tf.concat([tf.fill([tf.shape(targets)[0], 1], start), targets[:, :-1]], axis=1)
