"""Hugging Face directories in and out: what they compute there, the model dir computes here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numpy_bert import HIDDEN, bert, make_tensors, write_bert
from safetensors.numpy import load_file, save_file
from tokenizers import BertWordPieceTokenizer

import labse_tf
from export.model_dir import check_options
from export.source import open_source
from labse_tf.cli.main import main
from vocab import wordpiece_file

TEXTS = ["猫は家を見ます。", "The cat sees the house.", "القطة ترى البيت", ""]


@pytest.fixture(scope="module")
def tensors(vocab_file):
    return make_tensors(len(vocab_file.read_text("utf-8").splitlines()))


@pytest.fixture
def bert_dir(tmp_path, tensors, vocab_file):
    return write_bert(tmp_path / "bert", tensors, vocab_file)


@pytest.fixture
def sentence_dir(bert_dir, tensors):
    """As sentence-transformers keeps LaBSE: another pooler in BERT, the right one beside it."""
    dense = {
        f"linear.{part}": tensors[f"bert.pooler.dense.{part}"][::-1].copy()
        for part in ("weight", "bias")
    }
    modules = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "2_Dense", "Normalize": "3_N"}
    rows = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.{kind}"}
        for index, (kind, path) in enumerate(modules.items())
    ]
    (bert_dir / "modules.json").write_text(json.dumps(rows), "utf-8")
    for folder, facts in (
        ("1_Pooling", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}),
        ("2_Dense", {"activation_function": "torch.nn.modules.activation.Tanh"}),
    ):
        (bert_dir / folder).mkdir()
        (bert_dir / folder / "config.json").write_text(json.dumps(facts), "utf-8")
    save_file(dense, bert_dir / "2_Dense" / "model.safetensors")
    return bert_dir


def import_hf(folder, out, *more):
    options = ("--no-verify", "--format", "hub", *map(str, more))
    return main(["import-hf", str(folder), "--out", str(out), *options])


def expected_vectors(tensors, tokenizer, weight, bias):
    """[CLS] through a given Dense layer with tanh, of unit length."""
    rows = []
    for ids in tokenizer(tf.constant(TEXTS)).to_list():
        ids = np.array([101, *ids, 102])
        sequence, _, _ = bert(tensors, ids, np.zeros_like(ids))
        rows.append(np.tanh(weight @ sequence[0] + bias))
    return np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.slow
def test_a_bert_model_embeds_as_there(bert_dir, tensors, tokenizer, tmp_path):
    assert import_hf(bert_dir, tmp_path / "model") == 0
    dense = tensors["bert.pooler.dense.weight"], tensors["bert.pooler.dense.bias"]
    expected = expected_vectors(tensors, tokenizer, *dense)
    found = labse_tf.load(tmp_path / "model").encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    facts = json.loads((tmp_path / "model" / "model.json").read_text("utf-8"))
    assert facts["encoder"]["activation"] == "gelu"
    assert facts["training"] is None and facts["languages"] is None
    assert "its weights were imported" in (tmp_path / "model" / "README.md").read_text("utf-8")
    # Its exact GELU is an operation that ONNX lacks.
    again = tmp_path / "again"
    assert main(["export", str(tmp_path / "model"), "--out", str(again), "--format", "onnx"]) == 0
    found = labse_tf.load(again / "onnx" / "model.onnx").encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_the_dense_module_of_sentence_transformers_is_the_pooler(
    sentence_dir, tensors, tokenizer, tmp_path
):
    assert import_hf(sentence_dir, tmp_path / "model") == 0
    dense = tensors["bert.pooler.dense.weight"][::-1], tensors["bert.pooler.dense.bias"][::-1]
    expected = expected_vectors(tensors, tokenizer, *dense)
    found = labse_tf.load(tmp_path / "model").encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_out_again_all_is_as_it_was(tensors, vocab_file, tmp_path, activation):
    """Through a model dir of SavedModels, then as a Hugging Face directory: bit for bit."""
    bert_dir = write_bert(tmp_path / "bert", tensors, vocab_file, hidden_act=activation)
    assert import_hf(bert_dir, tmp_path / "model") == 0
    out = tmp_path / "again"
    assert main(["export", str(tmp_path / "model"), "--out", str(out), "--format", "hf"]) == 0
    found = load_file(out / "model.safetensors")
    encoder = {name for name in tensors if not name.startswith("cls.")}
    assert {f"bert.{name}" for name in found} == encoder
    for name, value in found.items():
        np.testing.assert_array_equal(value, tensors[f"bert.{name}"], err_msg=name)
    config, before = (
        json.loads((folder / "config.json").read_text("utf-8")) for folder in (out, bert_dir)
    )
    assert {name: config[name] for name in before} == before
    assert (out / "vocab.txt").read_bytes() == vocab_file.read_bytes()
    dense = load_file(out / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(dense["linear.weight"], tensors["bert.pooler.dense.weight"])
    assert not (out / "encoder").exists()
    # And in once more, from that folder alone.
    assert import_hf(out, tmp_path / "model2") == 0
    one, other = (labse_tf.load(tmp_path / name).encode(TEXTS) for name in ("model", "model2"))
    np.testing.assert_array_equal(one, other)


def test_both_formats_in_one_folder(trained_run, tmp_path):
    out = tmp_path / "model"
    options = ("--format", "hub,hf", "--no-verify", "--licence", "CC BY 4.0")
    assert main(["export", str(trained_run), "--out", str(out), *options]) == 0
    names = {path.name for path in out.iterdir()}
    assert {"encoder", "preprocessor", "model.safetensors", "config.json"} <= names
    assert "text_encoder" not in names
    card = (out / "README.md").read_text("utf-8")
    assert "SentenceTransformer" in card and "hub.KerasLayer" in card and "CC BY 4.0" in card
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert config["hidden_act"] == "gelu_new" and config["hidden_size"] == 16


def drop(*names):
    def change(folder):
        tensors = load_file(folder / "model.safetensors")
        for name in names:
            del tensors[name]
        save_file(tensors, folder / "model.safetensors")

    return change


def misshape(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.encoder.layer.0.output.dense.bias"] = np.zeros(HIDDEN + 1, np.float32)
    tensors["bert.pooler.dense.weight"] = np.zeros((HIDDEN, HIDDEN + 1), np.float32)
    save_file(tensors, folder / "model.safetensors")


def pickled(name):
    def change(folder):
        (folder / name / "model.safetensors").unlink()
        (folder / name / "pytorch_model.bin").write_bytes(b"\x80\x04.")

    return change


def say(file, **changes):
    def change(folder):
        facts = json.loads((folder / file).read_text("utf-8"))
        (folder / file).write_text(json.dumps({**facts, **changes}), "utf-8")

    return change


def move_dense(folder):
    shutil.move(folder / "2_Dense", folder.parent / "elsewhere")
    text = (folder / "modules.json").read_text("utf-8")
    (folder / "modules.json").write_text(text.replace("2_Dense", "../elsewhere"), "utf-8")


def forget_dense(folder):
    rows = json.loads((folder / "modules.json").read_text("utf-8"))
    rows = [row for row in rows if "Dense" not in row["type"]]
    (folder / "modules.json").write_text(json.dumps(rows), "utf-8")


def lengthen_vocabulary(folder):
    with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("onemore\n")


LAYER = "encoder/transformer/layer_1/output"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            drop(
                "bert.encoder.layer.1.output.dense.bias", "bert.encoder.layer.1.output.dense.weight"
            ),
            f"has no {LAYER}/kernel:0, {LAYER}/bias:0; ",
        ),
        (
            misshape,
            "bert.encoder.layer.0.output.dense.bias [17] for [16], bert.pooler.dense.weight",
        ),
        (drop("bert.pooler.dense.bias"), "has no pooler (encoder/pooler_transform/bias:0)"),
        (pickled(""), "has its weights as a pickle (pytorch_model.bin), which is never loaded"),
        (lengthen_vocabulary, "tokens, but the embedding table of "),
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (say("config.json", hidden_act="relu"), "describes a bert with relu"),
        (say("config.json", layer_norm_eps=1e-5), "has layer_norm_eps 1e-05; LaBSE has 1e-12"),
        (
            lambda folder: (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}'),
            "tokenizer_config.json: says do_lower_case",
        ),
    ],
)
def test_bad_directories(bert_dir, tmp_path, capsys, change, problem):
    change(bert_dir)
    refused(bert_dir, tmp_path, capsys, problem)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (pickled("2_Dense"), "2_Dense: has its weights as a pickle"),
        (
            say("1_Pooling/config.json", pooling_mode_cls_token=False),
            "pools by nothing; LaBSE pools by [CLS]",
        ),
        (
            say("1_Pooling/config.json", pooling_mode_mean_tokens=True),
            "pools by pooling_mode_cls_token and pooling_mode_mean_tokens",
        ),
        (say("2_Dense/config.json", activation_function="torch.nn.Identity"), "torch.nn.Identity"),
        (move_dense, "names the folder ../elsewhere, which is outside"),
        (forget_dense, "has no Dense module"),
        (lambda folder: (folder / "modules.json").write_text("[1]"), "is not a list of modules"),
        (
            lambda folder: (folder / "2_Dense" / "model.safetensors").write_bytes(b"no"),
            "is damaged",
        ),
    ],
)
def test_bad_sentence_directories(sentence_dir, tmp_path, capsys, change, problem):
    change(sentence_dir)
    refused(sentence_dir, tmp_path, capsys, problem)


def refused(folder, tmp_path, capsys, problem):
    before = {path.name for path in tmp_path.iterdir()}
    assert import_hf(folder, tmp_path / "model") == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert problem in error and error.startswith("labse: error: ")
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.fixture
def spaced_dir(tmp_path, tensors, vocab_file):
    """Of a vocabulary as earlier versions learned it; returns the directory and its tokens."""
    tokens = vocab_file.read_text("utf-8").split("\n")[:-1]
    tokens[110:113] = ["\u3000", "##\u00a0", f"{tokens[-1]}\u202f"]
    path = tmp_path / "spaced.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    return write_bert(tmp_path / "spaced", tensors, path), tokens


def write_tokenizer(folder, tokens):
    ids = {token: number for number, token in enumerate(tokens)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": ids}}), "utf-8")


def test_a_piece_that_others_read_twice_is_refused(spaced_dir, tmp_path, capsys):
    folder, tokens = spaced_dir
    last = len(tokens)
    refused(
        folder, tmp_path, capsys, f"vocab.txt:113: programs that strip lines read {tokens[112]!r}"
    )
    refused(folder, tmp_path, capsys, f"like line {last}: its id is 112 there, {last - 1} here;")


def test_ids_of_another_tokenizer_are_refused(bert_dir, vocab_file, tmp_path, capsys):
    tokens = vocab_file.read_text("utf-8").split("\n")[:-1]
    write_tokenizer(bert_dir, [*tokens[:105], "new", *tokens[105:]])
    problem = f"vocab.txt:106: the token {tokens[105]!r} has id 105, but 106 in tokenizer.json; use"
    refused(bert_dir, tmp_path, capsys, problem)
    (bert_dir / "tokenizer.json").write_text("{}")
    refused(bert_dir, tmp_path, capsys, "tokenizer.json: has no WordPiece vocabulary")


@pytest.mark.slow
def test_ids_stay_where_others_strip_lines(spaced_dir, tmp_path, caplog):
    """In and out: our files have the tokens as they were, Hugging Face's what it reads alike."""
    folder, tokens = spaced_dir
    write_tokenizer(folder, tokens)
    out = tmp_path / "model"
    assert (
        main(["import-hf", str(folder), "--out", str(out), "--format", "hub,hf", "--no-verify"])
        == 0
    )
    assert "vocab.txt:111: the token '\\u3000' and 2 more are read differently" in caplog.text
    assert wordpiece_file.read(out / "encoder" / "assets" / "vocab.txt") == tokens
    renamed = [*tokens[:110], "[space110]", "[space111]", "[space112]", *tokens[113:]]
    reader = BertWordPieceTokenizer(str(out / "vocab.txt"), lowercase=False)
    assert reader.get_vocab_size() == len(tokens)
    assert [reader.id_to_token(number) for number in range(len(tokens))] == renamed


