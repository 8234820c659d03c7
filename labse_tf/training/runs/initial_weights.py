"""Initial weights of a run (`--init`): a run, a model dir, or a Hugging Face BERT directory."""

from __future__ import annotations

import dataclasses
import logging
import os
from pathlib import Path

import tensorflow as tf

from labse_tf.config import TrainRun
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file
from labse_tf.files.staging import input_path
from labse_tf.model import exported, huggingface_bert
from labse_tf.model.slots import Slots
from labse_tf.training.runs.checkpoints import Chosen, choose_checkpoint, read_weights
from labse_tf.training.runs.run_dir import Origin, RunDir, open_existing

_log = logging.getLogger("labse")

REPORT = "init.tsv"


@dataclasses.dataclass(frozen=True)
class Fates:
    """Outcome per weight: those `taken` (our name -> their name), and those of theirs `left` over.

    `checkpoint` is the checkpoint they come from, if the origin is a run.
    """

    taken: dict[str, str]
    left: list[str]
    checkpoint: Chosen | None = None


def open_origin(path: str | os.PathLike[str], checkpoint: str | None = None) -> Origin:
    """Returns the description of a run's origin, before TensorFlow creates anything.

    Args:
      path: the origin's folder.
      checkpoint: which checkpoint of a run, as for `choose_checkpoint`.

    Raises:
      InputError: if the folder is neither a run nor a model dir nor a Hugging Face BERT.
    """
    path = Path(input_path(path))
    format_ = _format_of(path)
    if format_ is None:
        run = open_existing(path)
        return Origin(path, run.vocab_file, run.config.encoder, checkpoint)
    if checkpoint is not None:
        raise InputError(
            "is not a run: it has no checkpoints to choose from",
            path=path,
            remedy="leave --init-checkpoint out",
        )
    config = format_.read_encoder_config(path)
    return Origin(path, format_.vocab_file(path), config)


def _format_of(path: Path):
    """Returns the module that reads the folder's weights, None for a run."""
    is_huggingface = (path / huggingface_bert.CONFIG_FILE).is_file()
    is_hub = (path / "encoder").exists() or not is_huggingface
    # A model dir in Hugging Face format only has a model.json too, but no encoder/.
    if (path / exported.FACTS_FILE).is_file() and is_hub:
        return exported
    if is_huggingface:
        return huggingface_bert
    return None


def restore(origin: Origin, encoder, head=None, slots: Slots | None = None) -> Fates:
    """Loads all weights that the origin has for `encoder`, `head` (an MLM head) and `slots`.

    Slots of another number are not taken.

    Raises:
      InputError: if weights of the encoder are missing or do not fit.
    """
    parts = {"encoder": encoder, "head": head, "slots": slots}
    parts = {name: part for name, part in parts.items() if part is not None}
    # Each once: the head also has the embedding table.
    found = (variable for part in parts.values() for variable in part.variables)
    variables = list({id(variable): variable for variable in found}.values())
    format_ = _format_of(origin.path)
    if format_ is None:
        fates = _restore_run(origin, parts)
    else:
        fates = Fates(*format_.restore(origin.path, variables))
    missing = [v.name for v in encoder.variables if v.name not in fates.taken]
    # BertForMaskedLM has no pooler: it is then initialised randomly, as the head may be.
    missing = [name for name in missing if "pooler" not in name]
    if missing:
        raise InputError(
            f"has no {', '.join(missing)}",
            path=origin.path,
            remedy="take a folder with all weights of the encoder",
        )
    return fates


def write_report(fates: Fates, origin: Origin, variables, run_dir: RunDir) -> None:
    """Writes the outcome for each weight to the run's `init.tsv`, and logs a summary.

    An existing `init.tsv` is kept: the run is being resumed.
    """
    if (run_dir.path / REPORT).exists():
        _log.info("resuming; %s lists the initial weights", run_dir.path / REPORT)
        return
    fresh = [variable.name for variable in variables if variable.name not in fates.taken]
    rows = [f"taken\t{ours}\t{theirs}" for ours, theirs in fates.taken.items()]
    rows += [f"left\t\t{theirs}" for theirs in fates.left]
    rows += [f"fresh\t{ours}\t" for ours in fresh]
    with whole_file(run_dir.path / REPORT) as partial:
        partial.write_text("\n".join(["fate\there\tthere", *rows]) + "\n", encoding="utf-8")
    _log.info(
        "--init %s: %d weights taken, %d left over, %d initialised randomly; listed in %s",
        origin.path,
        len(fates.taken),
        len(fates.left),
        len(fresh),
        run_dir.path / REPORT,
    )


def _restore_run(origin: Origin, parts: dict[str, tf.Module]) -> Fates:
    run = open_existing(origin.path)
    chosen = choose_checkpoint(run, origin.checkpoint)
    path = chosen.path
    saved = {name for name, _ in tf.train.list_variables(path)}
    if "slots" in parts and run.read_config(TrainRun).pretrain.slots != parts["slots"].count:
        parts = {name: part for name, part in parts.items() if name != "slots"}
    taken = {
        name: part
        for name, part in parts.items()
        if any(one.startswith(f"{name}/") for one in saved)
    }
    read_weights(run, path, **taken)
    restored = [variable.name for part in taken.values() for variable in part.variables]
    left = {name.split("/.ATTRIBUTES")[0] for name in saved if name.split("/")[0] not in taken}
    return Fates({name: name for name in restored}, sorted(left), chosen)
