"""`labse eval all`: what it finds, each text embedded once, what is kept, failures."""

from __future__ import annotations

import json

import pytest
from hashed_encoders import HashedCharacters

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.evaluation.task import evaluate_all, find_task, find_tasks, task_names
from labse_tf.files.outputs import locked

ENCODER = "hashed_encoders:hashed"
PAIRS = "5\tHund\tHund\n0\tHund\tмышь\n2\tHund Katze\tHund\n"
FILES = {
    "tatoeba/tatoeba.deu-eng.deu": "Wien 1815\nHund\n",
    "tatoeba/tatoeba.deu-eng.eng": "Vienna 1815\nHund\n",
    "sts/x/a.tsv": PAIRS,
    "flores/deu.txt": "Wien 1815\nHund\n",
    "flores/eng.txt": "Vienna 1815\nHund\n",
    "notes/readme.txt": "-\n",
}
NAMES = ["language-bias.flores", "sts", "tatoeba", "xsim.flores"]


class Counting(HashedCharacters):
    def __init__(self):
        super().__init__()
        self.texts = []

    def encode(self, texts):
        self.texts += texts
        return super().encode(texts)


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root", FILES)
    return tmp_path / "root"


def run(root, encoder=None):
    """Returns the failures, and the tables that are shown."""
    shown, out = [], root.parent / "out"
    return evaluate_all(encoder or HashedCharacters(), root, out, show=shown.append), shown


def records(root):
    return {path.name: path.read_bytes() for path in (root.parent / "out").iterdir()}


def test_tasks_are_found_by_their_folders(root):
    assert [one.name for one in find_tasks(root)] == NAMES
    (root / "ntrex128").mkdir()
    found = {one.name for one in find_tasks(root)}
    assert found == {*NAMES, "language-bias.ntrex128", "xsim.ntrex128"}
    with pytest.raises(InputError, match="has no folder with the name of a task"):
        find_tasks(root / "notes")
    assert all(getattr(find_task(name), "FOLDERS", ()) for name in task_names())


def test_each_text_is_embedded_once_and_results_are_those_of_single_tasks(root):
    encoder = Counting()
    failures, shown = run(root, encoder)
    assert failures == [] and len(encoder.texts) == len(set(encoder.texts)) == 5
    for name in NAMES:
        record = json.loads(records(root)[f"{name}.json"])
        task, _, folder = name.partition(".")
        alone = find_task(task).evaluate(HashedCharacters(), root / (folder or task))
        # Counted over all tasks, these say nothing about one.
        assert record["encoder"].get("texts_cut") is None
        same = record.keys() - {"date", "encoder", "made_from", "versions"}
        expected = json.loads(json.dumps({key: alone[key] for key in same}))
        assert {key: record[key] for key in same} == expected
    assert "accuracy, higher is better" in shown[-1] and "error, lower is better" in shown[-1]


def test_only_what_was_made_from_other_files_is_made_anew(root, caplog):
    run(root)
    pairs = root / "sts/x/a.tsv"
    for change, is_other in (
        (lambda: write(root, {"sts/x/a.tsv": PAIRS.replace("5\tHund", "4\tHund")}), True),
        (lambda: write(root, {"sts/x/b.tsv": PAIRS}), True),
        (lambda: pairs.rename(root / "sts/x/c.tsv"), True),
        (lambda: write(root, {"sts/.DS_Store": "-", "notes/readme.txt": "more\n"}), False),
    ):
        change()
        before = records(root)
        caplog.clear()
        _, shown = run(root)
        changed = {name for name, content in records(root).items() if content != before[name]}
        warned = [one for one in caplog.records if one.levelname == "WARNING"]
        assert changed == ({"sts.json"} if is_other else set())
        assert len(shown) == 1 + len(changed) and len(warned) == len(changed)


def test_vectors_that_a_task_keeps_on_disk_are_not_kept_in_memory(tmp_path):
    """Two corpora with the same English side: its 2 texts are embedded for each of them."""
    root, encoder = tmp_path / "root", Counting()
    for code in ("de", "fr"):
        write(root / "un", {f"x.en-{code}.en": "one\ntwo\n"})
        write(root / "un", {f"x.en-{code}.{code}": f"{code} 1\n{code} 2\n"})
    run(root, encoder)
    assert sorted(encoder.texts) == sorted(["de 1", "de 2", "fr 1", "fr 2", *2 * ["one", "two"]])


class Failing(HashedCharacters):
    def facts(self):
        return {"name": "HashedCharacters"}

    def encode(self, texts):
        if "мышь" in texts:
            raise RuntimeError("out of memory")
        return super().encode(texts)


def test_a_task_that_fails_stops_no_other_and_keeps_its_old_result(root, tmp_path):
    write(root, {"sts/x/a.tsv": "1\tHund\tHund\n1\ta\tb\n"})
    _, shown = run(root)
    assert "nan  spearman" in shown[-1]  # Undefined, as all scores are equal.
    before = records(root)["sts.json"]
    assert json.loads(before)["spearman"] is None  # JSON has no NaN.
    write(root, {"sts/x/a.tsv": PAIRS})
    for name in ("tatoeba", "xsim.flores"):
        (tmp_path / f"out/{name}.json").unlink()
    [failure], _ = run(root, Failing())
    assert "sts: RuntimeError: out of memory" in failure and records(root)["sts.json"] == before
    assert records(root).keys() == {f"{name}.json" for name in NAMES}


def test_the_command(root, tmp_path, capfd):
    """Refuses options of single tasks and records that it may not replace, and resumes."""
    out = tmp_path / "out"
    command = ["eval", "all", ENCODER, "--data", str(root), "--out", str(out)]

    def refused(told, command=command):
        assert main(command) == 2
        assert told in capfd.readouterr().err

    refused("--out is missing", command[:-2])
    for option in (["--plot", "x.png"], ["--option", "folds=5"], ["--overwrite"]):
        refused(f"{option[0]} is for a single task", [*command, *option])
    with locked(out):
        refused("another process")
    assert not list(out.iterdir())
    write(root, {"sts/x/a.tsv": "five\tHund\tHund\n1\ta\tb\n"})
    refused("1 of the tasks failed; the first: sts: ")
    made = records(root)
    assert set(made) == {f"{name}.json" for name in NAMES if name != "sts"}
    write(root, {"sts/x/a.tsv": PAIRS})
    assert main(command) == 0 and made.items() < records(root).items()
    other = [*command[:2], "hashed_encoders:make_hashed", *command[3:]]
    refused("is the result of another encoder", other)
    (out / "sts.json").write_text("{", "utf-8")
    refused("cannot be read (")
    record = json.loads(records(root)["tatoeba.json"])
    record.pop("made_from")
    (out / "sts.json").write_text(json.dumps(record), "utf-8")
    refused("does not tell what it was made from")
