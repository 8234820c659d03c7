"""LASER's encoder: a bidirectional LSTM whose outputs are max-pooled.

Artetxe and Schwenk (arXiv 1812.10464), section 3: token vectors of 320, one to five layers of 512 a
direction, and the maximum over time, 1,024. The initial range and the place of dropout are those of
LASER's code.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from labse_tf.config import EncoderConfig
from labse_tf.model.protocol import symbolic_inputs


class BiLstmEncoder(tf_keras.layers.Layer):
    """Takes the inputs of the BERT encoder and gives outputs of the same names and shapes.

    With H the last layer's outputs, forward and backward side by side:

        pooled = max over all tokens t of H_t

    [CLS] and [SEP] count. A row of padding alone has no maximum; its vector is 0. Dropout is
    between the layers alone. Token types do not matter.
    """

    def __init__(
        self,
        config: EncoderConfig,
        num_layers: int,
        *,
        embedding_layer: tf_keras.layers.Layer | None = None,
    ) -> None:
        """Makes the layers; their variables exist once this one is called.

        Args:
          config: `vocab_size`, `embedding_size`, `hidden_size`, `dropout` and `initializer_range`
            are read. A direction has half of `hidden_size` units.
          num_layers: of the LSTM.
          embedding_layer: to look tokens up, instead of a table of float32.
        """
        super().__init__(name="encoder")
        self._embedding_layer = embedding_layer or layers.OnDeviceEmbedding(
            vocab_size=config.vocab_size,
            embedding_width=config.token_size,
            initializer=_uniform(config),
            name="word_embeddings",
        )
        self._forward, self._backward = (
            [_lstm(config, name=f"lstm/layer_{number}/{direction}") for number in range(num_layers)]
            for direction in ("forward", "backward")
        )
        # One layer has nothing behind it that would call this.
        self._dropout = tf_keras.layers.Dropout(config.dropout if num_layers > 1 else 0.0)
        self.inputs = symbolic_inputs()
        # Neither stacked nor compiled one by one.
        self.transformer_layers: list = []

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table: float32 `[vocab_size, token_size]`."""
        return self._embedding_layer.embeddings

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns int32 `[batch, length]`: the rows of the table that `inputs` read."""
        return inputs["input_word_ids"]

    def call(
        self, inputs: dict[str, tf.Tensor], training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns `pooled_output`, `[batch, hidden_size]`, and the tokens' vectors.

        Args:
          inputs: int32 `[batch, length]` tensors as `Tokenizer.pack` gives them; of these,
            `input_type_ids` is not read.
          training: whether dropout is on.

        Returns:
          `pooled_output`, `sequence_output` (`[batch, length, hidden_size]`) and `encoder_outputs`:
          a list of such, one per layer.
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


def _lstm(config: EncoderConfig, name: str) -> tf_keras.layers.LSTM:
    return tf_keras.layers.LSTM(
        config.hidden_size // 2,
        return_sequences=True,
        kernel_initializer=_uniform(config),
        recurrent_initializer=_uniform(config),
        bias_initializer=_uniform(config),
        unit_forget_bias=False,
        name=name,
    )


def _uniform(config: EncoderConfig) -> tf_keras.initializers.Initializer:
    """Returns a new initialiser: one that is used twice gives the same numbers twice."""
    return tf_keras.initializers.RandomUniform(-config.initializer_range, config.initializer_range)
