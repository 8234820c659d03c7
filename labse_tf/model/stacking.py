"""Progressive stacking (LaBSE, section 3.2; Gong et al. 2019): deep encoders from shallow ones."""

from __future__ import annotations

from collections.abc import Sequence

from official.nlp.modeling import networks


def stage_depths(num_layers: int, stages: int) -> list[int]:
    """Returns the number of layers of each stage: the last has all, each earlier one half as many.

    `stage_depths(12, 3)` is `[3, 6, 12]`: L/4, L/2, L.
    """
    return [num_layers // 2 ** (stages - 1 - stage) for stage in range(stages)]


def stack(shallow: networks.BertEncoderV2, deep: networks.BertEncoderV2) -> None:
    """Copies the weights of `shallow` into `deep`: layer i of it goes to layers i, i + n, i + 2n...

    Embeddings, their layer norm and the pooler are copied as they are.

    Raises:
      ValueError: if the depth of `deep` is not a multiple of that of `shallow`, or widths differ.
    """
    source, target = shallow.transformer_layers, deep.transformer_layers
    if len(target) % len(source):
        raise ValueError(f"{len(target)} layers cannot be stacked from {len(source)} layers")
    for index, layer in enumerate(target):
        layer.set_weights(source[index % len(source)].get_weights())
    _copy(_variables_outside_layers(shallow), _variables_outside_layers(deep))


def _variables_outside_layers(encoder: networks.BertEncoderV2) -> list:
    inside = {id(v) for layer in encoder.transformer_layers for v in layer.variables}
    return [variable for variable in encoder.variables if id(variable) not in inside]


def _copy(source: Sequence, target: Sequence) -> None:
    if [v.shape for v in source] != [v.shape for v in target]:
        raise ValueError("the two encoders differ in more than their depth")
    for old, new in zip(source, target, strict=True):
        new.assign(old)
