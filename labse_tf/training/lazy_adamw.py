"""AdamW whose update of an embedding table costs what it touches."""

from __future__ import annotations

import tensorflow as tf
import tf_keras


class LazyAdamW(tf_keras.optimizers.AdamW):
    """AdamW (Loshchilov and Hutter 2019), lazy where a gradient is `tf.IndexedSlices`.

    Such a gradient names some rows of its variable. Only these are read and written: they get what
    AdamW gives them, weight decay included. The moments and weights of all other rows rest, where
    AdamW would let the moments fade, go on moving the weights by them, and let the weights decay.
    A row that every step touches is updated exactly as by AdamW.

    Dense gradients are AdamW's matter.
    """

    def apply_gradients(self, grads_and_vars, name=None, **kwargs):
        grads_and_vars = list(grads_and_vars)
        self._lazy = {
            self._var_key(variable)
            for gradient, variable in grads_and_vars
            if isinstance(gradient, tf.IndexedSlices)
        }
        return super().apply_gradients(grads_and_vars, name=name, **kwargs)

    def _apply_weight_decay(self, variables):
        # The decay of lazy variables is part of their update.
        super()._apply_weight_decay(
            [variable for variable in variables if self._var_key(variable) not in self._lazy]
        )

    def update_step(self, gradient, variable):
        """Updates a variable; the rows of a sparse gradient come once each."""
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        rows, values = gradient.indices, gradient.values
        rate = tf.cast(self.learning_rate, variable.dtype)
        step = tf.cast(self.iterations + 1, variable.dtype)
        corrected = rate * tf.sqrt(1 - tf.pow(self.beta_2, step)) / (1 - tf.pow(self.beta_1, step))
        new_m = self.beta_1 * tf.gather(m, rows) + (1 - self.beta_1) * values
        new_v = self.beta_2 * tf.gather(v, rows) + (1 - self.beta_2) * tf.square(values)
        weights = tf.gather(variable, rows)
        if self._use_weight_decay(variable):
            weights *= 1 - rate * self.weight_decay
        weights -= corrected * new_m / (tf.sqrt(new_v) + self.epsilon)
        for table, new in ((m, new_m), (v, new_v), (variable, weights)):
            table.scatter_update(tf.IndexedSlices(new, rows))


def sum_rows(gradient: tf.IndexedSlices) -> tf.IndexedSlices:
    """Returns the same gradient with each row once."""
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
