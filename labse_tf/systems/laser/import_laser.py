"""LASER's published encoders as model dirs: LASER2, and the encoder of 2018."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from export.model_dir import asset_file, check_options, describe, export, write_facts
from export.onnx import save_onnx
from export.saved_models import save_encoder
from export.source import Source
from export.transforms import pack_table
from labse_tf.config import BILSTM, MAX, EncoderConfig
from labse_tf.embedding.model_dir import LASER_2018
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_dir
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.laser.tokenizers import (
    CODES_FILE,
    END,
    VOCAB_FILE,
    FastBpe,
    LaserTokenizer,
    check_dictionary,
    pack_segments,
    tokens_of,
)
from labse_tf.systems.laser.torch_files import read_torch_file

CODES_SUFFIX, VOCAB_SUFFIX = ".fcodes", ".fvocab"
FORMATS = ("hub", "onnx")  # The encoder of 2018 has no others.
# LASER itself sets no limit. Longer texts are cut.
MAX_POSITIONS = 512
_REMEDY = "name laser2.pt or bilstm.93langs.2018-12-26.pt"

_Path = str | os.PathLike[str]


def import_laser(weights_file: _Path, pieces_file: _Path, out: _Path, **options: Any) -> None:
    """Writes a model dir of LASER2, from laser2.pt and its model of SentencePiece.

    Options and errors are as for `export`; InputError also if a file is not what it should be.
    """
    source, dictionary = _read_laser(weights_file)
    tokenizer = LaserTokenizer(pieces_file, dictionary)
    export(dataclasses.replace(source, tokenizer=tokenizer), out, **options)


def import_laser_2018(
    weights_file: _Path,
    codes_file: _Path,
    out: _Path,
    *,
    formats: Sequence[str] = ("hub",),
    table: str = "float32",
    length: int | None = None,
    licence: str | None = None,
    overwrite: bool = False,
) -> None:
    """Writes a model dir of `encoder` and `tokenizer`, which `labse_tf.load` opens.

    The files are bilstm.93langs.2018-12-26.pt and 93langs.fcodes, next to which 93langs.fvocab must
    be. `formats` are some of FORMATS, hub among them; other options are as for `export`.

    Raises InputError if a file is not what it should be, the files do not belong together, a format
    cannot be had, or `out` exists.
    """
    if "hub" not in formats or not set(formats) <= set(FORMATS):
        raise InputError(
            f"LASER's encoder of 2018 cannot be written as {','.join(formats)}: its text is "
            "prepared in Python",
            remedy="choose hub, or hub,onnx",
        )
    source, dictionary = _read_laser(weights_file)
    files = {CODES_FILE: Path(codes_file), VOCAB_FILE: Path(codes_file).with_suffix(VOCAB_SUFFIX)}
    pieces = FastBpe(*files.values()).vocabulary
    check_dictionary(list(pieces), dictionary, files[VOCAB_FILE])
    length = check_options(source, formats=formats, table=table, length=length)
    with whole_dir(out, overwrite=overwrite) as folder:
        with asset_file(source.tokens, folder) as (vocab_file, absolute):
            encoder = pack_table(source, table).encoder
            save_encoder(encoder, absolute / "encoder", vocab_file=vocab_file)
        for name, file in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, folder / name)
        if "onnx" in formats:
            ids = tf.reshape(tf.range(END + 1, END + 25) % source.config.vocab_size, [2, 12])
            save_onnx(source, folder, inputs=pack_segments([tf.RaggedTensor.from_tensor(ids)], 13))
        facts = {
            **describe(source, length=length),
            "tokenizer": LASER_2018,
            "formats": list(formats),
            "table": table,
            "licence": licence,
        }
        write_facts(folder, facts, parameters=source.encoder.count_params())


def _read_laser(path: _Path) -> tuple[Source, dict[str, int]]:
    """Reads laser2.pt, the encoder of 2018, or another of their layout; and ids by token.

    Raises InputError for another file, such as a LASER3, or a damaged one.
    """

    def require(fits: bool, problem: str) -> None:
        if not fits:
            raise InputError(problem, path=path, remedy=_REMEDY)

    content = read_torch_file(path)
    content = content if isinstance(content, dict) else {}
    parts = [content.get(name) for name in ("params", "model", "dictionary")]
    require(all(isinstance(one, dict) for one in parts), "is no encoder of LASER")
    params, model, dictionary = parts
    sizes = ("num_embeddings", "embed_dim", "hidden_size", "num_layers")
    fits = all(isinstance(params.get(one), int) and params[one] > 0 for one in sizes)
    fits = fits and params.get("bidirectional") is True and params.get("padding_idx") == 1
    require(fits, f"has other parameters than LASER's encoders: {params}")
    config = EncoderConfig(
        network=BILSTM,
        vocab_size=params["num_embeddings"],
        embedding_size=params["embed_dim"],
        hidden_size=2 * params["hidden_size"],
        num_layers=params["num_layers"],
        max_positions=MAX_POSITIONS,
        dropout=0.0,
        initializer_range=0.1,
        pooling=MAX,
    )
    left = dict(model)
    weights, tokens = _rename(left, config, path), tokens_of(dictionary)
    require(not left, f"has weights that LASER's encoders lack: {', '.join(sorted(left))}")
    fits = len(tokens) <= config.vocab_size
    require(fits, f"has {len(tokens)} tokens and {config.vocab_size} vectors")
    encoder = build_encoder(config)
    for variable in encoder.variables:
        variable.assign(weights[variable.name])
    facts = {"max_bytes_per_word": 0, "languages": None, "training": None}
    return Source(encoder, config, tokens, **facts), dict(dictionary)


def _rename(left: dict[str, Any], config: EncoderConfig, path: _Path) -> dict[str, np.ndarray]:
    """Takes LASER's weights out of `left`; returns ours, transposed, with the sum of two biases."""

    def take(name: str, *shape: int) -> np.ndarray:
        found = left.pop(name, None)
        if getattr(found, "shape", None) != shape:
            raise InputError(f"has no {name} of {list(shape)}", path=path, remedy=_REMEDY)
        return found.astype(np.float32)

    table = take("embed_tokens.weight", config.vocab_size, config.token_size)
    weights = {"encoder/word_embeddings/embeddings:0": table}
    units, width = config.hidden_size // 2, config.token_size
    for layer in range(config.num_layers):
        for direction, suffix in (("forward", ""), ("backward", "_reverse")):
            theirs = f"l{layer}{suffix}"
            ours = f"encoder/lstm/layer_{layer}/{direction}/lstm_cell"
            biases = [take(f"lstm.bias_{kind}_{theirs}", 4 * units) for kind in ("ih", "hh")]
            weights |= {
                f"{ours}/kernel:0": take(f"lstm.weight_ih_{theirs}", 4 * units, width).T,
                f"{ours}/recurrent_kernel:0": take(f"lstm.weight_hh_{theirs}", 4 * units, units).T,
                f"{ours}/bias:0": sum(biases),
            }
        width = config.hidden_size
    return weights
