"""The configuration of a run: one typed tree of sections."""

from labse_tf.config.tree import (
    ACTIVATIONS,
    PRECISIONS,
    AveragingEncoderConfig,
    ComputeConfig,
    Config,
    ContrastiveConfig,
    DistillConfig,
    EncoderConfig,
    LoopConfig,
    NegativesConfig,
    OptimizerConfig,
    PretrainConfig,
    TokenizerConfig,
    TrainConfig,
    TranslatorConfig,
    flatten,
)

__all__ = [
    "ACTIVATIONS",
    "PRECISIONS",
    "AveragingEncoderConfig",
    "ComputeConfig",
    "Config",
    "ContrastiveConfig",
    "DistillConfig",
    "EncoderConfig",
    "LoopConfig",
    "NegativesConfig",
    "OptimizerConfig",
    "PretrainConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TranslatorConfig",
    "flatten",
]
