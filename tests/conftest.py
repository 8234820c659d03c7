"""What the tests share: a tiny vocabulary, tiny corpora, one tiny trained run and its model dir."""

from __future__ import annotations

import os

# Before anything imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent

# English, then the same animals and things in each language; templates below.
_ANIMALS = {
    "en": ["cat", "dog", "bird", "horse", "fish", "cow", "mouse", "wolf"],
    "de": ["Katze", "Hund", "Vogel", "Pferd", "Fisch", "Kuh", "Maus", "Wolf"],
    "fr": ["chat", "chien", "oiseau", "cheval", "poisson", "vache", "souris", "loup"],
    "ja": ["猫", "犬", "鳥", "馬", "魚", "牛", "鼠", "狼"],
    "ar": ["قطة", "كلب", "طائر", "حصان", "سمكة", "بقرة", "فأر", "ذئب"],
    "th": ["แมว", "หมา", "นก", "ม้า", "ปลา", "วัว", "หนู", "หมาป่า"],
    "ru": ["кошка", "собака", "птица", "лошадь", "рыба", "корова", "мышь", "волк"],
}
_THINGS = {
    "en": ["house", "tree", "river", "moon", "bread", "book"],
    "de": ["Haus", "Baum", "Fluss", "Mond", "Brot", "Buch"],
    "fr": ["maison", "arbre", "rivière", "lune", "pain", "livre"],
    "ja": ["家", "木", "川", "月", "パン", "本"],
    "ar": ["بيت", "شجرة", "نهر", "قمر", "خبز", "كتاب"],
    "th": ["บ้าน", "ต้นไม้", "แม่น้ำ", "พระจันทร์", "ขนมปัง", "หนังสือ"],
    "ru": ["дом", "дерево", "река", "луна", "хлеб", "книга"],
}
_TEMPLATES = {
    "en": "{} and {}.",
    "de": "{} und {}.",
    "fr": "{} et {}.",
    "ja": "{}と{}。",
    "ar": "{} و{}.",
    "th": "{}กับ{}",
    "ru": "{} и {}.",
}
FOREIGN = ("ar", "de", "fr", "ja", "ru", "th")

# One sentence a script, and what trips tokenisers: accents, joined marks, emoji, digits, long runs.
SENTENCES = (
    "The cat sees the house, doesn't it?",
    "Größe, Straße und Übermut kosten 12,50 €.",
    "L'été à Noël: déjà vu, garçon naïf.",
    "Tiếng Việt có nhiều dấu thanh.",
    "Съешь ещё этих мягких французских булок.",
    "Η γρήγορη αλεπού πηδάει.",
    "القطة ترى البيت الكبير.",
    "השועל המהיר קופץ.",
    "猫は家を見ます。カタカナも。",
    "我能吞下玻璃而不伤身体。",
    "한국어 문장입니다.",
    "แมวเห็นบ้านหลังใหญ่",
    "बिल्ली घर देखती है।",
    "பூனை வீட்டைப் பார்க்கிறது.",
    "ქართული ენა",
    "አማርኛ ቋንቋ ነው።",
    "e\u0301 is not é, and 👍🏽 is one sign.",
)


def sentences_of(language: str) -> list[str]:
    """The 48 sentences of a language; the same index is the same meaning in every language."""
    template = _TEMPLATES[language]
    return [
        template.format(animal, thing)
        for animal in _ANIMALS[language]
        for thing in _THINGS[language]
    ]


@pytest.fixture(scope="session")
def multilingual_sentences() -> tuple[str, ...]:
    return SENTENCES


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory) -> Path:
    """The reserved tokens and every character of the corpora, alone and as a continuation."""
    from vocab import wordpiece_file

    texts = [*SENTENCES, *(text for language in _TEMPLATES for text in sentences_of(language))]
    characters = sorted(set("".join(texts)) - set(" \t\n"))
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    continuations = [f"##{character}" for character in characters]
    wordpiece_file.write(path, [*wordpiece_file.RESERVED_TOKENS, *characters, *continuations])
    return path


@pytest.fixture(scope="session")
def tokenizer(vocab_file):
    from labse_tf.tokenization import Tokenizer

    return Tokenizer(vocab_file, max_bytes_per_word=600)


@pytest.fixture(scope="session")
def bitext_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bitext")
    for language in FOREIGN:
        pairs = zip(sentences_of("en"), sentences_of(language), strict=True)
        lines = "".join(f"{english}\t{foreign}\n" for english, foreign in pairs)
        (folder / f"{language}.tsv").write_text(lines, "utf-8")
    return folder


@pytest.fixture(scope="session")
def monolingual_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("monolingual")
    for language in _TEMPLATES:
        text = "".join(f"{line}\n" for line in sentences_of(language))
        (folder / f"{language}.txt").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="session")
def tiny_tree(vocab_file, bitext_dir, monolingual_dir) -> dict:
    """The configuration of the tiny runs, as a tree of plain values."""
    return {
        "seed": 7,
        "tokenizer": {"vocab_file": str(vocab_file)},
        "encoder": {
            "hidden_size": 16,
            "num_layers": 4,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_positions": 128,
            "dropout": 0.0,
        },
        "pretrain": {
            "monolingual": [str(monolingual_dir)],
            "bitext": [str(bitext_dir)],
            "sequence_length": 24,
            "batch_size": 8,
            "max_predictions": 5,
            "stage_steps": [3, 3, 3],
            "optimizer": {"learning_rate": 0.01, "warmup_steps": 1},
            "loop": {"log_interval": 1, "checkpoint_interval": 1},
        },
        "train": {
            "bitext": [str(bitext_dir)],
            "batch_size": 8,
            "bucket_lengths": [16, 24, 32],
            "steps": 4,
            "optimizer": {"learning_rate": 0.01, "warmup_steps": 1},
            "loop": {"log_interval": 1, "checkpoint_interval": 2},
        },
    }


@pytest.fixture(scope="session")
def config_file(tmp_path_factory, tiny_tree) -> Path:
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny_tree), "utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_config(config_file):
    """The tiny configuration, its vocabulary size filled in."""
    from labse_tf.config_file import load_config
    from labse_tf.training.run_dir import resolve

    return resolve(load_config(config_file))


@pytest.fixture(scope="session")
def pretrained_run(tmp_path_factory, config_file) -> Path:
    from labse_tf.cli.main import main

    path = tmp_path_factory.mktemp("runs") / "pretrain"
    assert main(["pretrain", str(config_file), "--run-dir", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory, config_file, pretrained_run) -> Path:
    from labse_tf.cli.main import main

    path = tmp_path_factory.mktemp("runs") / "train"
    arguments = ["train", str(config_file), "--run-dir", str(path), "--init", str(pretrained_run)]
    assert main(arguments) == 0
    return path


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory, trained_run) -> Path:
    from labse_tf.cli.main import main

    path = tmp_path_factory.mktemp("models") / "model"
    assert main(["export", str(trained_run), "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def labse():
    """Runs `labse ARGUMENTS` in a new process, at the repository's root."""

    def run(*arguments, **kwargs) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "labse_tf.cli.main", *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=300, **kwargs
        )

    return run
