"""The configuration of a run: one typed tree. Each section has its own file and checks itself."""

from labse_tf.config.cds import CdsConfig, TranslatorConfig
from labse_tf.config.encoder import (
    ACTIVATIONS,
    BERT,
    BILSTM,
    MAX,
    OWN_NETWORKS,
    PRECISIONS,
    ComputeConfig,
    EncoderConfig,
    TokenizerConfig,
)
from labse_tf.config.laser import LaserConfig
from labse_tf.config.negatives import AveragingEncoderConfig, NegativesConfig
from labse_tf.config.nli import NliConfig
from labse_tf.config.optimizer import LoopConfig, OptimizerConfig
from labse_tf.config.pretrain import CMLM, MLM, PretrainConfig
from labse_tf.config.train import DistillConfig, TrainConfig
from labse_tf.config.tree import Config, flatten

__all__ = [
    "ACTIVATIONS",
    "BERT",
    "BILSTM",
    "CMLM",
    "MAX",
    "MLM",
    "OWN_NETWORKS",
    "PRECISIONS",
    "AveragingEncoderConfig",
    "ComputeConfig",
    "Config",
    "CdsConfig",
    "DistillConfig",
    "EncoderConfig",
    "LaserConfig",
    "LoopConfig",
    "NegativesConfig",
    "NliConfig",
    "OptimizerConfig",
    "PretrainConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TranslatorConfig",
    "flatten",
]
