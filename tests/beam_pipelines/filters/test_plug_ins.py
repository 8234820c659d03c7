"""A filter is one file: in the folder of filters, or the user's own, named on the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from beam_pipelines import filter_bitext, filter_monolingual
from beam_pipelines.filtering.choose_filters import find_filters, options_of
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL

# The example of the documentation.
SHOUTING = re.search(
    r"```python\n(.*?)```", (ROOT / "docs" / "corpora.md").read_text("utf-8"), re.DOTALL
)[1]
BARE = "class Bare:\n  name = 'bare'; threshold = 1"
PAIRS = "Good day!\tGuten Tag!\nGood day!\tGUTEN Tag!\nGood day!\tGUTEN TAG!\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a corpus and the user's module; imports from it are forgotten."""
    (tmp_path / "de.tsv").write_text(PAIRS, "utf-8")
    (tmp_path / "my_filters.py").write_text(SHOUTING, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_filters", None)


@pytest.mark.slow
def test_a_users_filter_travels_to_other_processes(folder):
    # A console script, unlike `python -m`, does not look into the current folder by itself.
    labse = [str(Path(sys.executable).with_name("labse")), "corpus", "filter-bitext"]
    options = ["--filter", "my_filters:NoShouting=0.7", "--scores"]
    beam = ["--", "--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    command = [*labse, "de.tsv", "--out", "out", *options, *beam]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert "shouting 1" in shown.stdout, shown.stderr
    report = json.loads((folder / "out" / "report.json").read_text("utf-8"))
    assert report["total"]["dropped"]["shouting"] == 1
    assert list(report["thresholds"].items())[-1] == ("shouting", 0.7)
    assert "## shouting\n" in (folder / "out" / "examples.md").read_text("utf-8")


def test_its_limit_moves_without_scoring_again_and_sentences_have_it_too(folder):
    filter_bitext.run(["de.tsv"], "out", filters=["my_filters:NoShouting"], scores=True)
    own = {"filters": ["my_filters:NoShouting=0.5"]}
    again = filter_bitext.run(["out/scores"], "again", from_scores=True, **own)
    assert again["total"]["dropped"]["shouting"] == 2
    (folder / "de.txt").write_text("Guten Morgen!\nGUTEN MORGEN!\n", "utf-8")
    report = filter_monolingual.run(["de.txt"], "lines", filters=["my_filters:NoShouting"])
    assert report["total"]["dropped"]["shouting"] == 1


@pytest.mark.parametrize(
    ("name", "edit", "error"),
    [
        ("my_filters", "", "my_filters: is not module:attribute"),
        ("no_such:Filter", "", "no_such:Filter: cannot import no_such"),
        ("my_filters:Quiet", "", "my_filters:Quiet: there is no 'Quiet' in my_filters"),
        ("my_filters:NoShouting=x", "", "its threshold 'x' is not a number"),
        ("my_filters:made=1", "made = NoShouting()", "cannot be built (TypeError"),
        ("my_filters:json", "import json", "its 'name', the reason in report.json, is None"),
        ("my_filters:Bare", f"{BARE}\n  accept = print", "has no method 'score'"),
        ("my_filters:Bare", f"{BARE}\n  score = print", "or none 'accept'"),
        ("my_filters:NoShouting", "NoShouting.name = 'too long'", "is 'too long', not one word"),
        ("my_filters:NoShouting", "NoShouting.name = 'few_words'", "'few_words' in report.json"),
        ("my_filters:NoShouting", "NoShouting.name = 'duplicate'", "'duplicate' in report.json"),
        ("my_filters:Needy", "class Needy:\n  def __init__(self, a): 1", "cannot be built (Type"),
        ("my_filters:NoShouting", "del NoShouting.threshold", "has no numeric 'threshold'"),
        ("my_filters:NoShouting", "1 +", "cannot import my_filters (SyntaxError"),
    ],
)
def test_what_is_no_filter_ends_the_command_before_the_job(folder, capsys, name, edit, error):
    with (folder / "my_filters.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{edit}\n")
    assert main(["corpus", "filter-bitext", "de.tsv", "--out", "out", "--filter", name]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert error in line
    assert not (folder / "out").exists()


def test_any_class_will_do_but_names_are_taken_once(folder):
    own = f"{BARE}\n  def score(self, pairs): return [len(p.target) for p in pairs]"
    own += "\n  def accept(self, score): return score > 10"
    (folder / "my_filters.py").write_text(own, "utf-8")
    report = filter_bitext.run(["de.tsv"], "out", filters=["my_filters:Bare"])
    assert report["total"]["dropped"]["bare"] == 3
    with pytest.raises(InputError, match="its name") as caught:
        filter_bitext.run(["de.tsv"], "two", filters=["my_filters:Bare"] * 2)
    assert caught.value.path == "my_filters:Bare"


def test_every_option_belongs_to_one_filter():
    for kind in (BITEXT, MONOLINGUAL):
        found = find_filters(kind)
        options = [option.name for one in found for option in options_of(one, kind)]
        assert len(set(options)) == len(options)
        assert len({one.name for one in found}) == len(found)
