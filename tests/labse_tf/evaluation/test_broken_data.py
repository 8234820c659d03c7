"""Broken and missing data of every task: refused with the path and the line at fault."""

from __future__ import annotations

import pytest
from hashed_encoders import HashedCharacters
from task_data import DATA

from labse_tf.errors import InputError
from labse_tf.evaluation.task import find_task

SICK = {f"SICK.{part}.tsv": "A\t9\tx\ty\nB\t1\tx\ty\n" for part in ("train", "trial", "test")}
FEW = "0\tx\n" * 9 + "1\ty\n" * 4
TREC = {"TREC.train.tsv": "A\tx\nB\ty\n" * 5, "TREC.test.tsv": "C\tx\n"}
EN = {f"en.{part}.tsv": "A\tx\n" for part in ("train", "dev", "test")}
FRENCH = {f"tatoeba.fra-eng.{side}": "chat\n" for side in ("fra", "eng")}


# Task, changed files (None: removed), options, file and line of the error, part of its text.
# A file "" is the folder; the texts of the other files are in task_data.
CASES = [
    ("tatoeba", {"tatoeba.deu-eng.deu": "eins\n"}, {}, "tatoeba.deu-eng.deu", 1, "has more"),
    ("tatoeba", {"tatoeba.deu-eng.deu": "eins\n \t\n"}, {}, "tatoeba.deu-eng.deu", 2, "empty"),
    ("tatoeba", {"tatoeba.deu-eng.deu": "eins\nzw\0i\n"}, {}, "tatoeba.deu-eng.deu", 2, "NUL"),
    ("tatoeba", {"tatoeba.deu-eng.deu": b"eins\n\xff\n"}, {}, "tatoeba.deu-eng.deu", 2, "UTF-8"),
    ("tatoeba", {"tatoeba.deu-eng.deu": None}, {}, "", None, "holds no tatoeba.deu-eng.deu"),
    ("tatoeba", dict.fromkeys(DATA["tatoeba"]), {}, "", None, "holds no files tatoeba"),
    ("un", {"x.de-en.en": "cat\n"}, {}, "x.de-en.en", 1, "has more"),
    ("un", {"y.tsv": "one\n"}, {}, "y.tsv", 1, "one column"),
    ("un", {"x.de-en.de": None}, {}, "", None, "holds no x.de-en.de"),
    ("un", dict.fromkeys(DATA["un"]), {}, "", None, "no aligned corpus"),
    ("un", {}, {"recall": 0}, None, None, "--recall is 0"),
    ("bucc", {"de-en.dev.gold": "d1\te2\nd9\te1\n"}, {}, "de-en.dev.gold", 2, "sentence 'd9'"),
    ("bucc", {"de-en.dev.gold": "d1\te2\n" * 2}, {}, "de-en.dev.gold", 2, "in line 1 already"),
    ("bucc", {"de-en.dev.de": "d1\tx\nd1\ty\n"}, {}, "de-en.dev.de", 2, "'d1' is repeated"),
    ("bucc", {"de-en.dev.en": "e1\tdog\nno id\n"}, {}, "de-en.dev.en", 2, "1 columns"),
    ("bucc", {"de-en.dev.gold": None}, {}, "", None, "holds no gold"),
    ("bucc", {"de-en.dev.de": None}, {}, "", None, "holds no de-en.dev.de"),
    ("sts", {"x/a.tsv": "3\ta\tb\nhigh\ta\tb\n"}, {}, "x/a.tsv", 2, "'high' is not a number"),
    ("sts", {"x/a.tsv": "nan\ta\tb\n"}, {}, "x/a.tsv", 1, "'nan' is not a number"),
    ("sts", {"x/a.tsv": "3\ta\tb\n"}, {}, "x/a.tsv", None, "one pair"),
    ("sts", {"x/a.tsv": None}, {}, "", None, "holds no files <set>/<name>.tsv"),
    ("sts", {"x/a.tsv": None, "x/a.dev.tsv": "3\ta\tb\n"}, {}, "", None, "for the split test"),
    ("senteval", {"CR.tsv": None}, {}, "", None, "has no file of any task"),
    ("senteval", {"SST2.dev.tsv": "0\tx\n"}, {}, "", None, "has no SST2.phrases_train.tsv"),
    ("senteval", {"CR.tsv": "0\tx\n" * 9}, {"folds": 3}, "CR.tsv", None, "'0' has 9 of 9"),
    ("senteval", {"CR.tsv": FEW}, {"folds": 3}, "CR.tsv", None, "'1' has 4 of 13 examples"),
    ("senteval", TREC, {"folds": 3}, "TREC.test.tsv", None, "has the label 'C'"),
    ("senteval", SICK, {"folds": 3}, "SICK.train.tsv", 1, "'9' is not a number from 1 to 5"),
    ("classify", dict.fromkeys(DATA["classify"]), {}, "", None, "holds no files <language>"),
    ("classify", {"en.dev.tsv": None}, {}, "", None, "has no train and dev part of 'english'"),
    ("classify", {}, {"source": "de"}, "", None, "has no train and dev part of 'de'"),
    ("classify", {"de.test.tsv": None}, {}, "", None, "has no test part"),
    ("classify", {"de.test": "A\tx\n"}, {}, "de.test.tsv", None, "is a second file beside"),
    ("classify", EN, {}, "en.train.tsv", None, "only one label"),
    ("classify", {"de.test.tsv": "A\tx\nC\tx\n"}, {}, "de.test.tsv", 2, "'C' is not in"),
    ("xnli", {}, {"source": "de"}, "", None, "has no train.de.tsv"),
    ("xnli", {"dev.en.tsv": None, "dev.de.tsv": "a\tb\tyes\n"}, {}, "dev.*.tsv*", None, "in 'en'"),
    ("xnli", {"test.de.tsv": "a\tb\tmaybe\n"}, {}, "test.*.tsv*", None, "has the label 'maybe'"),
    ("xnli", {"train.en.tsv": "no\tcat\tdog\n"}, {}, "dev.*.tsv*", None, "has the label 'no'"),
    ("xsim", {"en.txt": None, "fr.txt": "x\n"}, {}, "", None, "holds no file of 'en'"),
    ("xsim", {"fr.devtest": "un\n"}, {}, "fr.devtest", 1, "the last line"),
    ("xsim", {"de.dev": "un\n"}, {}, "de.txt", None, "is a second file beside"),
    ("xsim", {"p.tsv": "4\tnumber\tx\n"}, {"perturbed": "p.tsv"}, "p.tsv", 1, "number up to 2"),
    ("paraphrase", {"test.de.tsv": None}, {}, "", None, "has no test part"),
    ("paraphrase", {"dev.en.tsv": None}, {}, "", None, "has no dev part of 'en'"),
    ("paraphrase", {"test.de.tsv": "a\tb\t1\n"}, {}, "test.de.tsv", None, "not both labels"),
    ("paraphrase", {"dev.en.tsv": "a\tb\t2\n"}, {}, "dev.en.tsv", 1, "expected sentence 1"),
    ("language-bias", {"en.txt": None}, {}, "", None, "fewer than two"),
    ("language-bias", {}, {"components": [-1]}, None, None, "--components has -1"),
    ("language-bias", {}, {"components": [2]}, None, None, "--components has 2"),
    ("language-bias", {"f/de.txt": "x\n"}, {"fit": "f"}, "f", None, "holds no file of 'en'"),
    ("language-bias", FRENCH, {"tatoeba": ""}, "", None, "no language of the pool"),
    ("retrieval", {"de.tsv": "alone\n"}, {}, "de.tsv", 1, "one column"),
    ("retrieval", {"de.tsv": None, "de.txt": "x\n"}, {}, "", None, "holds no bitext files"),
]


@pytest.mark.parametrize(
    ("task", "changes", "options", "place", "line", "told"),
    CASES,
    ids=[f"{case[0]}: {case[-1]}" for case in CASES],
)
def test_the_place_of_the_error_is_told(task, changes, options, place, line, told, tmp_path):
    for name, text in (DATA[task] | changes).items():
        if text is not None:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    folders = ("fit", "perturbed", "tatoeba")
    options = {
        name: str(tmp_path / value) if name in folders else value for name, value in options.items()
    }
    with pytest.raises(InputError) as caught:
        find_task(task).evaluate(HashedCharacters(), tmp_path, **options)
    assert told in caught.value.problem
    path = None if place is None else str(tmp_path / place)
    assert (caught.value.path, caught.value.line) == (path, line)
