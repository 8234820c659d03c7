"""LASER's encoder of 2018 as a model dir without a preprocessor: text is prepared in Python."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from export.encoder import save_encoder
from export.model_dir import asset_file, check_options, describe, write_facts, write_tokens
from export.onnx import save_onnx
from export.packed_table import pack_table
from export.source import Source
from labse_tf.embedding.model_dir import LASER_2018, open_runtime
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_dir
from labse_tf.systems.laser.fast_bpe import FastBpe
from labse_tf.systems.laser.import_laser2 import source_of
from labse_tf.systems.laser.tokenizer import END, PADDING, tokens_of
from labse_tf.systems.laser.tokenizer_2018 import CODES_FILE, VOCAB_FILE
from labse_tf.systems.laser.weights import read_laser

CODES_SUFFIX, VOCAB_SUFFIX = ".fcodes", ".fvocab"
FORMATS = ("hub", "onnx")
# Tables of float16 and int8 give other vectors, but not much.
_LEAST_COSINE = {"float32": 0.99999, "float16": 0.999, "int8": 0.999}


def import_laser_2018(
    weights_file: str | os.PathLike[str],
    codes_file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("hub",),
    table: str = "float32",
    length: int | None = None,
    licence: str | None = None,
    verified: bool = True,
    overwrite: bool = False,
) -> None:
    """Writes a model dir of `encoder` and `tokenizer`, which `labse_tf.load` opens.

    Args:
      weights_file: as for `read_laser`, bilstm.93langs.2018-12-26.pt.
      codes_file: 93langs.fcodes; 93langs.fvocab must be beside it.
      out: the model dir.
      formats: some of FORMATS, hub among them.
      table, length, licence, overwrite: as for `export`.
      verified: check the vectors of the SavedModel, before it is moved into place.

    Raises:
      InputError: if a file is not what it should be, the files do not belong together, a format
        cannot be had, `out` exists, or the check fails.
    """
    if "hub" not in formats or (lacking := set(formats) - set(FORMATS)):
        raise InputError(
            "LASER's encoder of 2018 cannot be written without the format hub"
            if "hub" not in formats
            else f"LASER's encoder of 2018 cannot be written in the format {', '.join(lacking)}: "
            "its text is prepared in Python",
            remedy=f"choose from {', '.join(FORMATS)}",
        )
    found = read_laser(weights_file)
    files = {CODES_FILE: Path(codes_file), VOCAB_FILE: Path(codes_file).with_suffix(VOCAB_SUFFIX)}
    bpe = FastBpe(*files.values())
    unknown = len(bpe.vocabulary - found.dictionary.keys())
    if unknown > len(bpe.vocabulary) / 2:
        raise InputError(
            f"the dictionary of the weights lacks {unknown} of its {len(bpe.vocabulary)} pieces",
            path=files[VOCAB_FILE],
            remedy="use the .fcodes, the .fvocab and the .pt of one model",
        )
    source = source_of(found, tokens_of(found.dictionary), weights_file)
    length = check_options(source, formats=formats, table=table, length=length)
    with whole_dir(out, overwrite=overwrite) as folder:
        with asset_file() as vocab_file:
            write_tokens(vocab_file, source.tokens)
            encoder = pack_table(source, table).encoder
            save_encoder(encoder, folder.resolve() / "encoder", vocab_file=vocab_file)
        for name, file in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, folder / name)
        if "onnx" in formats:
            save_onnx(source, folder, inputs=_random_inputs(source))
        facts = {
            **describe(source, length=length),
            "tokenizer": LASER_2018,
            "formats": list(formats),
            "table": table,
            "licence": licence,
        }
        write_facts(folder, facts, parameters=source.encoder.count_params())
        if verified:
            _check_vectors(source, folder, out, least_cosine=_LEAST_COSINE[table])


def _check_vectors(
    source: Source, folder: Path, out: str | os.PathLike[str], *, least_cosine: float
) -> None:
    """Compares the SavedModel's vectors of random ids."""
    inputs = _random_inputs(source)
    expected = source.encoder(inputs, training=False)["pooled_output"].numpy()
    found = open_runtime(folder / "encoder").run(inputs)
    units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (found, expected)]
    if np.einsum("nd,nd->n", *units).min() < least_cosine:
        raise InputError(
            f"the vectors of the SavedModel differ by {np.abs(found - expected).max():.2g}",
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
