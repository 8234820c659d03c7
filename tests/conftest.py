"""What the tests share: a tiny vocabulary, tiny corpora, one tiny trained run and its model dir."""

from __future__ import annotations

import os

# Before anything imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Matrices this small are not worth a second thread, and pytest-xdist has taken the cores.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import fcntl
import gc
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
import quick_beam
import yaml
from hypothesis import HealthCheck, settings
from tiny_text import FOREIGN, LANGUAGES, SENTENCES, sentences_of

# No test judges how fast a machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The longest files begin first, so that no process is left alone with one in the end; the first
# three wait for different fixtures.
LONGEST = (
    *("export/test_verification", "labse_tf/systems/laser/test_laser_runs"),
    *("beam_pipelines/runtime/test_stores", "labse_tf/systems/laser", "labse_tf/systems"),
    *("test_notebooks.py", "labse_tf/training", "labse_tf/data", "export"),
    "beam_pipelines",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = str(item.path.relative_to(Path(__file__).parent))
        return next((n for n, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Collects garbage rarely and never among the imports, as the commands do; quickens Beam."""
    quick_beam.remember_signatures()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Returns a path that one of pytest-xdist's processes writes, and all of them read."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "made_once"
    folder.mkdir(exist_ok=True)

    def make(name: str, write: Callable[[Path], None]) -> Path:
        path, done = folder / name, folder / f"{name}.done"
        with open(folder / f"{name}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                write(path)
                done.touch()
        return path

    return make


@pytest.fixture(scope="session")
def multilingual_sentences() -> tuple[str, ...]:
    return SENTENCES


@pytest.fixture(scope="session")
def vocab_file(made_once) -> Path:
    """The reserved tokens and every character of the corpora, alone and as a continuation."""
    from vocab import wordpiece_file

    texts = [*SENTENCES, *(text for language in LANGUAGES for text in sentences_of(language))]
    characters = sorted(set("".join(texts)) - set(" \t\n"))
    continuations = [f"##{character}" for character in characters]
    tokens = [*wordpiece_file.RESERVED_TOKENS, *characters, *continuations]
    return made_once("vocab.txt", lambda path: wordpiece_file.write(path, tokens))


@pytest.fixture(scope="session")
def tokenizer(vocab_file):
    from labse_tf.tokenization.wordpiece import WordPieceTokenizer

    return WordPieceTokenizer(vocab_file, max_bytes_per_word=600)


@pytest.fixture(scope="session")
def bitext_dir(made_once) -> Path:
    def write(folder: Path) -> None:
        folder.mkdir()
        for language in FOREIGN:
            pairs = zip(sentences_of("en"), sentences_of(language), strict=True)
            lines = "".join(f"{english}\t{foreign}\n" for english, foreign in pairs)
            (folder / f"{language}.tsv").write_text(lines, "utf-8")

    return made_once("bitext", write)


@pytest.fixture(scope="session")
def negatives_dir(made_once, bitext_dir):
    """Pairs with the targets of the three next pairs as hard negatives."""

    def write(folder: Path) -> None:
        folder.mkdir()
        for path in bitext_dir.glob("*.tsv"):
            pairs = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
            targets = [target for _, target in pairs] * 2
            rows = ["\t".join([*pair, *targets[n + 1 : n + 4]]) for n, pair in enumerate(pairs)]
            (folder / path.name).write_text("\n".join(rows) + "\n", "utf-8")

    return made_once("negatives", write)


@pytest.fixture(scope="session")
def inference_dir(made_once, bitext_dir):
    """English and German sides of pairs, each before the next one's, with one of two labels."""

    def write(folder: Path) -> None:
        folder.mkdir()
        pairs = [
            line.split("\t") for line in (bitext_dir / "de.tsv").read_text("utf-8").splitlines()
        ]
        for side, language in enumerate(("en", "de")):
            texts = [pair[side] for pair in pairs]
            rows = [
                f"{one}\t{other}\t{('neutral', 'entailment')[n % 2]}\n"
                for n, (one, other) in enumerate(zip(texts, texts[1:], strict=False))
            ]
            (folder / f"train.{language}.tsv").write_text("".join(rows), "utf-8")

    return made_once("inference", write)


@pytest.fixture(scope="session")
def monolingual_dir(made_once) -> Path:
    def write(folder: Path) -> None:
        folder.mkdir()
        for language in LANGUAGES:
            text = "".join(f"{line}\n" for line in sentences_of(language))
            (folder / f"{language}.txt").write_text(text, "utf-8")

    return made_once("monolingual", write)


@pytest.fixture(scope="session")
def neighbours_dir(made_once) -> Path:
    """Two documents in each of three languages."""

    def write(folder: Path) -> None:
        folder.mkdir()
        for number, language in enumerate(("en", "ru", "th")):
            lines = [*SENTENCES[number::2], "", *SENTENCES[::3]]
            (folder / f"{language}.txt").write_text("".join(f"{one}\n" for one in lines), "utf-8")

    return made_once("neighbours", write)


@pytest.fixture(scope="session")
def tiny_tree(vocab_file, bitext_dir, monolingual_dir) -> dict:
    """The configuration of the tiny runs, as a tree of plain values."""
    return {
        "seed": 7,
        "tokenizer": {"vocab_file": str(vocab_file)},
        "encoder": {
            "hidden_size": 16,
            "num_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_positions": 128,
            "dropout": 0.0,
            "initializer_range": 0.05,
        },
        # The same on every CPU.
        "compute": {"precision": "float32"},
        "pretrain": {
            "monolingual": [str(monolingual_dir)],
            "bitext": [str(bitext_dir)],
            "sequence_length": 24,
            "batch_size": 8,
            "max_predictions": 5,
            "stage_steps": [3, 3],
            "optimizer": {"learning_rate": 0.0067, "warmup_steps": 1},
            "loop": {"log_interval": 1, "checkpoint_interval": 1},
        },
        "train": {
            "bitext": [str(bitext_dir)],
            "batch_size": 8,
            "bucket_lengths": [16, 32],
            "steps": 4,
            "optimizer": {"learning_rate": 0.0075, "warmup_steps": 1},
            "loop": {"log_interval": 1, "checkpoint_interval": 2},
        },
    }


@pytest.fixture(scope="session")
def config_file(made_once, tiny_tree) -> Path:
    return made_once("tiny.yaml", lambda path: path.write_text(yaml.safe_dump(tiny_tree), "utf-8"))


@pytest.fixture(scope="session")
def tiny_config(config_file):
    """The tiny configuration, its vocabulary size filled in."""
    from labse_tf.config import load_config
    from labse_tf.training.runs.run_dir import resolve

    return resolve(load_config(config_file))


def _command(*arguments: str | Path) -> None:
    from labse_tf.cli.main import main

    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="session")
def pretrained_run(made_once, config_file) -> Path:
    command = ("pretrain", config_file, "--run-dir")
    return made_once("pretrained_run", lambda path: _command(*command, path))


@pytest.fixture(scope="session")
def trained_run(made_once, config_file, pretrained_run) -> Path:
    command = ("train", config_file, "--init", pretrained_run, "--run-dir")
    return made_once("trained_run", lambda path: _command(*command, path))


@pytest.fixture(scope="session")
def static_run(made_once, config_file) -> Path:
    """Of an encoder without layers."""
    sets = ("encoder.num_layers=0", "train.optimizer.learning_rate=0.1", "train.steps=80")
    options = [word for one in sets for word in ("--set", one)]
    command = ("train", config_file, *options, "--run-dir")
    return made_once("static_run", lambda path: _command(*command, path))


@pytest.fixture(scope="session")
def model_dir(made_once, trained_run) -> Path:
    command = ("export", trained_run, "--no-verify", "--out")
    return made_once("model", lambda path: _command(*command, path))


@pytest.fixture(scope="session")
def every_format(made_once, trained_run) -> Path:
    """The same model with the files of Hugging Face, LiteRT and ONNX; no test changes them."""
    command = ("export", trained_run, "--format", "hub,text,hf,lite,onnx", "--no-verify", "--out")
    return made_once("every_format", lambda path: _command(*command, path))


@pytest.fixture(scope="session")
def labse():
    """Runs `labse ARGUMENTS` in a process of its own, at the repository's root."""

    def run(*arguments, **options) -> subprocess.CompletedProcess:
        return forked.run(*forked.LABSE, *arguments, **options)

    return run
