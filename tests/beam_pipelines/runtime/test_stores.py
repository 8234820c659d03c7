"""Jobs whose input and output are in object stores: the same bytes as on disk."""

from __future__ import annotations

import pytest
from stores import STORES, Unreliable, s3
from text_files import content_of, write_lines
from tiny_text import sentences_of

from beam_pipelines import build_vocab, embed_texts, filter_bitext, filter_monolingual
from labse_tf.cli.main import main
from labse_tf.errors import InputError

RAIN = "Rain falls on the old roof."
PAIRS = {
    "de": [(RAIN, "Regen fällt auf das alte Dach."), ("No.", "Nein.")],
    "ja": [(RAIN, "古い屋根に雨が降る。"), ("Good morning!", "おはよう！")],
}


@pytest.fixture(scope="module", params=["s3", pytest.param("gs", marks=pytest.mark.slow)])
def store(request):
    with STORES[request.param]() as one:
        yield one


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for language, pairs in PAIRS.items():
        write_lines(folder / f"{language}.tsv.gz", map("\t".join, pairs * 60))
        write_lines(folder / "text" / f"{language}.txt", sentences_of(language))
    return folder


def test_bitext(store, corpus, tmp_path):
    inputs = store.upload(corpus, "in")
    beam = {"beam_options": store.options}
    options = {"unique_side": "either", "scores": True, "max_per_language": 1}
    here = filter_bitext.run([str(corpus)], str(tmp_path / "clean"), **options)
    there = filter_bitext.run([f"{inputs}/*.tsv.gz"], f"{store.url}/clean", **beam, **options)
    assert there == here
    assert store.content("clean") == content_of(tmp_path / "clean")
    # The output of a job that has not ended is no input.
    for name, content in store.content("clean").items():
        if name != "report.json":
            store.put(f"unfinished/{name}", content)
    unfinished = f"{store.url}/unfinished"
    with pytest.raises(InputError, match=r"has no report\.json") as caught:
        build_vocab.run([unfinished], str(tmp_path / "v"), **beam)
    assert caught.value.path == unfinished
    with pytest.raises(InputError, match=r"has no report\.json"):
        filter_bitext.run([f"{unfinished}/scores"], "out", from_scores=True, **beam)
    # A failed job leaves nothing.
    store.put("broken/de.tsv", b"no tab\n")
    refused = {"broken": "one column", "nothing": "no such file", "in/*.txt": "no bitext files"}
    for name, message in refused.items():
        with pytest.raises(InputError, match=message):
            filter_bitext.run([f"{store.url}/{name}"], f"{store.url}/lost", **beam)
        assert store.content("lost") == {}
    # By the command, which replaces nothing unasked.
    command = ["corpus", "filter-bitext", f"{inputs}/de.tsv.gz", "--out", f"{store.url}/clean"]
    assert main([*command, "--", *store.options]) == 2
    assert main([*command, "--overwrite", "--", *store.options]) == 0
    assert "scores/de/part-00000-of-00001.parquet" not in store.content("clean")


@pytest.mark.slow
def test_text_then_vocabulary_and_counts(store, corpus, tmp_path):
    inputs = store.upload(corpus / "text", "lines")
    here = filter_monolingual.run([str(corpus / "text")], str(tmp_path / "lines"))
    clean = f"{store.url}/lines-clean"
    assert filter_monolingual.run([inputs], clean, beam_options=store.options) == here
    assert store.content("lines-clean") == content_of(tmp_path / "lines")
    sizes = {"vocab_size": 400, "max_unique_chars": 100}
    counts = f"{store.url}/counts"
    vocab = f"{store.url}/vocabularies/a.txt"
    tokens = build_vocab.run([clean], vocab, counts=counts, beam_options=store.options, **sizes)
    assert tokens == build_vocab.run([str(tmp_path / "lines")], str(tmp_path / "b"), **sizes)
    assert store.content("vocabularies") == {"a.txt": (tmp_path / "b").read_bytes()}
    # Reused: no count is written again.
    before = store.content("counts")
    assert all(before.values())
    again = build_vocab.run(
        [clean], str(tmp_path / "c"), counts=counts, beam_options=store.options, **sizes
    )
    assert again == tokens and store.content("counts") == before


@pytest.mark.slow
def test_vectors_by_a_model_in_the_store(store, corpus, model_dir, tmp_path):
    text, model = store.upload(corpus / "text", "sentences"), store.upload(model_dir, "model")
    here = embed_texts.run([str(corpus / "text")], str(tmp_path / "v"), model=str(model_dir))
    there = embed_texts.run([text], f"{store.url}/vectors", model=model, beam_options=store.options)
    assert there["model"] == {"path": model, "sha256": here["model"]["sha256"]}
    kept, expected = store.content("vectors"), content_of(tmp_path / "v")
    assert kept.pop("report.json") != expected.pop("report.json")  # The model's path.
    assert kept == expected


@pytest.mark.slow
def test_a_store_that_fails_and_stops_loses_nothing(corpus, tmp_path):
    unreliable = []

    def wrap(application):
        unreliable.append(Unreliable(application, stops_at=60, seconds=20))
        return unreliable[0]

    options = {"scores": True, "megabytes_per_shard": 1}
    here = filter_bitext.run([str(corpus)], str(tmp_path / "clean"), **options)
    with s3(wrap) as store:
        inputs, options["beam_options"] = store.upload(corpus, "unreliable-in"), store.options
        assert filter_bitext.run([inputs], f"{store.url}/unreliable", **options) == here
        assert store.content("unreliable") == content_of(tmp_path / "clean")
    assert unreliable[0].requests > 60 and unreliable[0].failed > 6


@pytest.mark.slow
def test_a_name_is_no_pattern(store, corpus):
    """Files that its signs would match stay as they are, and are no part of it."""
    name = "a* [v2]"
    others = [f"patterns/{one}/mine" for one in ("a v", "aXb 2", "a", "y")]
    for other in others:
        store.put(other, b"mine")
    inputs, out = store.upload(corpus, f"patterns/in {name}"), f"{store.url}/patterns/{name}"
    for _ in range(2):
        filter_bitext.run([inputs], out, beam_options=store.options, overwrite=True)
        assert {"report.json", "examples.md"} < store.content(f"patterns/{name}").keys()
    with pytest.raises(InputError, match="not empty"):
        filter_bitext.run([inputs], out, beam_options=store.options)
    assert [store.get(other) for other in others] == [b"mine"] * len(others)
