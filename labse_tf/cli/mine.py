"""`labse mine`."""

from __future__ import annotations

import argparse
import dataclasses

from labse_tf.cli.arguments import DIM, MODEL_HELP, OVERWRITE, SEARCH, add_options

EXAMPLES = """examples:
  labse mine model news.de.txt news.en.txt --out pairs.tsv
  labse mine model news.de.txt.gz news.en.txt.gz --out pairs.tsv --threshold 1.06
  labse mine model dev.de.txt dev.en.txt --out pairs.tsv --gold dev.gold.tsv --report report.json
  labse embed model news.de.txt --out de.npy
  labse embed model news.en.txt --out en.npy
  labse mine news.de.txt news.en.txt --embeddings de.npy en.npy --out pairs.tsv
  labse mine news.de.txt news.en.txt --embeddings de.bin.npy en.bin.npy --rescore de.npy en.npy \\
      --out pairs.tsv

SOURCE and TARGET have one sentence per line, plain, .gz, .xz, .bz2 or .zst. pairs.tsv has the
columns score, source and target, the best first. Equal sentences of a side count once; empty lines
are skipped. Finished work is kept in pairs.tsv.work: to resume an interrupted job, run the same
command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="MODEL SOURCE TARGET",
        help=f"the model ({MODEL_HELP}), and two files of sentences; no MODEL with --embeddings",
    )
    add_options(
        parser,
        """
        --out PAIRS.tsv!
        --embeddings SOURCE.npy TARGET.npy: one vector per line of the files, from `labse embed`; no
          model is loaded
        """,
        DIM,
        """
        --rescore SOURCE.npy TARGET.npy: float32, float16 or int8 vectors of the same lines: of the
          neighbours found with quantised --embeddings, keep the nearest by these, with their
          similarities
        --candidates N: with --rescore: candidates per sentence (default: 16 times --neighbours for
          binary --embeddings, otherwise twice)
        """,
        SEARCH,
        """
        --margin {ratio,distance,absolute}=ratio: ratio (default) or distance: the similarity of a
          pair relative to the mean over its neighbours; absolute: the similarity itself
        --retrieval {forward,backward,intersection,max}=max: forward: the best target of each
          source; backward: the best source of each target; intersection: pairs found in both
          directions; max (default): pairs found in either, the higher score first
        --[no-]one-to-one: use each sentence in at most one pair, the best one left (default with
          max)
        --threshold X: keep pairs with this score or above
        --gold FILE.tsv: known pairs as line numbers of source and target, from 1: prints precision,
          recall and F1, at the threshold with the best F1 unless --threshold is given
        --report FILE.json: write settings and results here
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.embedding.open import open_encoder
    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free_file, write_json
    from labse_tf.retrieval.job import Options, mine

    expected = 2 if args.embeddings else 3
    if len(args.paths) != expected:
        names = "SOURCE TARGET (with --embeddings)" if args.embeddings else "MODEL SOURCE TARGET"
        raise InputError(
            f"{len(args.paths)} names where {names} are expected", remedy="see labse mine --help"
        )
    if args.embeddings and args.dim is not None:
        raise InputError(
            "--dim is for a MODEL, not for --embeddings", remedy="embed with `labse embed --dim`"
        )
    names = [field.name for field in dataclasses.fields(Options)]
    options = Options(**{name: getattr(args, name) for name in names})
    if args.report:
        check_free_file(args.report, overwrite=args.overwrite)
    report = mine(
        *args.paths[-2:],
        args.out,
        model=args.paths[0],
        open_encoder=open_encoder,
        embeddings=args.embeddings,
        rescore=args.rescore,
        gold=args.gold,
        options=options,
        overwrite=args.overwrite,
    )
    if args.report:
        write_json(args.report, report, overwrite=args.overwrite)
    print(_summary(report))


def _summary(report: dict) -> str:
    lines = []
    for side in ("source", "target"):
        facts = report[side]
        lines.append(
            f"{side}: {facts['sentences']} sentences in {facts['lines']} lines "
            f"({facts['duplicates']} duplicates, {facts['empty']} empty)"
        )
    search = report["search"]
    if "recall" in search:
        found = ", ".join(f"{name} {value:.3f}" for name, value in search["recall"].items())
        lines.append(f"approximate search: recall {found} of a sample")
    if gold := report.get("gold"):
        lines.append(
            f"gold: precision {100 * gold['precision']:.1f}, recall {100 * gold['recall']:.1f}, "
            f"F1 {100 * gold['f1']:.1f} at threshold {gold['threshold']:.4f}"
        )
    lines.append(f"{report['pairs']} pairs kept of {report['pairs_found']} found")
    return "\n".join(lines)
