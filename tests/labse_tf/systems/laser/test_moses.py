"""Moses' words. Expected: what the Perl scripts of its release 4.0 print."""

from __future__ import annotations

import sys

import pytest

from labse_tf.errors import InputError
from labse_tf.systems.laser.moses import MosesTokenizer, normalize

ABBREVIATIONS = ["Dr", "z.B", "No #NUMERIC_ONLY#"]


def words(text, language):
    return MosesTokenizer(language, lambda _: ABBREVIATIONS)(normalize(text, language))


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Hello, it's 5 p.m. already!", "Hello , it 's 5 p.m. already !"),
        ("en", "the 1990's 'quoted' dogs'", "the 1990 's ' quoted ' dogs'"),
        ("fr", "l'été n'est pas «froid».", "l' été n' est pas \" froid \" ."),
        ("de", "das war's 'nicht'", "das war ' s ' nicht '"),
        # A full stop stays at an abbreviation, a number after it, and before a small letter.
        ("en", "Ask Dr. Who.", "Ask Dr. Who ."),
        ("en", "See No. 5, not No. Five.", "See No. 5 , not No . Five ."),
        ("en", "One. two. Three. Four", "One. two . Three . Four"),
        ("en", "The end ...and more.. Yes....", "The end ... and more .. Yes ...."),
        ("en", "1,000.5 a,b 3,x 7,", "1,000.5 a , b 3 , x 7 ,"),
        ("en", "he said \"no\". Then 'yes.'", "he said \" no . \" Then ' yes . '"),
        ("de", "er sagte „nein“, dann „ja.“", 'er sagte " nein " , dann " ja " .'),
        ("de", "12\u00a0000 und 5 %", "12,000 und 5 %"),
        ("ru", "12\u00a0000 и 5 %", "12.000 и 5 %"),
        ("cs", "řekl „ne“, 'ano'", "řekl \" ne \" , ' ano '"),
        ("hi", "हिन्दी।", "हिन ् दी ।"),
        ("ja", "猫は家を見ます。", "猫は家を見ます 。"),
        ("en", "a\u200bb\u0007 $5 <x> U.S.A. it", "a b $ 5 < x > U.S.A. it"),
        ("en", "", ""),
        ("en", " . ", "."),
    ],
)
def test_as_in_perl(language, text, expected):
    assert words(text, language) == expected


def test_abbreviations_are_those_of_the_language_or_of_english():
    asked = []
    for language in ("de", "hi", ""):
        MosesTokenizer(language, lambda name: asked.append(name) or [])
    assert asked == ["de", "en", "en"]


def test_abbreviations_of_sacremoses():
    pytest.importorskip("sacremoses", reason="sacremoses, an extra, is not installed")
    assert MosesTokenizer("de")("Das gilt bzw. Alles gilt.") == "Das gilt bzw. Alles gilt ."
    assert MosesTokenizer("en")("See No. 5 or No. Five") == "See No. 5 or No . Five"


def test_sacremoses_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses.corpus", None)
    with pytest.raises(InputError, match="abbreviations of sacremoses.*pip install sacremoses"):
        MosesTokenizer("en")
