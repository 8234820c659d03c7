"""AdamW, with row-wise Adagrad for embedding tables."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.training.optimizer.lazy_adamw import LazyAdamW


class AdagradTables(LazyAdamW):
    """Updates tables by Adagrad (Duchi et al. 2011) with one accumulator for each row.

    With g the gradient of a row, w, of d columns, after each step that reads the row:

        a <- a + |g|^2 / d
        w <- w - rate * g / (sqrt(a) + epsilon)

    A frequent token takes small steps, a rare one large ones. Rows without a gradient stay as they
    are, so that none has to catch up; and in place of two moments as large as the table there is
    one number a row. There is no weight decay.
    """

    def build(self, var_list) -> None:
        super().build(var_list)
        self._place = {}  # No row has to catch up.
        self._last_steps, self._rates, self._log_decays = [], [], []

    def add_variable_from_reference(
        self, model_variable, variable_name, shape=None, initial_value=None
    ):
        """Makes the accumulators of a table, `[rows]`, in place of AdamW's second moments."""
        if self._is_lazy(model_variable):
            shape = [model_variable.shape[0] if variable_name == "v" else 0]
        return super().add_variable_from_reference(
            model_variable, variable_name, shape, initial_value
        )

    def catch_up(self, variable: tf.Variable, rows: tf.Tensor) -> None:
        """Does nothing: no row has missed a step."""

    def update_step(self, gradient, variable) -> None:
        """Updates a variable; a sparse gradient must have each row only once."""
        if not self._is_lazy(variable):
            super().update_step(gradient, variable)
            return
        if not isinstance(gradient, tf.IndexedSlices):
            gradient = tf.IndexedSlices(gradient, tf.range(variable.shape[0]))
        rows, values = gradient.indices, gradient.values
        accumulators = self._velocities[self._index_dict[self._var_key(variable)]]
        new = tf.gather(accumulators, rows) + tf.reduce_mean(tf.square(values), axis=1)
        accumulators.scatter_update(tf.IndexedSlices(new, rows))
        rates = self._rate(variable) / (tf.sqrt(new) + self.epsilon)
        variable.scatter_sub(tf.IndexedSlices(rates[:, tf.newaxis] * values, rows))

    def _is_lazy(self, variable) -> bool:
        return self._lazy_variables in variable.name

    def _apply_weight_decay(self, variables) -> None:
        super()._apply_weight_decay([one for one in variables if not self._is_lazy(one)])
