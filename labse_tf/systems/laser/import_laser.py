"""LASER's published encoders as model dirs: LASER2, and the encoder of 2018.

The latter has no preprocessor: text is prepared in Python.
"""

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
from labse_tf.embedding.model_dir import LASER_2018, open_runtime
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_dir
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.laser.tokenizers import (
    CODES_FILE,
    END,
    PADDING,
    VOCAB_FILE,
    FastBpe,
    LaserTokenizer,
    check_dictionary,
    tokens_of,
)
from labse_tf.systems.laser.torch_files import UnknownNameError, read_torch_file

CODES_SUFFIX, VOCAB_SUFFIX = ".fcodes", ".fvocab"
FORMATS = ("hub", "onnx")  # The encoder of 2018 has no others.
# LASER itself sets no limit. Longer texts are cut.
MAX_POSITIONS = 512
# Tables of float16 and int8 give other vectors, but not much.
_LEAST_COSINE = {"float32": 0.99999, "float16": 0.999, "int8": 0.999}
_REMEDY = "name laser2.pt or bilstm.93langs.2018-12-26.pt"
# Modules that a checkpoint of fairseq names.
_OF_FAIRSEQ = ("argparse", "omegaconf", "fairseq")

_Path = str | os.PathLike[str]


def import_laser(weights_file: _Path, pieces_file: _Path, out: _Path, **options: Any) -> None:
    """Writes a model dir of LASER2, from laser2.pt and its model of SentencePiece.

    Options are as for `export`.

    Raises:
      InputError: if a file is not what it should be, or as `export` raises.
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
    verified: bool = True,
    overwrite: bool = False,
) -> None:
    """Writes a model dir of `encoder` and `tokenizer`, which `labse_tf.load` opens.

    The files are bilstm.93langs.2018-12-26.pt and 93langs.fcodes, beside which 93langs.fvocab must
    be. `formats` are some of FORMATS, hub among them; other options are as for `export`. If
    `verified`, the vectors of the SavedModel are checked before it is moved into place.

    Raises:
      InputError: if a file is not what it should be, the files do not belong together, a format
        cannot be had, `out` exists, or the check fails.
    """
    lacking = set(formats) - set(FORMATS)
    if "hub" not in formats or lacking:
        problem = "without the format hub"
        if "hub" in formats:
            problem = f"in the format {', '.join(lacking)}: its text is prepared in Python"
        raise InputError(
            f"LASER's encoder of 2018 cannot be written {problem}",
            remedy=f"choose from {', '.join(FORMATS)}",
        )
    source, dictionary = _read_laser(weights_file)
    files = {CODES_FILE: Path(codes_file), VOCAB_FILE: Path(codes_file).with_suffix(VOCAB_SUFFIX)}
    pieces = FastBpe(*files.values()).vocabulary
    remedy = "use the .fcodes, the .fvocab and the .pt of one model"
    check_dictionary(list(pieces), dictionary, files[VOCAB_FILE], remedy=remedy)
    length = check_options(source, formats=formats, table=table, length=length)
    with whole_dir(out, overwrite=overwrite) as folder:
        with asset_file(source.tokens) as vocab_file:
            encoder = pack_table(source, table).encoder
            save_encoder(encoder, folder.resolve() / "encoder", vocab_file=vocab_file)
        for name, file in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, folder / name)
        inputs = _random_inputs(source)
        if "onnx" in formats:
            save_onnx(source, folder, inputs=inputs)
        facts = {
            **describe(source, length=length),
            "tokenizer": LASER_2018,
            "formats": list(formats),
            "table": table,
            "licence": licence,
        }
        write_facts(folder, facts, parameters=source.encoder.count_params())
        if not verified:
            return
        expected = source.encoder(inputs, training=False)["pooled_output"].numpy()
        saved = open_runtime(folder / "encoder").run(inputs)
        units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (saved, expected)]
        if np.einsum("nd,nd->n", *units).min() < _LEAST_COSINE[table]:
            raise InputError(
                f"the vectors of the SavedModel differ by {np.abs(saved - expected).max():.2g}",
                path=out,
                remedy="import it again; if that fails too, report this as a bug",
            )


def _random_inputs(source: Source) -> dict[str, tf.Tensor]:
    """Returns random ids, in rows of several lengths."""
    rows = np.random.default_rng(0).integers(END + 1, source.config.vocab_size, (4, 12))
    mask = np.arange(12) < np.array([[12], [7], [2], [1]])
    inputs = {
        "input_word_ids": np.where(mask, rows, PADDING),
        "input_mask": mask,
        "input_type_ids": np.zeros_like(rows),
    }
    return {name: tf.constant(value, tf.int32) for name, value in inputs.items()}


def _read_laser(path: _Path) -> tuple[Source, dict[str, int]]:
    """Reads laser2.pt, the encoder of 2018, or another of their layout; and ids by token.

    Raises:
      InputError: if it is another file (a LASER3, a checkpoint of fairseq), or damaged.
    """

    def refuse(problem: str) -> InputError:
        return InputError(problem, path=path, remedy=_REMEDY)

    try:
        content = read_torch_file(path)
    except UnknownNameError as error:
        if error.name.split(".")[0] not in _OF_FAIRSEQ:
            raise
        raise refuse(
            f"is a checkpoint of fairseq (it names {error.name}), such as LASER3, whose encoder is "
            "a Transformer"
        ) from error
    content = content if isinstance(content, dict) else {}
    parts = [content.get(name) for name in ("params", "model", "dictionary")]
    if not all(isinstance(one, dict) for one in parts):
        is_laser3 = "is a LASER3, whose encoder is a Transformer"
        raise refuse(is_laser3 if "cfg" in content else "is no encoder of LASER")
    params, model, dictionary = parts
    sizes = ("num_embeddings", "embed_dim", "hidden_size", "num_layers")
    positive = all(isinstance(params.get(one), int) and params[one] > 0 for one in sizes)
    if not positive or params.get("bidirectional") is not True or params.get("padding_idx") != 1:
        raise refuse(f"has other parameters than LASER's encoders: {params}")
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
    weights = _rename(left, config, path)
    if left:
        raise refuse(f"has weights that LASER's encoders lack: {', '.join(sorted(left))}")
    tokens = tokens_of(dictionary)
    if len(tokens) > config.vocab_size:
        problem = f"has {len(tokens)} tokens and {config.vocab_size} vectors"
        raise InputError(problem, path=path, remedy="fetch it again")
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
            problem, remedy = (
                f"has no {name} of {list(shape)}",
                "fetch it again, or name another file",
            )
            raise InputError(problem, path=path, remedy=remedy)
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
