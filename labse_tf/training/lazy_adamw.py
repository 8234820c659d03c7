"""AdamW whose update of an embedding table costs what it touches."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
import tf_keras


class LazyAdamW(tf_keras.optimizers.AdamW):
    """AdamW (Loshchilov and Hutter 2019), lazy where a gradient is `tf.IndexedSlices`.

    Such a gradient names some rows of its variable. Only these are read and written: they get what
    AdamW gives them, weight decay included. The moments and weights of all other rows rest, where
    AdamW would let the moments fade, go on moving the weights by them, and let the weights decay.
    A row that every step touches is updated exactly as by AdamW.

    Dense gradients update as in AdamW, in one pass and in place: step by step, the temporaries of
    the paper's table would take another 5 GB.
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
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        if isinstance(gradient, tf.IndexedSlices):
            self._update_rows(gradient, variable, m, v)
            return
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=0.0,  # The bias is corrected in the rate.
            beta2_power=0.0,
            lr=self._corrected_rate(),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )

    def _update_rows(self, gradient: tf.IndexedSlices, variable, m, v) -> None:
        rows, values = gradient.indices, gradient.values
        new_m = self.beta_1 * tf.gather(m, rows) + (1 - self.beta_1) * values
        new_v = self.beta_2 * tf.gather(v, rows) + (1 - self.beta_2) * tf.square(values)
        weights = tf.gather(variable, rows)
        if self._use_weight_decay(variable):
            weights *= 1 - tf.cast(self.learning_rate, variable.dtype) * self.weight_decay
        weights -= self._corrected_rate() * new_m / (tf.sqrt(new_v) + self.epsilon)
        for table, new in ((m, new_m), (v, new_v), (variable, weights)):
            table.scatter_update(tf.IndexedSlices(new, rows))

    def _corrected_rate(self) -> tf.Tensor:
        """The learning rate with the correction of both moments' bias: a float32 scalar."""
        step = tf.cast(self.iterations + 1, tf.float32)
        rate = tf.cast(self.learning_rate, tf.float32)
        first, second = (_one_minus_power(beta, step) for beta in (self.beta_1, self.beta_2))
        return rate * tf.sqrt(second) / first


def _one_minus_power(beta: float, step: tf.Tensor) -> tf.Tensor:
    # 1 - 0.999 ** 1 by itself would lose four of float32's seven digits. The moments are made with
    # beta as a float32 too: with another one the errors would not cancel.
    beta = float(np.float32(beta))
    return -tf.math.expm1(step * (math.log(beta) if beta else -math.inf))


def sum_rows(gradient: tf.IndexedSlices) -> tf.IndexedSlices:
    """Returns the same gradient with each row once."""
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
