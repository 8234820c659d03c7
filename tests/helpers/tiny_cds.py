"""One tiny run of contrastive data selection, as fixtures that a conftest imports."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml


@pytest.fixture(scope="session")
def cds_config(tmp_path_factory) -> Path:
    tree = {
        "seed": 7,
        "cds": {
            "translator": {
                **{"encoder_layers": 1, "decoder_layers": 1, "num_attention_heads": 2},
                **{"hidden_size": 16, "intermediate_size": 32, "dropout": 0.0},
            },
            "vocab_size": 600,
            "batch_size": 8,
            "bucket_lengths": [24, 40],
            "noisy_steps": 4,
            "trusted_steps": 2,
            "noisy_optimizer": {"learning_rate": 0.01, "warmup_steps": 1},
            "trusted_optimizer": {"learning_rate": 0.01, "warmup_steps": 1},
            "loop": {"log_interval": 2, "checkpoint_interval": 2, "checkpoints_kept": 5},
        },
    }
    path = tmp_path_factory.mktemp("config") / "cds.yaml"
    path.write_text(yaml.safe_dump(tree), "utf-8")
    return path


@pytest.fixture(scope="session")
def train_cds(cds_config, bitext_dir, vocab_file):
    """Runs `labse corpus train-cds` on the tiny corpora; the trusted pairs are German."""
    from labse_tf.cli.main import main

    def train(run_dir: Path, *more: str) -> int:
        arguments = ["--config", cds_config, "--run-dir", run_dir, "--noisy", bitext_dir]
        arguments += ["--trusted", bitext_dir / "de.tsv", "--vocab", vocab_file, *more]
        return main(["corpus", "train-cds", *map(str, arguments)])

    return train


@pytest.fixture(scope="session")
def cds_run(made_once, train_cds) -> Path:
    return made_once("cds_run", train_cds)
