"""`labse eval all`: what it finds, each text embedded once, what is kept, failures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hashed_encoders import HashedCharacters

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.evaluation.task import (
    SharedEncoder,
    evaluate_all,
    find_task,
    find_tasks,
    task_names,
)
from labse_tf.files.outputs import locked, write_json

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
    shown = []
    out = root.parent / "out"
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


def test_remembered_vectors_are_the_encoders():
    counting = Counting()
    encoder = SharedEncoder(counting)
    for texts in (["b", "a", "b"], ["c", "", "a"], ["", "b"]):
        np.testing.assert_array_equal(encoder.encode(texts), HashedCharacters().encode(texts))
    assert counting.texts == ["b", "a", "c", ""]


def test_results_that_are_there_are_kept_and_failures_do_not_stop_the_rest(root, tmp_path, capfd):
    write(root, {"sts/x/a.tsv": "five\tHund\tHund\n1\ta\tb\n"})
    command = ["eval", "all", ENCODER, "--data", str(root), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "1 of the tasks failed; the first: sts: " in capfd.readouterr().err
    made = records(root)
    assert set(made) == {f"{name}.json" for name in NAMES if name != "sts"}
    write(root, {"sts/x/a.tsv": PAIRS})
    assert main(command) == 0
    assert "sts" in capfd.readouterr().out
    assert made.items() < records(root).items()
    (tmp_path / "out/sts.json").write_text("{", "utf-8")
    assert main(command) == 2
    assert "cannot be read as a record" in capfd.readouterr().err
    (tmp_path / "out/sts.json").unlink()
    command[2] = "hashed_encoders:make_hashed"
    assert main(command) == 2
    assert "is the result of another encoder" in capfd.readouterr().err


def test_vectors_that_a_task_keeps_on_disk_are_not_kept_in_memory(tmp_path):
    """Two corpora with the same English side: its 2 texts are embedded for each of them."""
    root, encoder = tmp_path / "root", Counting()
    for code in ("de", "fr"):
        write(root / "un", {f"x.en-{code}.en": "one\ntwo\n"})
        write(root / "un", {f"x.en-{code}.{code}": f"{code} 1\n{code} 2\n"})
    run(root, encoder)
    assert sorted(encoder.texts) == sorted(["de 1", "de 2", "fr 1", "fr 2", *2 * ["one", "two"]])
    record = json.loads(records(root)["un.json"])
    assert record["corpora"] == find_task("un").evaluate(Counting(), root / "un")["corpora"]
    assert record["encoder"]["texts_cut"] is None


def test_only_what_was_made_from_something_else_is_made_anew(root, tmp_path, caplog):
    run(root)
    pairs, record = root / "sts/x/a.tsv", tmp_path / "out/sts.json"

    def change_an_option():
        content = json.loads(record.read_text("utf-8"))
        assert content["made_from"]["options"] == {"split": "test"}
        content["made_from"]["options"] = {"split": "dev"}
        record.write_text(json.dumps(content), "utf-8")

    for change, told in (
        (lambda: write(root, {"sts/x/a.tsv": PAIRS.replace("5\tHund", "4\tHund")}), "files"),
        (lambda: write(root, {"sts/x/b.tsv": PAIRS}), "files"),
        (lambda: pairs.rename(root / "sts/x/c.tsv"), "files"),
        (change_an_option, "options"),
        (lambda: write(root, {"sts/.DS_Store": "-", "notes/readme.txt": "more\n"}), None),
    ):
        change()
        before = records(root)
        caplog.clear()
        _, shown = run(root)
        changed = {name for name, content in records(root).items() if content != before[name]}
        warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        assert changed == ({"sts.json"} if told else set()) and len(shown) == 1 + len(changed)
        assert warnings == [f"{record} is of other {told}: sts anew"] * len(changed)


def test_a_result_of_a_single_task_is_not_replaced(root, tmp_path):
    record = find_task("sts").evaluate(HashedCharacters(), root / "sts")
    write_json(tmp_path / "out/sts.json", record)
    with pytest.raises(InputError, match="does not tell what it was made from"):
        run(root)


class Failing(HashedCharacters):
    def facts(self):
        return {"name": "HashedCharacters"}

    def encode(self, texts):
        if "мышь" in texts:
            raise RuntimeError("out of memory")
        return super().encode(texts)


@pytest.mark.parametrize(
    ("encoder", "line", "told"),
    [
        (Failing(), PAIRS, "sts: RuntimeError: out of memory"),
        (HashedCharacters(), "five\tHund\tHund\n", "the score 'five' is not a number"),
    ],
)
def test_a_task_that_fails_stops_no_other_and_keeps_its_old_result(
    encoder, line, told, root, tmp_path
):
    write(root, {"sts/x/a.tsv": "1\tHund\tHund\n1\ta\tb\n"})
    _, shown = run(root)
    assert "nan  spearman" in shown[-1]  # Undefined, as all scores are equal.
    before = records(root)["sts.json"]
    assert json.loads(before)["spearman"] is None  # JSON has no NaN.
    write(root, {"sts/x/a.tsv": line})
    for name in ("tatoeba", "xsim.flores"):
        (tmp_path / f"out/{name}.json").unlink()
    [failure], _ = run(root, encoder)
    assert told in failure and records(root)["sts.json"] == before
    assert records(root).keys() == {f"{name}.json" for name in NAMES}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--out is missing"),
        (["--out", "x", "--plot", "x.png"], "--plot is for a single task"),
        (["--out", "x", "--option", "folds=5"], "--option is for a single task"),
        (["--out", "x", "--overwrite"], "--overwrite is for a single task"),
    ],
)
def test_options_of_single_tasks_are_refused(arguments, told, root, capfd):
    assert main(["eval", "all", "no:such", "--data", str(root), *arguments]) == 2
    assert told in capfd.readouterr().err


def test_two_suites_at_once(root, tmp_path, capsys):
    command = ["eval", "all", ENCODER, "--data", str(root), "--out", str(tmp_path / "out")]
    with locked(tmp_path / "out"):
        assert main(command) == 2
    assert "another process" in capsys.readouterr().err and not records(root)
    (tmp_path / "file").touch()
    assert main([*command[:-1], str(tmp_path / "file")]) == 2
