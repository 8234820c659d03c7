"""The picture of a coverage: it is drawn for any set of languages, all of them named."""

from __future__ import annotations

import pytest

from labse_tf.coverage.plot import write_plot
from labse_tf.errors import InputError
from labse_tf.files.outputs import plot_format
from labse_tf.languages import LANGUAGES
from vocab.coverage import Coverage

ALL_LOST = Coverage(
    sentences=1, words=1, unknown_words=1, tokens=1, characters=3, unknown_characters=3
)
NOTHING_LOST = Coverage(sentences=1, words=1, tokens=200, characters=300, truncated_sentences=1)
START = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.mark.parametrize("name", ["a.png", "b.SVG", "c.d.pdf"])
def test_the_name_chooses_the_format(name):
    assert plot_format(f"folder/{name}") == name[-3:].lower()


@pytest.mark.parametrize("name", ["a.jpg", "png", "a.png.partial"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match="unknown plot format"):
        plot_format(name)


@pytest.mark.parametrize("file_format", START)
@pytest.mark.parametrize("counts", [ALL_LOST, NOTHING_LOST])
def test_one_language(tmp_path, file_format, counts):
    path = tmp_path / "plot.partial"
    write_plot({"th": counts}, path, file_format=file_format)
    assert path.read_bytes().startswith(START[file_format])


def test_all_languages_are_named(tmp_path):
    path = tmp_path / "plot.svg"
    write_plot(dict.fromkeys(LANGUAGES, NOTHING_LOST), path, file_format="svg")
    picture = path.read_text("utf-8")
    # Matplotlib draws letters as shapes and keeps the text in comments.
    assert all(f"<!-- {lang.name}  {code} -->" in picture for code, lang in LANGUAGES.items())
