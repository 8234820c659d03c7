"""The TF-Hub interface of a model dir, where nothing of this repository can be imported.

The session's model dir is copied and the original hidden behind another name, so that nothing can
lean on it; `hub_client.py` then does in one process what users of google/LaBSE/2 and of its
preprocessor do, and the tests look at what it saw.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).with_name("hub_client.py")
DIM, LAYERS, LENGTH = 16, 4, 128


@pytest.fixture(scope="module")
def seen(tmp_path_factory, model_dir):
    folder = tmp_path_factory.mktemp("elsewhere")
    moved = folder / "model"
    shutil.copytree(model_dir, moved)
    hidden = model_dir.with_name("hidden")
    model_dir.rename(hidden)
    try:
        # -I: no PYTHONPATH, no current folder, no user's packages.
        command = [sys.executable, "-I", str(CLIENT), str(moved), str(folder / "saved_again")]
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ)
        )
    finally:
        hidden.rename(model_dir)
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_nothing_of_ours_is_importable(seen):
    assert seen["importable"] == []


@pytest.mark.parametrize("loader", ["hub.KerasLayer", "hub.load", "tf.saved_model.load"])
def test_preprocessor_call(seen, loader):
    assert seen["preprocessor"][loader] == {
        name: ["int32", [3, LENGTH]] for name in ("input_word_ids", "input_mask", "input_type_ids")
    }


@pytest.mark.parametrize("loader", ["hub.KerasLayer", "hub.load", "tf.saved_model.load"])
def test_encoder_call(seen, loader):
    found = dict(seen["encoder"][loader])
    assert found.pop("encoder_outputs") == [["float32", [3, LENGTH, DIM]]] * LAYERS
    assert found == {
        "pooled_output": ["float32", [3, DIM]],
        "default": ["float32", [3, DIM]],
        "sequence_output": ["float32", [3, LENGTH, DIM]],
    }


def test_all_loaders_agree(seen):
    assert seen["agreement"] < 1e-6


def test_default_is_the_pooled_output_not_normalised(seen):
    assert seen["default_is_pooled"] is True
    assert seen["largest_default"] <= 1.0
    assert all(abs(norm - 1.0) > 1e-3 for norm in seen["norms"])


def test_the_last_encoder_output_is_the_sequence_output(seen):
    assert seen["last_is_sequence"] is True


def test_tokenize_is_ragged_by_words_and_pieces(seen):
    assert seen["tokenize"]["dtype"] == "int32"
    assert seen["tokenize"]["shape"] == [3, None, None]
    # "ab a.", "" and one Chinese character a word.
    assert [[len(word) for word in row] for row in seen["tokenize"]["ids"]] == [
        [2, 1, 1],
        [],
        [1, 1],
    ]


def test_special_tokens(seen, vocab_file):
    assert seen["special_tokens"] == {
        "vocab_size": ["int32", len(vocab_file.read_text("utf-8").splitlines())],
        "padding_id": ["int32", 0],
        "start_of_sequence_id": ["int32", 101],
        "end_of_segment_id": ["int32", 102],
        "mask_id": ["int32", 103],
    }


def test_bert_pack_inputs(seen):
    one, two = seen["pack_one"], seen["pack_two"]
    ids = [piece for word in seen["tokenize"]["ids"][0] for piece in word]
    assert one["input_word_ids"][0] == [101, *ids, 102, 0, 0, 0, 0]
    assert one["input_mask"][0] == [1] * 6 + [0] * 4
    assert one["input_word_ids"][1] == [101, 102] + [0] * 8
    assert two["input_word_ids"][0] == [101, *ids, 102, *ids, 102, 0]
    assert two["input_type_ids"][0] == [0] * 6 + [1] * 5 + [0]


@pytest.mark.parametrize("length", [3, 16, LENGTH])
def test_packed_lengths(seen, length):
    assert seen["pack_lengths"][str(length)] == [3, length]


def test_inside_tf_data(seen):
    assert seen["tf_data"] == {"batches": [[2, LENGTH], [1, LENGTH]], "same": True}


def test_any_length_up_to_the_maximum(seen):
    assert seen["lengths"] == {str(length): [2, DIM] for length in (1, 2, 7, 64, 128)}


def test_padding_changes_nothing(seen):
    assert seen["padding_difference"] < 1e-5


def test_what_was_frozen_and_what_trains(seen):
    training = seen["training"]
    assert training["frozen_variables"] == 0
    # 3 tables and a layer norm, 16 a layer, 2 of the pooler; not do_lower_case.
    assert training["trainable_variables"] == 3 + 2 + 16 * LAYERS + 2
    assert sum("pooler" in name for name in training["names"]) == 2


def test_a_gradient_step_changes_every_part(seen):
    changed = seen["training"]["changed"]
    for part in ("pooler_transform/kernel", "pooler_transform/bias", "word_embeddings"):
        assert any(part in name for name in changed), part
    for layer in range(LAYERS):
        assert any(f"layer_{layer}" in name for name in changed)
    assert seen["training"]["output_change"] > 1e-4


def test_vocab_file_and_case(seen, vocab_file):
    assert seen["vocab_file"] == vocab_file.read_text("utf-8")
    assert seen["do_lower_case"] is False


def test_saved_again_it_loads_without_its_source(seen):
    assert seen["saved_again"] < 1e-6


def test_no_path_of_the_making_is_inside(model_dir, trained_run, vocab_file):
    """The graphs name no folder of the run, the vocabulary, the output or the repository."""
    repository = Path(__file__).resolve().parents[2]
    places = [trained_run, vocab_file.parent, model_dir, repository, Path.home(), Path.cwd()]
    for name in ("preprocessor", "encoder"):
        assert (model_dir / name / "assets" / "vocab.txt").read_bytes() == vocab_file.read_bytes()
        for file in (model_dir / name).rglob("*"):
            if not file.is_file() or file.name == "vocab.txt":
                continue
            data = file.read_bytes()
            for place in places:
                assert str(place).encode() + b"/" not in data, (file, place)


def test_the_temporary_folder_named_inside_is_gone(model_dir):
    """What the asset was read from is no place that exists, so nothing can lean on it."""
    for name in ("preprocessor", "encoder"):
        data = (model_dir / name / "saved_model.pb").read_bytes()
        temporary = re.escape(tempfile.gettempdir().encode())
        for match in set(re.findall(temporary + rb"/[\w./-]*vocab\.txt", data)):
            assert not Path(match.decode()).exists()


def test_files_of_a_model_dir(model_dir):
    names = {path.name for path in model_dir.iterdir()}
    assert names == {"preprocessor", "encoder", "model.json", "README.md"}
