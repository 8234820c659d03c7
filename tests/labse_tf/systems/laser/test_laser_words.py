"""Words as LASER's encoder of 2018 has them; with the optional packages that are installed."""

from __future__ import annotations

import sys

import pytest

from labse_tf.errors import InputError
from labse_tf.systems.laser import moses
from labse_tf.systems.laser.words import _FURTHER, LaserWords

FRENCH = "L'été dernier, j'ai vu l'océan avec mes amis."
ENGLISH = "It's what the dog's owner didn't expect from the others."


@pytest.fixture(autouse=True)
def no_abbreviations(monkeypatch):
    """Those of sacremoses are not needed here."""
    monkeypatch.setattr(moses, "_of_sacremoses", lambda language: [])
    for _, change in _FURTHER.values():
        change.cache_clear()


def words(text, language=None):
    return " ".join(LaserWords(language)(text))


def test_words_of_a_language():
    assert words("L'ÉTÉ, c'est «ça».", "fr") == "l' été , c' est \" ça \" ."
    assert words("L'ÉTÉ, c'est «ça».", "en") == "l 'été , c 'est \" ça . \""
    # Of no rules of its own.
    assert words("D'Ar Mor.", "br") == "d ' ar mor ."
    assert words("  ") == words("", "el") == ""


def test_the_language_is_found():
    assert words(FRENCH) == words(FRENCH, "fr") != words(FRENCH, "en")
    assert words(ENGLISH) == words(ENGLISH, "en") != words(ENGLISH, "de")


def test_codes_of_three_letters():
    assert words(FRENCH, "fra") == words(FRENCH, "fr")
    for code in ("", "French", "FR", "f", "pt_BR"):
        with pytest.raises(InputError, match="--language is .*; give a code such as fr"):
            LaserWords(code)


@pytest.mark.parametrize(
    ("language", "module", "text", "message"),
    [
        ("zh", "jieba", "我们见面。", "text in Chinese needs .*; pip install jieba"),
        ("yue", "jieba", "我们见面。", "text in Chinese needs .*; pip install jieba"),
        ("ja", "MeCab", "猫を見る。", "in Japanese .*; pip install mecab-python3 ipadic"),
        ("ja", "ipadic", "ねこ", "in Japanese .*; pip install mecab-python3 ipadic"),
        ("el", "transliterate", "Το τρένο", "in Greek .*; pip install transliterate"),
    ],
)
def test_a_missing_package_is_named(language, module, text, message, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    other = {"MeCab": "ipadic", "ipadic": "MeCab"}.get(module)
    if other:  # So that the one is missing, and not both.
        monkeypatch.setitem(sys.modules, other, sys)
    with pytest.raises(InputError, match=message):
        LaserWords(language)(text)
    # Without such letters it is not needed.
    assert words("OK, 12!", language) == "ok , 12 !"


def test_greek_in_latin_letters():
    pytest.importorskip("transliterate", reason="transliterate, an extra, is not installed")
    # Theta, accents and the final sigma; Latin stays.
    assert words("Θέλω ψωμί, OK; Ναός", "el") == "thelo psomi , ok ; naos"
    assert words("Το τρένο φεύγει στις οκτώ.") == words("Το τρένο φεύγει στις οκτώ.", "el")


def test_chinese_words():
    pytest.importorskip("jieba", reason="jieba, an extra, is not installed")
    # Of Jieba's readme.
    assert words("我来到北京清华大学", "zh") == "我 来到 北京 清华大学"
    assert words("我们在图书馆见面。") == words("我们在图书馆见面。", "zh")


def test_japanese_words():
    pytest.importorskip("MeCab", reason="mecab-python3, an extra, is not installed")
    pytest.importorskip("ipadic", reason="ipadic, an extra, is not installed")
    # Of MeCab's manual.
    assert words("すもももももももものうち", "ja") == "すもも も もも も もも の うち"
    assert words("明日は雨が降るでしょう。") == words("明日は雨が降るでしょう。", "ja")
