"""The quality model: trained on a small WARC, saved, loaded, broken, used as a filter."""

import json
import pickle

import numpy as np
import pytest
from web_pages import page, record

from beam_pipelines import filter_monolingual, quality_model, train_quality
from beam_pipelines.quality_model import BITS, QualityModel, hash_ngrams
from beam_pipelines.train_quality import Example, draw_sample
from labse_tf.cli.main import main
from labse_tf.errors import InputError

SUBJECTS = ("river", "mountain", "village", "forest", "museum", "harbour", "castle")
VERBS = ("was described", "has been visited", "is remembered", "had been forgotten")


def html(number):
    subject, verb = SUBJECTS[number % 7], VERBS[number % 4]
    paragraphs = (
        f"The {subject} {verb} by {count} travellers who came here in the year "
        f"{1700 + number * 3 + count}, and they wrote long letters about what they saw."
        for count in range(5)
    )
    words = ("Sign up now", "Cookie settings", "Share this", "Next page")
    items = (f"{word} | {subject} {number}-{n} » Log in" for n, word in enumerate(words))
    return page(paragraphs, "</li><li>".join(items))


@pytest.fixture(scope="module")
def warc(tmp_path_factory):
    path = tmp_path_factory.mktemp("quality") / "pages.warc"
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    pages = ((head + html(n), f"http://site{n % 6}.example/{n}") for n in range(60))
    path.write_bytes(b"".join(record(one.encode(), address=address) for one, address in pages))
    return path


@pytest.fixture(scope="module")
def model(warc):
    path = warc.parent / "model"
    train_quality.run([str(warc)], str(path))
    return path


def test_training_tells_the_classes_on_sites_not_seen(model, warc, tmp_path, capsys):
    facts = json.loads((model / "model.json").read_text(encoding="utf-8"))
    assert (facts["held_out"], facts["sites"], facts["pages"]) == ("site", 6, 60)
    assert facts["languages"]["all"]["auc"] > 0.99
    main(["corpus", "train-quality", str(warc), "--out", str(tmp_path / "again")])
    assert "60 pages of 6 sites; held out by site" in capsys.readouterr().out
    # The same pages give the same model.
    first, second = (np.load(path / "weights.npz") for path in (model, tmp_path / "again"))
    assert np.array_equal(first["weights"], second["weights"])


def test_the_filter_drops_what_is_bad(model, tmp_path):
    good = "The old bridge was described by many travellers who wrote letters about it."
    bad = "Sign up now | Cookie settings » Log in | Share this | Next page"
    (tmp_path / "en.txt").write_text(f"{good}\n{bad}\n")
    out, options = tmp_path / "out", {"quality": str(model)}
    report = filter_monolingual.run([str(tmp_path / "en.txt")], str(out), scores=True, **options)
    assert report["languages"]["en"]["dropped"]["low_quality"] == 1
    assert f"\n| en | {bad[:11]}" in (out / "examples.md").read_text(encoding="utf-8")
    # The limit moves without scoring again.
    options |= {"min_quality": 0.0, "from_scores": True}
    again = filter_monolingual.run([f"{out}/scores"], str(tmp_path / "again"), **options)
    assert again["languages"]["en"]["kept"] == 2


def test_scores_worked_by_hand(tmp_path):
    # n-grams of "<edge>a<edge>": 3 + 2 + 1 of lengths 1 to 3, none of 4.
    hashes, places = hash_ngrams(["a"])
    assert len(hashes) == 6 and not places.any()
    weights = np.zeros(1 << BITS, np.float32)
    weights[hashes] = 1.0
    quality_model.save(QualityModel(weights, -1.0), tmp_path, {"note": "made"})
    loaded = quality_model.load(tmp_path)
    assert loaded.bias == -1.0 and np.array_equal(loaded.weights, weights)
    expected = 1 / (1 + np.exp(1.0 - 6 / np.sqrt(6)))
    assert loaded.score(["a"]) == pytest.approx([expected])
    assert loaded.score([]).shape == (0,)
    texts = ["a", "Ünïcode", "", "日本語のテキスト", "a"]
    apart = np.concatenate([loaded.score([text]) for text in texts])
    assert loaded.score(texts) == pytest.approx(apart)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("weights.npz", b"PK\3\4", "is not a quality model"),
        ("weights.npz", pickle.dumps({"weights": 1}), "is not a quality model"),
        ("weights.npz", None, "is not a quality model"),
        ("model.json", b"{", "is not a quality model"),
        ("model.json", b'{"features": {"min_n": 2}}', "of another version"),
    ],
)
def test_broken_models_are_the_users_error(tmp_path, name, content, problem):
    quality_model.save(QualityModel(np.zeros(1 << BITS, np.float32), 0.0), tmp_path, {})
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        filter_monolingual.run(["en.txt"], str(tmp_path / "out"), quality=str(tmp_path))
    assert caught.value.path == str(tmp_path)


def test_too_few_pages(tmp_path, warc):
    data = warc.read_bytes()
    few = tmp_path / "few.warc"
    few.write_bytes(data[: data.index(b"WARC/1", 2000)])
    with pytest.raises(InputError, match="main content on"):
        train_quality.run([str(few)], str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_samples_are_bounded_and_independent_of_the_order():
    def sample(*texts):
        found = (Example(text, is_main, "site", "page", "en") for text, is_main in texts)
        return draw_sample(found, 100)

    texts = [(f"text {number}", bool(number % 2)) for number in range(500)]
    one, other = set(sample(*texts)), set(sample(*texts[::-1]))
    assert one == other and 20 < len(one) <= 100
    # A text in both classes is what it is most often.
    found = sample(*(("menu", no) for no in (0, 1, 0)), ("tie", False), ("tie", True))
    assert {one.text: one.is_main for one in found} == {"menu": False, "tie": True}
