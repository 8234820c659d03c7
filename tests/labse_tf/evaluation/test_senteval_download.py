"""SentEval's own download: the same rows as in the project's files."""

from __future__ import annotations

import gzip

import numpy as np

from labse_tf.evaluation.tasks.senteval import TASKS, find_tasks, read_task

FOLDS = 2
GOOD = [f"good {number}" for number in range(5)] + ["el ladrón"]
BAD = [f"bad {number}" for number in range(5)] + ["."]
PAIRS = [(f"a {number}", f'"b" {number}') for number in range(12)]
SICK = [
    ("NEUTRAL" if number % 2 else "ENTAILMENT", str(1 + number / 4), *pair)
    for number, pair in enumerate(PAIRS)
]
QUESTIONS = [("NUM", f"How far is {number} : 1 ?") for number in range(6)]
QUESTIONS += [("LOC", f"Where is {number}, sisterðcity ?") for number in range(6)]
LABELLED = [*(("1", text) for text in GOOD), *(("0", text) for text in BAD)]
PARAPHRASES = [(str(number % 2), *pair) for number, pair in enumerate(PAIRS)]

OURS = {
    **{f"{name}.tsv": LABELLED for name in ("MR", "CR", "SUBJ", "MPQA")},
    **{f"SST2.{part}.tsv": LABELLED for part in ("phrases_train", "dev", "test")},
    "TREC.train.tsv": QUESTIONS,
    "TREC.test.tsv": QUESTIONS[3:],
    "MRPC.train.tsv": PARAPHRASES[:8],
    "MRPC.val.tsv": PARAPHRASES[8:],
    "MRPC.test.tsv": PARAPHRASES[:5],
    **{f"SICK.{part}.tsv": SICK for part in ("train", "trial", "test")},
}
GOOD_LINES, BAD_LINES = "\n".join(GOOD) + "\n", "\n".join(BAD[:-1]) + "\n\n"
SENTIMENT = "".join(f"{text}\t{label}\n" for label, text in LABELLED)
MRPC_HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
MRPC = [f"{label}\t70\t71\t{first}\t{second}\r\n" for label, first, second in PARAPHRASES]
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
SICK_LINES = "".join(
    f"7\t{first}\t{second}\t{score}\t{label}\n" for label, score, first, second in SICK
)


def questions(rows):
    return "".join(f"{label}:dist {text}\n" for label, text in rows)


LATIN_1 = {
    "MR/rt-polarity.pos": GOOD_LINES,
    "MR/rt-polarity.neg": BAD_LINES,
    "CR/custrev.pos": GOOD_LINES,
    "CR/custrev.neg": BAD_LINES,
    "SUBJ/subj.subjective": GOOD_LINES,
    "SUBJ/subj.objective": BAD_LINES,
    "MPQA/mpqa.pos": GOOD_LINES,
    "MPQA/mpqa.neg": BAD_LINES,
    "TREC/train_5500.label": questions(QUESTIONS),
    "TREC/TREC_10.label": questions(QUESTIONS[3:]),
}
UTF_8 = {
    **{f"SST/binary/sentiment-{part}": SENTIMENT for part in ("train", "dev", "test")},
    "MRPC/msr_paraphrase_train.txt": "".join([MRPC_HEADER, *MRPC]),
    "MRPC/msr_paraphrase_test.txt": "".join([MRPC_HEADER, *MRPC[:5]]),
    **{f"SICK/SICK_{part}.txt": SICK_HEADER + SICK_LINES for part in ("train", "trial")},
    "SICK/SICK_test_annotated.txt": SICK_HEADER + SICK_LINES,
}
THEIRS = {name: text.encode("latin-1") for name, text in LATIN_1.items()}
THEIRS |= {name: text.encode() for name, text in UTF_8.items()}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join("\t".join(row) + "\n" for row in content).encode()
        path.write_bytes(content)
    return folder


def read(folder):
    files = find_tasks(folder)
    return {name: read_task(name, files[name], FOLDS) for name in files}


def test_both_layouts_give_the_same_rows(tmp_path):
    ours = read(write(tmp_path / "ours", OURS))
    packed = {"MPQA/mpqa.neg.gz": gzip.compress(THEIRS["MPQA/mpqa.neg"])}
    write(tmp_path / "theirs/downstream", THEIRS | packed)
    (tmp_path / "theirs/downstream/MPQA/mpqa.neg").unlink()
    for folder in ("theirs", "theirs/downstream"):
        theirs = read(tmp_path / folder)
        assert theirs.keys() == ours.keys() == TASKS.keys()
        for task, parts in ours.items():
            assert theirs[task].keys() == parts.keys()
            for part, texts in parts.items():
                found = theirs[task][part]
                assert (found.labels.tolist(), found.sides) == (texts.labels.tolist(), texts.sides)
                np.testing.assert_array_equal(found.scores, texts.scores)
    assert ours["MRPC"]["train"].sides[1][:2] == ['"b" 0', '"b" 1']
    assert ours["SICK-R"]["dev"].scores[:2].tolist() == [1, 1.25]