def test_an_output_that_exists(bert_dir, tmp_path, capsys):
    out = tmp_path / "model"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert import_hf(bert_dir, out) == 2
    assert "the output folder is not empty" in capsys.readouterr().err
    assert [path.name for path in Path(out).iterdir()] == ["thesis.txt"]


def test_an_unknown_format(bert_dir, tmp_path, capsys):
    assert import_hf(bert_dir, tmp_path / "model", "--format", "hub,gguf") == 2
    assert "unknown format gguf; choose from hub, text, hf" in capsys.readouterr().err


def write_json(folder, name, value):
    (folder / name).write_text(json.dumps(value), "utf-8")


def add_module(kind, place):
    def change(folder):
        rows = json.loads((folder / "modules.json").read_text("utf-8"))
        rows.insert(place, {"idx": 9, "name": "9", "path": "9_", "type": f"any.where.{kind}"})
        write_json(folder, "modules.json", rows)

    return change


def says(**settings):
    return lambda folder: write_json(folder, "config_sentence_transformers.json", settings)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (add_module("Dense", 3), "Dense"),
        (add_module("LayerNorm", 3), "LayerNorm"),
        (add_module("Normalize", 2), "Normalize"),
        (add_module("LSTM", 1), "Pooling"),
        (say("1_Pooling/config.json", pooling_mode="max"), "max"),
        (say("2_Dense/config.json", in_features=16, out_features=8), "8"),
        (say("2_Dense/config.json", activation_function="torch.nn.ReLU"), "ReLU"),
        (says(truncate_dim=8), "truncate_dim"),
        (says(prompts={"query": "query: ", "document": ""}), "query"),
        (
            lambda folder: write_json(folder, "sentence_bert_config.json", {"do_lower_case": True}),
            "do_lower_case",
        ),
    ],
)
def test_what_is_not_reproduced_is_refused(sentence_dir, tmp_path, capsys, change, named):
    change(sentence_dir)
    refused(sentence_dir, tmp_path, capsys, named)


