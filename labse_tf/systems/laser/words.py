"""Text as words, as LASER's encoder of 2018 was trained on them.

The order is that of `Token` in source/lib/text_processing.py of facebookresearch/LASER: Moses'
words; of these Jieba's in Chinese and MeCab's, with its IPA dictionary, in Japanese; Greek in Latin
letters; lower case. The packages that do so are only needed for text that has such letters.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import regex

from labse_tf.errors import InputError
from labse_tf.languages import find_code
from labse_tf.systems.laser.moses import MosesTokenizer, normalize
from labse_tf.tokenization.language_id import identify

_CHINESE = regex.compile(r"\p{Han}")
_JAPANESE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_GREEK = regex.compile(r"\p{Greek}")
# LASER takes these for Mandarin.
_ALSO_CHINESE = ("wuu", "yue")


class LaserWords:
    """Splits text into words of one language, or of the language that each text seems to have."""

    def __init__(self, language: str | None = None) -> None:
        """Checks the language.

        Args:
          language: its code; None: identified for each text. A wrong one changes little but in
            Chinese, Japanese and Greek, and for apostrophes in English, French, Italian and Irish.

        Raises:
          InputError: if it is no code of two or three letters.
        """
        self._language = None if language is None else _code(language)
        self._tokenizer = functools.cache(MosesTokenizer)

    def __call__(self, text: str) -> list[str]:
        """Returns the words of one text, in lower case.

        Raises:
          InputError: if a package is missing that its language needs.
        """
        if not text.strip():
            return []
        # Of no language that is known, "": Moses' rules for all others.
        language = self._language or identify([text])[0][0] or ""
        text = self._tokenizer(language)(normalize(text, language))
        if language in _FURTHER:
            letters, change = _FURTHER[language]
            text = change()(text) if letters.search(text) else text
        return text.lower().split()


def _code(language: str) -> str:
    if not regex.fullmatch("[a-z]{2,3}", language):
        raise InputError(f"--language is {language!r}", remedy="give a code such as fr or ceb")
    return "zh" if language in _ALSO_CHINESE else find_code(language) or language


@functools.cache
def _jieba() -> Callable[[str], str]:
    jieba = _import("jieba", what="Chinese", packages="jieba")
    jieba.setLogLevel("WARNING")
    return lambda text: " ".join(jieba.cut(text))


@functools.cache
def _mecab() -> Callable[[str], str]:
    needs = {"what": "Japanese", "packages": "mecab-python3 ipadic"}
    mecab, ipadic = _import("MeCab", **needs), _import("ipadic", **needs)
    return mecab.Tagger(f"-O wakati -b 50000 {ipadic.MECAB_ARGS}").parse


@functools.cache
def _latin() -> Callable[[str], str]:
    transliterate = _import("transliterate", what="Greek", packages="transliterate")
    return lambda text: transliterate.translit(text, "el", reversed=True)


# Language -> the letters of which a text must have one, and what gives the function to call then.
_FURTHER = {"zh": (_CHINESE, _jieba), "ja": (_JAPANESE, _mecab), "el": (_GREEK, _latin)}


def _import(module: str, *, what: str, packages: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"text in {what} needs a package that is missing ({error})",
            remedy=f"pip install {packages}",
        ) from error
