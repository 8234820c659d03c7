"""Evaluates an encoder on tasks of MTEB, or on your own translations by MTEB's own class.

    pip install 'labse-tf[mteb]'
    python examples/mteb_run.py MODEL --tasks Tatoeba STS17 --out results
    python examples/mteb_run.py MODEL --bitext my/translations

MODEL is whatever `labse eval` takes. Tasks are fetched from the Hugging Face hub by MTEB. Of
--bitext, a folder of <lang>.tsv with English and foreign text, nothing is fetched.
"""

import argparse
from pathlib import Path

from labse_tf.mteb import MtebEncoder


def bitext_task(folder):
    """Returns a task of MTEB's class for bitext mining: find the English sentence."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

    files = {path.name.split(".")[0]: path for path in sorted(Path(folder).glob("*.tsv"))}

    class LocalBitext(AbsTaskBitextMining):
        metadata = TaskMetadata(
            name="LocalBitext",
            description=f"translations in {folder}",
            reference=None,
            dataset={"path": str(folder), "revision": "local"},
            type="BitextMining",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs={language: ["eng-Latn"] for language in files},
            main_score="f1",
            date=None,
            domains=None,
            task_subtypes=None,
            license=None,
            annotations_creators=None,
            dialect=None,
            sample_creation=None,
            bibtex_citation="",
        )

        def load_data(self, **kwargs):
            self.dataset = {}
            for language, path in files.items():
                # Only a line feed ends a row: texts may have characters such as U+2028.
                with path.open(encoding="utf-8", newline="\n") as lines:
                    rows = [line.rstrip("\r\n").split("\t")[:2] for line in lines]
                english, foreign = zip(*rows, strict=True)
                pairs = {"sentence1": list(foreign), "sentence2": list(english)}
                self.dataset[language] = DatasetDict(test=Dataset.from_dict(pairs))
            self.data_loaded = True

    return LocalBitext()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--languages", nargs="+", metavar="CODE", help="such as eng deu")
    parser.add_argument("--bitext", metavar="FOLDER")
    parser.add_argument("--out", default="results", metavar="FOLDER")
    args = parser.parse_args()
    import mteb

    tasks = [bitext_task(args.bitext)] if args.bitext else []
    if args.tasks:
        tasks += mteb.get_tasks(tasks=args.tasks, languages=args.languages)
    results = mteb.evaluate(
        MtebEncoder(args.model),
        tasks,
        cache=mteb.ResultCache(args.out),
        overwrite_strategy="always",
    )
    for result in results:
        print(f"{result.task_name}: {result.get_score():.6f}")
        for split, rows in result.scores.items():
            for row in rows:
                print(f"  {split} {row['hf_subset']}: {row['main_score']:.6f}")


if __name__ == "__main__":
    main()
