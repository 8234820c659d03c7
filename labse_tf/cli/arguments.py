"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

MODEL_HELP = (
    "a model dir, an encoder in it (onnx/model.onnx, lite/encoder_int8.tflite), a "
    "sentence-transformers folder or name, or module:attribute of a Python object with encode"
)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="files, folders or globs")


def _add_number(
    parser: argparse.ArgumentParser, *names: str, default: float, help: str, metavar: str = "N"
) -> None:
    help += " (default: %(default)s)"
    parser.add_argument(*names, type=type(default), default=default, metavar=metavar, help=help)


def add_filter_job(
    parser: argparse.ArgumentParser, kind: str, *, max_per_language: int = 0
) -> None:
    """Adds the arguments common to both filter jobs, and the options of the filters for `kind`."""
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    help_ = "approximate uncompressed input per shard; a worker needs up to 25 times as much memory"
    _add_number(parser, "--shard-megabytes", default=50, help=help_, metavar="MB")
    help_ = "keep at most N records per language, a random sample of those that pass; 0 keeps all"
    _add_number(parser, "--max-per-language", default=max_per_language, help=help_)
    parser.add_argument(
        "--max-bad-records",
        type=int,
        default=0,
        metavar="N",
        help="drop up to N records that cannot be read, such as lines of invalid UTF-8; a "
        "truncated file counts as one (default: %(default)s, the first ends the job)",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="also write DIR/scores/<lang>/*.parquet: the scores of all filters for every record",
    )
    parser.add_argument(
        "--from-scores",
        action="store_true",
        help="INPUTs are `scores` folders: apply other limits to them, without scoring again",
    )
    help_ = "write N random examples per reason to DIR/examples.md"
    _add_number(parser, "--examples", default=10, help=help_)
    _add_number(parser, "--seed", default=0, help="seed of the random samples")
    add_normalize(parser)
    add_overwrite(parser)
    _add_filters(parser, kind)


def add_normalize(parser: argparse.ArgumentParser) -> None:
    """Adds --normalize."""
    parser.add_argument(
        "--normalize",
        choices=["NFC", "NFKC", "NFD", "NFKD"],
        help="bring texts to this form of Unicode first; NFC makes one of a letter and its marks, "
        "as most text has them (default: leave texts as they are, as LaBSE does)",
    )


def _add_filters(parser: argparse.ArgumentParser, kind: str) -> None:
    """Adds the options that the filters declare, in the order they run in; then --filter."""
    from beam_pipelines.filtering.choose_filters import find_filters, options_of

    keywords = []
    for option in (option for found in find_filters(kind) for option in options_of(found, kind)):
        keywords.append(option.keyword)
        if option.metavar is None:
            parser.add_argument(option.name, action="store_true", help=option.help)
        else:
            default = "" if option.default is None else f" (default: {option.default})"
            parser.add_argument(
                option.name, type=option.type, metavar=option.metavar, help=option.help + default
            )
    parser.set_defaults(filter_keywords=keywords)
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        dest="filters",
        type=str,
        metavar="MODULE:NAME[=X]",
        help="drop also what this filter of yours does not accept, at the threshold X; found from "
        "the current folder, see docs/corpora.md; may be repeated",
    )


def filter_job_options(args: argparse.Namespace) -> dict:
    """Returns the arguments of `add_filter_job`, except paths, as options of the filter jobs."""
    names = ("max_bad_records", "scores", "from_scores", "examples", "seed")
    names = (*names, "normalize", "overwrite", "filters", *args.filter_keywords)
    return {
        "megabytes_per_shard": args.shard_megabytes,
        "max_per_language": args.max_per_language or None,
        "beam_options": args.beam_options,
        **{name: getattr(args, name) for name in names},
    }


def strategy_options(args: argparse.Namespace) -> dict:
    """Returns the strategy arguments of `add_run` as options of `launch`."""
    names = ("strategy", "tpu", "logical_cpus", "overwrite")
    return {name: getattr(args, name) for name in names}


def add_init(parser: argparse.ArgumentParser) -> None:
    """Adds --init and --init-checkpoint."""
    parser.add_argument(
        "--init",
        metavar="DIR",
        help="start from the weights of this run, this model dir (the --out of `labse export`), or "
        "this Hugging Face BERT (a folder with config.json, vocab.txt and model.safetensors); "
        "init.tsv lists the weights that were copied",
    )
    add_checkpoint(parser, "--init-checkpoint")


