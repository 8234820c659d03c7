"""Gradients of a batch that does not fit in memory with its activations, chunk by chunk.

A loss that is a sum over rows, such as the loss of masked tokens, has the sum of its chunks'
gradients.

A contrastive loss is no such sum, but depends on a sentence only through its embedding: given the
gradient with respect to each embedding, each chunk of sentences is back-propagated separately. This
is the gradient cache (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory
Limited Setup", section 3.3). The result is the full batch's gradient, for one more forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

_ZERO = tf.UnconnectedGradients.ZERO


def cached_gradients(
    embed: Callable[[dict[str, tf.Tensor]], tf.Tensor],
    inputs: dict[str, tf.Tensor],
    loss_of: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    variables: Sequence[tf.Variable],
    *,
    chunk_rows: int,
    generators: Sequence[tf.random.Generator] = (),
    tables: Sequence[tuple[tf.Variable, tf.Tensor]] = (),
) -> tuple[tf.Tensor, tf.Tensor, list]:
    """Returns loss, accuracy and the gradient of the loss with respect to each variable.

    Args:
      embed: embeds rows of `inputs`: `[chunk_rows, dim]` float32, with the same dim for all chunks.
      inputs: `[rows, ...]` tensors; `chunk_rows` divides rows.
      loss_of: maps all embeddings, `[rows, dim]`, to loss and accuracy, both scalars.
      variables: the variables that `embed` depends on.
      chunk_rows: rows to embed at a time.
      generators: the source of all random numbers of `embed`, so that both passes drop the same.
      tables: the variables whose gradients must stay sparse, and the ids that `embed` reads.

    Returns:
      (loss, accuracy, gradients); `tf.IndexedSlices` with distinct rows for `tables`.
    """
    chunk, count = _split(inputs, chunk_rows)
    states = [tf.identity(generator.state) for generator in generators]
    _, found = tf.while_loop(
        lambda index, _: index < count,
        lambda index, found: (index + 1, found.write(index, embed(chunk(index)))),
        [0, tf.TensorArray(tf.float32, size=count, infer_shape=True)],
        parallel_iterations=1,
    )
    embeddings = found.concat()
    rows = tf.nest.flatten(inputs)[0].shape[0]
    embeddings.set_shape([rows, None])  # For XLA; concat() forgets it.
    with tf.GradientTape() as tape:
        tape.watch(embeddings)
        loss, accuracy = loss_of(embeddings)
    slopes = tape.gradient(loss, embeddings)
    for generator, state in zip(generators, states, strict=True):
        generator.state.assign(state)
    slopes = tf.reshape(slopes, [count, chunk_rows, embeddings.shape[-1]])

    def gradients_of(index):
        with tf.GradientTape() as tape:
            embeddings = embed(chunk(index))
        return [], tape.gradient(
            embeddings, variables, output_gradients=slopes[index], unconnected_gradients=_ZERO
        )

    _, gradients = _sum_of_chunks(gradients_of, [], count, variables, tables)
    return loss, accuracy, gradients


def summed_gradients(
    loss_of: Callable[[dict], tuple[tf.Tensor, tf.Tensor]],
    batch: dict,
    variables: Sequence[tf.Variable],
    *,
    chunk_rows: int,
    tables: Sequence[tuple[tf.Variable, tf.Tensor]] = (),
) -> tuple[tf.Tensor, tf.Tensor, list]:
    """Returns loss, accuracy and gradients of a loss that is a sum over rows.

    Args:
      loss_of: maps a chunk of `batch` to its shares of loss and accuracy, two scalars.
      batch: `[rows, ...]` tensors, in any nested structure; `chunk_rows` divides rows.
      variables: the variables that the loss depends on.
      chunk_rows: rows at a time.
      tables: as for `cached_gradients`; the ids of the whole batch.

    Returns:
      (loss, accuracy, gradients); `tf.IndexedSlices` with distinct rows for `tables`.
    """
    chunk, count = _split(batch, chunk_rows)

    def gradients_of(index):
        with tf.GradientTape() as tape:
            loss, accuracy = loss_of(chunk(index))
        gradients = tape.gradient(loss, variables, unconnected_gradients=_ZERO)
        return [tf.stop_gradient(loss), accuracy], gradients

    values, gradients = _sum_of_chunks(
        gradients_of, [tf.constant(0.0)] * 2, count, variables, tables
    )
    return *values, gradients


def _split(inputs: dict, chunk_rows: int) -> tuple[Callable[[tf.Tensor], dict], tf.Tensor]:
    """Returns a function of an index, which returns a chunk of `inputs`; and the chunks' number."""

    def split(rows: tf.Tensor) -> tf.Tensor:
        return tf.reshape(rows, tf.concat([[-1, chunk_rows], tf.shape(rows)[1:]], axis=0))

    chunks = tf.nest.map_structure(split, inputs)
    count = tf.shape(tf.nest.flatten(chunks)[0])[0]
    return lambda index: tf.nest.map_structure(lambda chunk: chunk[index], chunks), count


def _sum_of_chunks(gradients_of, values, count, variables, tables) -> tuple[list, list]:
    """Returns the sums over chunks of scalars, which begin as `values`, and of the gradients."""
    # The sum for a table has one row per distinct id of the whole batch; `rows` are these ids.
    rows = {table.ref(): tf.sort(tf.unique(tf.reshape(ids, [-1]))[0]) for table, ids in tables}

    def zeros(variable):
        if variable.ref() in rows:
            return tf.zeros([tf.size(rows[variable.ref()]), variable.shape[1]])
        return tf.zeros_like(variable)

    def add(total, gradient, variable):
        if variable.ref() not in rows:
            return total + tf.convert_to_tensor(gradient)
        ids = rows[variable.ref()]
        places = tf.searchsorted(ids, tf.cast(gradient.indices, ids.dtype))
        return tf.tensor_scatter_nd_add(total, places[:, None], gradient.values)

    def body(index, values, sums):
        more, gradients = gradients_of(index)
        values = [value + another for value, another in zip(values, more, strict=True)]
        return index + 1, values, list(map(add, sums, gradients, variables))

    _, values, sums = tf.while_loop(
        lambda index, *_: index < count,
        body,
        [0, values, [zeros(variable) for variable in variables]],
        parallel_iterations=1,
    )
    return values, [
        tf.IndexedSlices(total, rows[variable.ref()], tf.shape(variable))
        if variable.ref() in rows
        else total
        for total, variable in zip(sums, variables, strict=True)
    ]