@pytest.mark.parametrize("mode", ["mean", "no_bias"])
def test_a_pooler_without_its_weights(sentence_dir, tensors, tokenizer, tmp_path, mode):
    """A mean without a Dense module, and a Dense module without a bias, by hand."""
    if mode == "mean":
        forget_dense(sentence_dir)
        write_json(sentence_dir / "1_Pooling", "config.json", {"pooling_mode": "mean"})
    else:
        file = sentence_dir / "2_Dense" / "model.safetensors"
        save_file({"linear.weight": load_file(file)["linear.weight"]}, file)
    write_json(sentence_dir, "sentence_bert_config.json", {"max_seq_length": 32})
    source = open_source(sentence_dir)
    assert check_options(source, formats=["hub"], table="float32", length=None) == 32
    inputs = tokenizer.pack([tokenizer(tf.constant(TEXTS))], 32)
    found = source.encoder(inputs, training=False)["pooled_output"].numpy()
    for row, ids in zip(found, tokenizer(tf.constant(TEXTS)).to_list(), strict=True):
        ids = np.array([101, *ids, 102])
        sequence, _, _ = bert(tensors, ids, np.zeros_like(ids))
        expected = sequence.mean(axis=0)
        if mode == "no_bias":
            expected = np.tanh(tensors["bert.pooler.dense.weight"][::-1] @ sequence[0])
        np.testing.assert_allclose(row, expected, atol=2e-5)