def add_model_dir_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every export: --out, --format, --length, --no-verify, --overwrite."""
    parser.add_argument("--out", required=True, metavar="MODEL_DIR", help="the model dir to write")
    parser.add_argument(
        "--format",
        default="hub,text",
        dest="formats",
        metavar="FORMATS",
        help="comma-separated: hub: SavedModels with the TF-Hub interface; text: a SavedModel from "
        "strings to unit vectors, with a second copy of the weights; hf: for "
        "transformers.BertModel and SentenceTransformer(MODEL_DIR); lite: LiteRT, int8; onnx: "
        "float32 and int8 (default: %(default)s)",
    )
    parser.add_argument(
        "--table",
        default="float32",
        metavar="TYPE",
        help="type of the embedding table in the SavedModels: float32 (default), float16 or int8; "
        "the last two cannot be trained",
    )
    parser.add_argument(
        "--length",
        type=int,
        metavar="TOKENS",
        help="static length of the preprocessor's output (default 128, or encoder.max_positions if "
        "that is smaller)",
    )
    parser.add_argument(
        "--licence", type=str, metavar="TEXT", help="licence of the model, for the model card"
    )
    parser.add_argument(
        "--results",
        nargs="+",
        default=[],
        metavar="FILE.json",
        help="of `labse eval`, for the card",
    )
    parser.add_argument("--no-verify", action="store_true", help="skip `labse verify`")
    add_overwrite(parser)


def parse_languages(codes: str | None) -> list[str]:
    """Returns the languages of an option such as `--languages en,de`."""
    from labse_tf.languages import require_code

    return [require_code(code.strip()) for code in (codes or "").split(",") if code.strip()]


def add_languages(parser: argparse.ArgumentParser) -> None:
    """Adds --languages and --language-text, which restrict a model to some languages."""
    parser.add_argument(
        "--languages",
        metavar="CODES",
        help="keep only the pieces that these languages need, such as en,de: those that occur in "
        "--language-text, or without it all in the languages' scripts",
    )
    parser.add_argument(
        "--language-text",
        action="append",
        metavar="INPUT",
        help="corpus in these languages, <lang>.txt or <lang>.tsv, optionally compressed; may be "
        "repeated",
    )


def add_checkpoint(parser: argparse.ArgumentParser, option: str) -> None:
    """Adds the option that selects which checkpoint of a run is read."""
    parser.add_argument(
        option,
        choices=["best", "latest"],
        help="checkpoint of that run: the best on its dev pairs, or the newest (default: the best, "
        "if the run has one)",
    )


def read_config(args: argparse.Namespace, overrides: Sequence[str] = ()):
    """Returns the configuration of --set and CONFIG; `overrides` are further ones.

    Raises:
      InputError: as `load_config` and `check_warmup`.
    """
    from labse_tf.config import check_warmup, load_config

    module, _, name = args.config_kind.partition(":")
    kind = getattr(importlib.import_module(module), name)
    config = load_config(args.config, [*getattr(args, "overrides", ()), *overrides], kind)
    check_warmup(config, path=args.config)
    return config


def add_config(parser: argparse.ArgumentParser) -> None:
    """Adds CONFIG."""
    parser.add_argument("config", metavar="CONFIG", help="a YAML preset, see configs/")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Adds --set."""
    parser.add_argument(
        "--set",
        type=str,
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="override a configuration key; may be repeated",
    )


def add_training(parser: argparse.ArgumentParser, kind: str) -> None:
    """Adds CONFIG and the arguments of `add_run`."""
    add_config(parser)
    add_run(parser, kind)


def add_run(parser: argparse.ArgumentParser, kind: str, *, required: bool = True) -> None:
    """Adds --run-dir, --set, the strategy options and --overwrite.

    `kind` is the class of the command's configuration, as `module:attribute`.
    """
    parser.set_defaults(config_kind=kind)
    parser.add_argument(
        "--run-dir",
        required=required,
        metavar="DIR",
        help="folder of the run; an existing run is resumed",
    )
    add_overrides(parser)
    parser.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="auto (default), one_device, mirrored, multi_worker (reads TF_CONFIG) or tpu; auto: "
        "tpu with --tpu or on a TPU VM, multi_worker with TF_CONFIG, mirrored with several GPUs",
    )
    parser.add_argument(
        "--tpu",
        type=str,
        default="",
        metavar="NAME",
        help="name or address of the TPU; not needed on a TPU VM",
    )
    parser.add_argument(
        "--logical-cpus",
        type=int,
        default=0,
        metavar="N",
        help="with --strategy mirrored: N replicas on this machine's CPU",
    )
    add_overwrite(parser)


def add_vocabulary(parser: argparse.ArgumentParser, *, size: int) -> None:
    """Adds --out, --vocab-size, of which `size` is the default, and --smoothing-exponent."""
    parser.add_argument("--out", required=True, metavar="FILE", help="vocabulary file to write")
    _add_number(parser, "--vocab-size", default=size, help="maximum number of tokens")
    help_ = "0: all languages count the same; 1: in proportion to their text"
    _add_number(parser, "--smoothing-exponent", default=0.3, help=help_, metavar="X")


def add_model_name(parser: argparse.ArgumentParser) -> None:
    """Adds MODEL, a name that `labse_tf.embedding.open.open_encoder` accepts."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)


def add_dim(parser: argparse.ArgumentParser) -> None:
    """Adds --dim, for `labse_tf.embedding.open.open_encoder`."""
    parser.add_argument(
        "--dim",
        type=int,
        metavar="N",
        help="keep the first N columns of the vectors, scaled to unit length again; for models "
        "trained with train.matryoshka (default: all)",
    )


def add_search(parser: argparse.ArgumentParser) -> None:
    """Adds -k, --index and --recall, the settings of the nearest-neighbour search."""
    help_ = "neighbours of a sentence on the other side, for the margin"
    _add_number(parser, "-k", "--neighbours", default=4, help=help_)
    parser.add_argument(
        "--index",
        default="auto",
        metavar="NAME",
        help="exact: compare all pairs; approximate: only likely neighbours; auto (default): exact "
        "up to 10^11 comparisons, such as 300,000 x 300,000",
    )
    help_ = "share of true neighbours that an approximate search should find"
    _add_number(parser, "--recall", default=0.95, help=help_, metavar="X")
