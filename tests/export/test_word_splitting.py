"""The words that a vocabulary is counted from are those that an exported preprocessor looks up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest

from beam_pipelines.word_counts import WordCounter
from labse_tf.demo.corpus.sources import SOURCES, list_files, read_raw_pairs
from labse_tf.languages import LANGUAGES
from vocab import wordpiece_file
from vocab.wordpiece import WordPiece

# Where the packages below have nothing, or only names.
_BY_HAND = {
    "bo": ["བཀྲ་ཤིས་བདེ་ལེགས། ཁྱེད་རང་གི་མཚན་ལ་ག་རེ་ཟེར་གྱི་ཡོད།"],
    "ceb": ["Maayong buntag! Kumusta ka?", "Asa ang merkado, palihog?"],
    "co": ["Bonghjornu! Cumu stai?", "L'acqua hè fredda è u ventu hè forte."],
    "en": ["Don't panic: it's only 3.14% of $1,000 (or ~£785)…"],
    "haw": ["Aloha kakahiaka! Pehea ʻoe?", "He nani ke kai."],
    "hmn": ["Nyob zoo. Koj lub npe hu li cas?", "Kuv hais lus Hmoob."],
    "jv": ["Sugeng enjing! Piye kabare?", "Aku arep menyang pasar."],
    "la": ["Quid agis hodie?", "Gallia est omnis divisa in partes tres."],
    "mg": ["Manao ahoana ianao? Tsara fa misaotra.", "Mangatsiaka ny rano."],
    "ny": ["Muli bwanji? Ndili bwino, zikomo.", "Madzi akuzizira."],
    "sm": ["Talofa! O ā mai ʻoe?", "Fa'afetai tele lava."],
    "sn": ["Mangwanani! Makadii henyu?", "Mvura inotonhora."],
    "st": ["Lumela, ntate! U phela joang?", "Metsi a bata."],
    "su": ["Wilujeng énjing! Kumaha damang?", "Cai tiis pisan."],
    "yi": ["גוט־מאָרגן! ווי גייט עס אײַך?", "דאָס וואַסער איז קאַלט."],
}
# A spread of what there is.
_TEXTS_OF_A_LANGUAGE = 80


# Words with a vocabulary that has no spaces in its pieces.
split = WordPiece(["a"], max_bytes_per_word=600).words


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """Language -> messages of Django and names of CLDR, as the packages have them, not cleaned."""
    sources = {source.distribution: source for source in SOURCES}
    # The largest catalogue of each language is Django's own.
    catalogues = sorted(list_files(sources["Django"]), key=lambda file: file[0].stat().st_size)
    largest = {language: path for path, language in catalogues if language}
    found = defaultdict(list, {language: list(some) for language, some in _BY_HAND.items()})
    for language, path in largest.items():
        found[language] += [pair.foreign for pair in read_raw_pairs(path)]
    for locale, language in list_files(sources["babel"]):
        found[language] += [pair.foreign for pair in read_raw_pairs(locale)]
    return {
        language: some[:: math.ceil(len(some) / _TEXTS_OF_A_LANGUAGE)]
        for language, some in found.items()
    }


@pytest.fixture(scope="module")
def preprocessor(texts, tmp_path_factory):
    """An exported one, loaded again; every word of the texts is one piece of its vocabulary."""
    import tensorflow as tf

    from export.saved_models import save_preprocessor
    from labse_tf.tokenization.wordpiece import WordPieceTokenizer

    folder = tmp_path_factory.mktemp("splitting")
    words = {word for some in texts.values() for text in some for word in split(text)}
    wordpiece_file.write(folder / "vocab.txt", [*wordpiece_file.RESERVED_TOKENS, *sorted(words)])
    tokenizer = WordPieceTokenizer(folder / "vocab.txt", max_bytes_per_word=600)
    save_preprocessor(tokenizer, folder / "preprocessor", length=16)
    return tf.saved_model.load(str(folder / "preprocessor")), tokenizer.tokens


@pytest.mark.slow
def test_words_counted_are_words_looked_up(texts, preprocessor):
    """A word that is split otherwise would be no token, or another one."""
    import tensorflow as tf

    assert {language for language, some in texts.items() if some} == set(LANGUAGES)
    model, tokens = preprocessor
    for language, some in texts.items():
        looked_up = [
            [tuple(tokens[piece] for piece in word) for word in words]
            for words in model.tokenize(tf.constant(some)).to_list()
        ]
        assert looked_up == [[(word,) for word in split(text)] for text in some], language
        counter = WordCounter()
        counter.add(language, some)
        counted = counter.take()[language]
        assert counted == Counter(word for words in looked_up for (word,) in words), language
