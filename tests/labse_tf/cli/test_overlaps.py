"""An output is never an input, nor does it replace one: refused before anything is touched."""

from __future__ import annotations

import os

import pytest
from command_line import refused

from beam_pipelines import build_vocab, embed_texts, filter_bitext
from labse_tf.errors import InputError
from labse_tf.files.outputs import check_apart
from labse_tf.systems.cds import score_job as score_cds

# Folders and files that stand for corpora, models and runs; nothing is read before the refusal.
FILES = {
    "my/text/de.txt": "Der Fluß ist größer als gestern.\n",
    "my/text/ar.txt": "القطار يصل بعد ساعة.\n",
    "my/pairs/ru.tsv": "We meet at noon.\tМы встречаемся в полдень.\n",
    "my/pairs/scored.tsv": "x\ty\n",
    "elsewhere/ja.txt": "明日は雨が降る。\n",
    "model/model.json": "{}",
    "model/encoder/saved_model.pb": "x",
    "run/config.yaml": "languages: [de]\n",
    "run/vocab.txt": "[PAD]\n",
    "run/checkpoints/ckpt-1.index": "x",
    "results/sts.json": "{}",
    "own.yaml": "train: {bitext: [my/pairs], dev: ['my/*.d']}\nlaser: {target_bitext: [es=es]}\n",
    "es/fr.tsv": "uno\tun\n",
    "plan.yaml": "seed: 1\n",
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "link").symlink_to("my")
    (tmp_path / "link.txt").symlink_to("my/text/de.txt")
    (tmp_path / "my" / "text" / "ja.txt").symlink_to("../../elsewhere/ja.txt")
    os.link(tmp_path / "my/text/de.txt", tmp_path / "same.txt")
    yield tmp_path
    assert {name: (tmp_path / name).read_text("utf-8") for name in FILES} == FILES
    kept = {*FILES, "link.txt", "same.txt", "my/text/ja.txt"}
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == kept


COMMANDS = """
corpus filter-bitext my --out my
corpus filter-bitext my/pairs --out link
corpus filter-bitext my/*/*.tsv --out my
corpus filter-bitext my/pairs --out file://localhost{here}/m%79
corpus filter-bitext s3://b/my/pairs --out S3://b/my/
corpus filter-bitext my/pairs/ru.tsv --cds run --out run
corpus filter-monolingual my/text --quality model --out model
corpus embed my/text --model model --out model
corpus score-cds run my/pairs --out my/pairs/ru.tsv
corpus train-cds --noisy my/pairs --trusted es --run-dir es
corpus train-quality my --out my
corpus perturb my/text/de.txt --out same.txt
vocab build my/text --out my/text/de.txt
vocab coverage run/vocab.txt my --out run/vocab.txt
vocab extend run/vocab.txt --text my --add 5 --out run/vocab.txt
vocab extend model --text my/text/de.txt --add 5 --out link.txt
train-laser own.yaml --run-dir es
train plan.yaml --run-dir my --set train.evaluate=[tatoeba=my/pairs]
train plan.yaml --run-dir run --set tokenizer.vocab_file=run/vocab.txt
pretrain plan.yaml --run-dir . --set pretrain.monolingual=['my/text/*.txt']
train plan.yaml --run-dir run --init run
distill plan.yaml --teacher model --run-dir model
mine-negatives my/pairs --model model --out model
export run --out run
export run --out results --results results/sts.json
import-hf model --out model
import-laser my/text/de.txt my/text/ar.txt --out my/text
embed model my/text/de.txt --out my/text/de.txt
mine model my/text/de.txt my/text/ar.txt --out my/text/ar.txt
mine my/text/de.txt my/text/ar.txt --embeddings es/fr.tsv es/fr.tsv --out es/fr.tsv
score model my/pairs/ru.tsv --out my/pairs/ru.tsv
translate run my/text/de.txt --to en --out my/text/de.txt
eval sts model --data my --out my/pairs/scored.tsv
eval un model --data my --work my
"""
WITHOUT_OVERWRITE = """
train plan.yaml --run-dir run --init link/../run
eval all model --data my --out my
eval un model --data my --work link
corpus filter-bitext results.partial --out results
"""


def test_every_command_refuses(capsys, place):
    for command in COMMANDS.strip().splitlines():
        message = refused(capsys, *command.format(here=place).split(), "--overwrite")
        assert "would replace the input" in message or "is the same file" in message, command
    (place / "results.partial").mkdir()
    for command in WITHOUT_OVERWRITE.strip().splitlines():
        assert "would replace the input" in refused(capsys, *command.split()), command
    (place / "results.partial").rmdir()


def test_what_is_read_in_a_new_place_stays_allowed(place):
    for output, one in [
        ("my/clean", "my"),
        ("run/model", "run"),
        ("model/new.npy", "model"),
        ("results/sts.json", "results"),
        ("other", "my"),
        ("my.txt", "my"),
        ("my2", "my"),
        ("s3://b/my/clean", "s3://b/my"),
        ("s3://b/my2", "s3://b/my"),
        ("gs://b/my", "s3://b/my"),
        ("new", "module:attribute"),
    ]:
        check_apart(output, [one], overwrite=True)
    check_apart("run", ["run/vocab.txt"])  # A run that is resumed.


def test_the_jobs_refuse_in_python_too(place):
    for run in (filter_bitext.run, build_vocab.run):
        with pytest.raises(InputError, match="input"):
            run(["my/pairs", "my/text/de.txt"], "my/text/de.txt", overwrite=True)
    with pytest.raises(InputError, match="input"):
        filter_bitext.run(["my/pairs"], "link", overwrite=True)
    with pytest.raises(InputError, match="input"):
        embed_texts.run(["my/text"], "model", model="model/encoder", overwrite=True)
    with pytest.raises(InputError, match="input"):
        score_cds.run("run", ["my/pairs/ru.tsv"], "my/pairs/ru.tsv", overwrite=True)