CASED = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}


def tokenizer_alone(folder, *, model=(), ids=(), **parts):
    tokens = wordpiece_file.read(folder / "vocab.txt")
    (folder / "vocab.txt").unlink()
    vocabulary = {token: number for number, token in reversed(list(enumerate(tokens)))}
    model = {"type": "WordPiece", "vocab": {**vocabulary, **dict(ids)}, **dict(model)}
    content = {"normalizer": {**CASED, "strip_accents": None, "lowercase": False}, **parts}
    write_json(folder, "tokenizer.json", {**content, "model": model})
    return tokens


def test_a_folder_with_tokenizer_json_alone(bert_dir):
    tokens = tokenizer_alone(bert_dir, truncation=None, padding=None)
    assert open_source(bert_dir).tokens == tokens


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"normalizer": {**CASED, "lowercase": True}}, "lowercase"),
        ({"normalizer": {**CASED, "strip_accents": True}}, "strip_accents"),
        ({"normalizer": {**CASED, "handle_chinese_chars": False}}, "handle_chinese_chars"),
        ({"normalizer": {"type": "NFKC"}}, "NFKC"),
        ({"normalizer": None}, "tokenizer.json"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
        ({"model": {"max_input_chars_per_word": 20}}, "max_input_chars_per_word"),
        ({"added_tokens": [{"id": 7000, "content": "<user>"}]}, "<user>"),
        ({"ids": {"onemore": 7000}}, "no token of the id"),
    ],
)
def test_another_tokenizer_is_refused(bert_dir, tmp_path, capsys, change, named):
    tokenizer_alone(bert_dir, **change)
    refused(bert_dir, tmp_path, capsys, named)


@pytest.mark.parametrize(
    "sizes",
    [
        *({"vocab_size": size} for size in (10**12, -5, 0, True, 2.7, float("inf"), "5", None)),
        {"num_hidden_layers": -1},
        {"num_hidden_layers": 10**9},
        {"max_position_embeddings": 10**11},
        {"num_attention_heads": 3},
        {"is_decoder": True},
    ],
)
def test_impossible_sizes(bert_dir, tmp_path, capsys, sizes):
    say("config.json", **sizes)(bert_dir)
    refused(bert_dir, tmp_path, capsys, "config.json")
