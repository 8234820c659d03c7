"""`labse eval all`: what it finds, each text embedded once, what is kept, killed, failures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hashed_encoders import HashedCharacters
from hypothesis import given
from hypothesis import strategies as st

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.evaluation.task import SharedEncoder, evaluate_all, find_task, find_tasks, task_names
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


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "root"


def test_tasks_are_found_by_their_folders(root):
    assert [one.name for one in find_tasks(root)] == NAMES
    (root / "ntrex128").mkdir()
    assert [one.name for one in find_tasks(root)] == [
        "language-bias.flores",
        "language-bias.ntrex128",
        "sts",
        "tatoeba",
        "xsim.flores",
        "xsim.ntrex128",
    ]
    with pytest.raises(InputError, match="has no folder with the name of a task"):
        find_tasks(root / "notes")
    assert all(getattr(find_task(name), "FOLDERS", ()) for name in task_names())


def test_each_text_is_embedded_once_and_results_are_those_of_single_tasks(root, tmp_path):
    encoder, shown = Counting(), []
    assert evaluate_all(encoder, root, tmp_path / "out", show=shown.append) == []
    assert len(encoder.texts) == len(set(encoder.texts)) == 5
    for name in NAMES:
        record = json.loads((tmp_path / f"out/{name}.json").read_text("utf-8"))
        task, _, folder = name.partition(".")
        alone = find_task(task).evaluate(HashedCharacters(), root / (folder or task))
        # Counted over all tasks, these say nothing about one.
        assert record["encoder"].get("texts_cut") is None
        same = record.keys() - {"date", "encoder", "made_from", "versions"}
        assert {key: record[key] for key in same} == json.loads(
            json.dumps({key: alone[key] for key in same})
        )
    assert "accuracy, higher is better" in shown[-1] and "error, lower is better" in shown[-1]


def test_results_that_are_there_are_kept_and_failures_do_not_stop_the_rest(root, tmp_path, capfd):
    (root / "sts/x/a.tsv").write_text("five\tHund\tHund\n1\ta\tb\n", "utf-8")
    command = ["eval", "all", ENCODER, "--data", str(root), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "1 of the tasks failed; the first: sts: " in capfd.readouterr().err
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert set(made) == {f"{name}.json" for name in NAMES if name != "sts"}
    (root / "sts/x/a.tsv").write_text(PAIRS, "utf-8")
    assert main(command) == 0
    assert "sts" in capfd.readouterr().out
    for name, when in made.items():
        assert (tmp_path / "out" / name).stat().st_mtime_ns == when
    (tmp_path / "out/sts.json").write_text("{", "utf-8")
    assert main(command) == 2
    assert "cannot be read as a record" in capfd.readouterr().err
    (tmp_path / "out/sts.json").unlink()
    command[2] = "hashed_encoders:make_hashed"
    assert main(command) == 2
    assert "is the result of another encoder" in capfd.readouterr().err


def test_vectors_that_a_task_keeps_on_disk_are_not_kept_in_memory(tmp_path):
    """Two corpora with the same English side: its 2 texts are embedded for each of them."""
    (tmp_path / "root/un").mkdir(parents=True)
    for code in ("de", "fr"):
        (tmp_path / f"root/un/x.en-{code}.en").write_text("one\ntwo\n", "utf-8")
        (tmp_path / f"root/un/x.en-{code}.{code}").write_text(f"{code} 1\n{code} 2\n", "utf-8")
    encoder = Counting()
    evaluate_all(encoder, tmp_path / "root", tmp_path / "out", show=lambda text: None)
    assert sorted(encoder.texts) == sorted(["de 1", "de 2", "fr 1", "fr 2", *2 * ["one", "two"]])
    record = json.loads((tmp_path / "out/un.json").read_text("utf-8"))
    assert (
        record["corpora"] == find_task("un").evaluate(Counting(), tmp_path / "root/un")["corpora"]
    )
    assert record["encoder"]["texts_cut"] is None


def edit_a_line(root, out):
    (root / "sts/x/a.tsv").write_text(PAIRS.replace("5\tHund", "4\tHund"), "utf-8")


def add_a_file(root, out):
    (root / "sts/x/b.tsv").write_text(PAIRS, "utf-8")


def rename_a_file(root, out):
    (root / "sts/x/a.tsv").rename(root / "sts/x/b.tsv")


def change_an_option(root, out):
    record = json.loads((out / "sts.json").read_text("utf-8"))
    assert record["made_from"]["options"] == {"split": "test"}
    record["made_from"]["options"] = {"split": "dev"}
    (out / "sts.json").write_text(json.dumps(record), "utf-8")


def hide_a_file(root, out):
    (root / "sts/.DS_Store").write_text("-", "utf-8")


def edit_no_task(root, out):
    (root / "notes/readme.txt").write_text("more\n", "utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (edit_a_line, "is of other files: sts anew"),
        (add_a_file, "is of other files: sts anew"),
        (rename_a_file, "is of other files: sts anew"),
        (change_an_option, "is of other options: sts anew"),
        (hide_a_file, None),
        (edit_no_task, None),
    ],
)
def test_only_what_was_made_from_something_else_is_made_anew(change, told, root, tmp_path, caplog):
    out = tmp_path / "out"
    assert evaluate_all(HashedCharacters(), root, out, show=lambda text: None) == []
    change(root, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    shown = []
    assert evaluate_all(HashedCharacters(), root, out, show=shown.append) == []
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    anew = [name for name in before if before[name] != after[name]]
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    if told is None:
        assert (anew, warnings, len(shown)) == ([], [], 1)
        return
    assert anew == ["sts.json"] and len(shown) == 2
    assert warnings == [f"{out / 'sts.json'} {told}"]
    # What was made anew is kept the next time.
    assert evaluate_all(HashedCharacters(), root, out, show=lambda text: None) == []
    assert {path.name: path.read_bytes() for path in out.iterdir()} == after


def test_a_result_of_a_single_task_is_not_replaced(root, tmp_path):
    record = find_task("sts").evaluate(HashedCharacters(), root / "sts")
    write_json(tmp_path / "out/sts.json", record)
    with pytest.raises(InputError, match="does not tell what it was made from; delete it"):
        evaluate_all(HashedCharacters(), root, tmp_path / "out", show=lambda text: None)


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
    out, shown = tmp_path / "out", []
    (root / "sts/x/a.tsv").write_text("1\tHund\tHund\n1\ta\tb\n", "utf-8")
    evaluate_all(HashedCharacters(), root, out, show=shown.append)
    assert "nan  spearman" in shown[-1]  # Undefined, as all scores are equal.
    before = (out / "sts.json").read_bytes()
    (root / "sts/x/a.tsv").write_text(line, "utf-8")
    for name in ("tatoeba", "xsim.flores"):
        (out / f"{name}.json").unlink()
    (failure,) = evaluate_all(encoder, root, out, show=lambda text: None)
    assert told in failure and (out / "sts.json").read_bytes() == before
    assert {path.name for path in out.iterdir()} == {f"{name}.json" for name in NAMES}


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


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_remembered_vectors_are_the_encoders(batches):
    encoder = SharedEncoder(HashedCharacters())
    for texts in batches:
        np.testing.assert_array_equal(encoder.encode(texts), HashedCharacters().encode(texts))


def test_two_suites_at_once(root, tmp_path, capsys):
    command = ["eval", "all", ENCODER, "--data", str(root), "--out", str(tmp_path / "out")]
    with locked(tmp_path / "out"):
        assert main(command) == 2
    assert "another process" in capsys.readouterr().err
    assert not any((tmp_path / "out").iterdir())
    (tmp_path / "file").touch()
    assert main([*command[:-1], str(tmp_path / "file")]) == 2
