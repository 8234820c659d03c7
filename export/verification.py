"""Checks a model dir in a new process with TensorFlow, TF Text and TF Hub, but without our code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.files.outputs import emptied

CLIENT = Path(__file__).with_name("verification_client.py")
FOLDER, SENTENCES_FILE = "verification", "sentences.txt"
IDS_FILE, VECTORS_FILE = "word_ids.npy", "vectors.npy"

# Embedded with the training graph at export, and with the model dir at each verification.
SENTENCES = (
    "The river rose by 12.5 cm overnight, didn't it?",
    "Größere Straßen führen über den Fluss.",
    "L'élève a déjà reçu ses clés à Noël.",
    "¿Dónde está la estación de tren más cercana?",
    "Съешь ещё немного хлеба, пожалуйста.",
    "Το τρένο φεύγει στις οκτώ.",
    "القطار يصل بعد ساعة.",
    "הספר על השולחן.",
    "明日は雨が降るでしょう。",
    "我们在图书馆见面。",
    "도서관은 몇 시에 열어요?",
    "รถไฟมาถึงช้าไปสิบนาที",
    "मुझे चाय पसंद है।",
    "எனக்கு தேநீர் பிடிக்கும்.",
    "წიგნი მაგიდაზე დევს.",
    "መጽሐፉ ጠረጴዛ ላይ ነው።",
    "Hôm nay trời đẹp quá!",
    "👍🏽 100 % e\u0301 = é",
)


class Check(NamedTuple):
    """The result of a check; `detail` says what was seen, or what is wrong."""

    name: str
    ok: bool
    detail: str


def write_expected(folder: Path, word_ids: np.ndarray, vectors: np.ndarray) -> None:
    """Stores for `verify` what the training graph makes of SENTENCES.

    Args:
      folder: the model dir.
      word_ids: the tokens, `[n, length]`.
      vectors: `[n, dim]`, unit rows.
    """
    (folder / FOLDER).mkdir()
    (folder / FOLDER / SENTENCES_FILE).write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    np.save(folder / FOLDER / IDS_FILE, word_ids.astype(np.int32))
    np.save(folder / FOLDER / VECTORS_FILE, vectors.astype(np.float32))


def verify(
    model_dir: str | os.PathLike[str], report: Callable[[Check], None] = lambda check: None
) -> None:
    """Checks a model dir against the TF-Hub interface.

    Args:
      model_dir: written by `labse export`.
      report: called after each check.

    Raises:
      InputError: if it is not a model dir, or a check fails.
    """
    found = ModelDir(model_dir)
    path = found.path.resolve()
    # Other formats than hub are checked by what is stored for that.
    if not (path / FOLDER / IDS_FILE).is_file() or "hub" in found.facts.get("formats", []):
        found.check_tf_hub()
    checks = []
    # Beside the model dir, where there is space for a copy.
    with emptied(path.with_name(f"{path.name}.verification")) as scratch:
        # -I: no PYTHONPATH, current folder or user site-packages.
        command = [sys.executable, "-I", str(CLIENT), str(path), str(scratch)]
        # On the CPU: this process may hold the GPU's memory, and a GPU's sums are less exact.
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        with (
            open(Path(scratch, "errors"), "w+", encoding="utf-8") as errors,
            subprocess.Popen(
                command,
                cwd=scratch,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            for line in process.stdout:
                checks.append(Check(*json.loads(line).values()))
                report(checks[-1])
        last_line = Path(scratch, "errors").read_text("utf-8").strip().rpartition("\n")[2]
    if process.returncode:
        raise InputError(
            f"cannot be loaded ({last_line or process.returncode})",
            path=model_dir,
            remedy="export it again",
        )
    failed = [check for check in checks if not check.ok]
    if failed:
        raise InputError(
            f"{len(failed)} of {len(checks)} checks failed, first '{failed[0].name}': "
            f"{failed[0].detail}",
            path=model_dir,
            remedy="export it again; if that fails too, report this as a bug",
        )
