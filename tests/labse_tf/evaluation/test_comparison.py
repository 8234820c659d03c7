"""`labse eval compare`: bootstrap against its definition, tables, the page, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hashed_encoders import HashedCharacters

from labse_tf.cli.main import main
from labse_tf.evaluation.comparison import bootstrap, by_script, compare
from labse_tf.evaluation.tasks import tatoeba
from labse_tf.files.outputs import write_json

SENTENCES = {
    "deu": "Wien 1815\nHund\nKatze\nMaus 7\n",
    "rus": "Вена 1815\nсобака\nкошка\nмышь 7\n",
    "tha": "เวียนนา 1815\nหมา\nแมว\nหนู 7\n",
}
ENGLISH = "Vienna 1815\ndog\ncat\nmouse 7\n"


@pytest.fixture
def records(tmp_path):
    data, paths = tmp_path / "data", []
    data.mkdir()
    for code, text in SENTENCES.items():
        (data / f"tatoeba.{code}-eng.{code}").write_text(text, "utf-8")
        (data / f"tatoeba.{code}-eng.eng").write_text(ENGLISH, "utf-8")
    for name, encoder in (("long", HashedCharacters()), ("short", HashedCharacters(2, 1))):
        paths.append(tmp_path / f"{name}.json")
        write_json(paths[-1], tatoeba.evaluate(encoder, data), overwrite=False)
    return paths


def test_the_interval_is_that_of_resampled_means():
    rng = np.random.default_rng(4)
    first = {f"l{n}": value for n, value in enumerate(rng.uniform(size=40))}
    second = {unit: value + 0.02 + 0.05 * rng.normal() for unit, value in first.items()}
    found = bootstrap(first, second | {"other": 1.0})
    differences = np.array([second[unit] - first[unit] for unit in first])
    assert found.mean == pytest.approx(differences.mean()) and found.units == 40
    # The bootstrap's interval of a mean is nearly the normal one.
    half = 1.96 * differences.std() / 40**0.5
    assert found.low == pytest.approx(found.mean - half, abs=0.1 * half)
    assert found.high == pytest.approx(found.mean + half, abs=0.1 * half)
    assert found == bootstrap(first, second)
    assert bootstrap(dict(list(first.items())[:5]), second) is None
    for shift, certain in ((0.1, True), (-0.1, True), (0.0, False)):
        first = {str(n): n / 10 for n in range(10)}
        second = {unit: value + shift + (-1) ** int(unit) * 0.01 for unit, value in first.items()}
        assert bootstrap(first, second).is_certain == certain


def test_means_by_script_of_languages_alone():
    found = by_script({"deu": 0.5, "fra": 0.7, "rus": 0.2})
    assert found == {"Cyrl": 0.2, "Latn": pytest.approx(0.6)}
    found = by_script({"srp_Latn": 0.5, "srp_Cyrl": 0.1, "ast": 0.7, "aii": 0.3, "zho-CN": 0.2})
    assert found == {"Latn": pytest.approx(0.6), "Cyrl": 0.1, "other": 0.3, "Hani": 0.2}


def test_records_side_by_side(records, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["eval", "compare", *map(str, records), "--out", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    [one] = compare([str(path) for path in records])
    assert set(one.units["long"]) == set(SENTENCES)
    assert one.figures["long"] == pytest.approx(np.mean(list(one.units["long"].values())))
    assert lines[0].split()[:3] == ["tatoeba", "long", f"{100 * one.figures['long']:.2f}"]
    assert "higher is better" in lines[0] and one.differences["short"] is None
    html = page.read_text("utf-8")
    assert "<svg" in html and ">Thai<" in html and "<script" not in html
    assert f"{100 * one.figures['short']:.2f}" in html


def test_folders_of_all_tasks(records, tmp_path, capsys):
    """Records of one task under two names, as `eval all` writes them of two folders."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("tatoeba", "tatoeba.v2"):
            (tmp_path / folder / f"{name}.json").write_bytes(records[0].read_bytes())
    assert main(["eval", "compare", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[::2]] == ["tatoeba", "tatoeba.v2"]


def test_undefined_figures_are_left_out(records, tmp_path, capsys):
    record = json.loads(records[0].read_text("utf-8"))
    record["accuracy"] = record["languages"]["deu"]["mean_accuracy"] = None
    (tmp_path / "undefined.json").write_text(json.dumps(record), "utf-8")
    command = ["eval", "compare", str(records[1]), str(tmp_path / "undefined.json")]
    assert main([*command, "--out", str(tmp_path / "page.html")]) == 0
    assert "undefined       -" in capsys.readouterr().out
    assert set(compare(command[2:])[0].units["undefined"]) == {"rus", "tha"}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"a.json": "[]"}, "one result cannot be compared"),
        ({"a.json": "{", "b.json": "{}"}, "cannot be read as a record"),
        ({"a.json": '{"task": "chess"}', "b.json": "{}"}, "is not a record of a task"),
    ],
)
def test_what_is_no_record_is_refused(texts, told, tmp_path, capfd):
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert main(["eval", "compare", *(str(tmp_path / name) for name in texts)]) == 2
    assert told in capfd.readouterr().err


def test_records_of_other_data_or_other_tasks_are_refused(records, tmp_path, capfd):
    record = json.loads(records[1].read_text("utf-8"))
    for change, told in (
        ({"data": record["data"] | {"sha256": "0"}}, "were evaluated on different data"),
        ({"task": "sts"}, "no task has records of two systems"),
        ({"settings": {"ties": "lost"}}, "'ties' is not found of long"),
    ):
        (tmp_path / "changed.json").write_text(json.dumps(record | change), "utf-8")
        assert main(["eval", "compare", str(records[0]), str(tmp_path / "changed.json")]) == 2
        assert told in capfd.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["eval", "compare", str(records[0]), str(tmp_path / "empty")]) == 2
    assert "holds no records" in capfd.readouterr().err
