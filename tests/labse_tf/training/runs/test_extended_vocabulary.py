"""`labse vocab extend`, and runs that begin with another model's weights and more tokens."""

from __future__ import annotations

import numpy as np
import pytest
from command_line import refused
from runs import embedder_of, labse_run

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from vocab import wordpiece_file
from vocab.wordpiece import spell

CREOLE = ["Mo pe ale dan lavil.", "Nou pe manze diri ek kari.", "Zot pe ale lekol dan lavil."]


@pytest.fixture(scope="module")
def extended(trained_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("extended")
    (folder / "mfe.txt").write_text("".join(f"{line}\n" for line in CREOLE * 3), "utf-8")
    vocab = folder / "vocab.txt"
    arguments = ["--text", str(folder / "mfe.txt"), "--add", "9", "--out", str(vocab)]
    assert main(["vocab", "extend", str(trained_run), *arguments]) == 0
    return vocab


def test_old_tokens_keep_their_ids_and_the_table_shows_the_gain(
    trained_run, extended, tmp_path, capsys
):
    old, new = (wordpiece_file.read(path) for path in (trained_run / "vocab.txt", extended))
    assert new[: len(old)] == old and len(new) == len(old) + 9
    assert {"lavil", "dan"} <= set(new[len(old) :])
    pairs = tmp_path / "mfe.tsv"
    pairs.write_text("".join(f"Some words.\t{line}\n" for line in CREOLE * 3), "utf-8")
    arguments = [str(trained_run), "--text", str(pairs), "--add", "9"]
    assert main(["vocab", "extend", *arguments, "--out", str(tmp_path / "vocab.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    [row] = [line for line in lines if line.startswith("mfe")]
    assert "Morisyen" in row and not any(line.startswith("en ") for line in lines)
    before, after = map(float, row.split()[3:6:2])
    assert after < before
    # The English side does not count: the tokens are those of the text alone.
    assert (tmp_path / "vocab.txt").read_bytes() == extended.read_bytes()


def train(config_file, origin, vocab, folder, *sets):
    sets = (f"tokenizer.vocab_file={vocab}", "encoder.vocab_size=0", *sets)
    return labse_run("train", config_file, folder, *sets, init=origin)


def test_new_rows_are_means_and_text_without_new_tokens_keeps_its_vectors(
    trained_run, extended, config_file, tmp_path, multilingual_sentences
):
    grown_run = tmp_path / "run"
    assert train(config_file, trained_run, extended, grown_run, "train.steps=0") == 0
    before, after = (load_encoder(open_existing(path)) for path in (trained_run, grown_run))
    old = before.get_embedding_table().numpy()
    new = after.get_embedding_table().numpy()
    np.testing.assert_array_equal(new[: len(old)], old)
    tokens = wordpiece_file.read(grown_run / "vocab.txt")
    ids = {token: number for number, token in enumerate(tokens[: len(old)])}
    spelled = [spell(token, ids) or [ids["[UNK]"]] for token in tokens[len(old) :]]
    assert max(map(len, spelled)) > 1
    for parts, row in zip(spelled, new[len(old) :], strict=True):
        np.testing.assert_allclose(row, old[parts].mean(axis=0), atol=1e-6)
    for one, other in zip(before.variables, after.variables, strict=True):
        if one.shape == other.shape:
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    tokens = (load_tokenizer(open_existing(path)) for path in (trained_run, grown_run))
    rows = zip(*(one(multilingual_sentences).to_list() for one in tokens), strict=True)
    found = zip(multilingual_sentences, rows, strict=True)
    same = [text for text, (one, other) in found if one == other]
    assert len(same) > 5
    before, after = (embedder_of(path).encode(same) for path in (trained_run, grown_run))
    np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.slow
def test_it_is_pretrained_further_with_its_head(pretrained_run, config_file, extended, tmp_path):
    sets = (f"tokenizer.vocab_file={extended}", "encoder.vocab_size=0", "pretrain.stage_steps=[2]")
    assert labse_run("pretrain", config_file, tmp_path / "run", *sets, init=pretrained_run) == 0


def test_refusals(trained_run, extended, config_file, tmp_path, capsys):
    tokens = wordpiece_file.read(extended)
    other = tmp_path / "other.txt"
    wordpiece_file.write(other, [*tokens[:-10], "zz"])
    assert train(config_file, trained_run, other, tmp_path / "run") == 2
    assert "labse vocab extend" in capsys.readouterr().err
    (tmp_path / "mfe.txt").write_text("Mo pe ale.\n", "utf-8")
    command = ["vocab", "extend", trained_run, "--text", tmp_path / "mfe.txt"]
    command += ["--out", tmp_path / "vocab.txt"]
    for options, message in (
        (["--add", "0"], "--add is 0"),
        (["--add", "5", "--languages", "ba"], "there is no text in ba"),
        (["--add", "5", "--languages", "xx"], "'xx' is not the code of a language"),
    ):
        assert message in refused(capsys, *command, *options)
