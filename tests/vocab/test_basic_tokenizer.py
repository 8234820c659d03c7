"""Word splitting: the same words as TensorFlow Text, on real text, any text and every character."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_text.python.ops.bert_tokenizer import BasicTokenizer

from vocab.basic_tokenizer import UNICODE_SPACE, has_other_space, plain_spaces, split_words

ORIGINAL = BasicTokenizer(lower_case=False)

SENTENCES = [
    "Don't panic: it's only 3.14% of $1,000 (or ~£785)…",
    "Ça coûte 5 € — « déjà vu », n'est-ce pas ?",
    "Straße, Größe und Äpfel",
    "Съешь ещё этих мягких булок, да выпей чаю!",
    "Ο ήλιος ανατέλλει· τι ώρα είναι;",
    "ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ",
    "ខ្ញុំអាចញុំកញ្ចក់បាន ដោយគ្មានបញ្ហា។",
    "ຂອ້ຍກິນແກ້ວໄດ້ໂດຍທີ່ມັນບໍ່ໄດ້ເຮັດໃຫ້ຂອ້ຍເຈັບ",
    "ကျွန်တော် ကျွန်မ မှန်စားနိုင်တယ်။",
    "أنا قادر على أكل الزجاج، ولا يؤلمني؟",
    "می\u200cخواهم کتاب\u200cها را بخوانم؛ خوب است.",
    'אני יכול לאכול זכוכית — ז"ל וצה״ל',
    "मैं काँच खा सकता हूँ। क्\u200dष और क्\u200cष",
    "আমি কাঁচ খেতে পারি, তাতে আমার কোনো ক্ষতি হয় না।",
    "நான் கண்ணாடி சாப்பிடுவேன்.",
    "నేను గాజు తినగలను మరియు అలా చేసినా నాకు ఏమి ఇబ్బంది లేదు",
    "我能吞下玻璃而不伤身体。今天天气很好!",
    "罕見字:㐀𠀀𪜀𫝀𫠠 豈 丽 and beyond: 𬺰𰀀",
    "私はガラスを食べられます。「カタカナ」と々〆ー。",
    "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요!",
    "ཤེལ་སྒོ་ཟ་ནས་ང་ན་གི་མ་རེད།",
    "ጠርሙስ መብላት እችላለሁ፡ ምንም አይጎዳኝም።",
    "მინას ვჭამ და არა მტკივა.",
    "Կրնամ ապակի ուտել և ինծի անհանգիստ չըներ։",
    "Би шил идэй чадна, надад хортой биш ᠪᠢ᠎ᠰᠢᠯᠢ",
    "I ❤️ 👩\u200d👩\u200d👧\u200d👦 and 👍🏽, not 🏳️\u200d🌈?",
    "no\u00a0break, ideo\u3000graphic, thin\u2009space, line\u2028separator",
    "soft\u00adhyphen, zero\u200bwidth, \ufeffmark, \u202eright-to-left\u202c",
    "tab\tnew\nline\rreturn\vvertical\ffeed\x00null\x7fdelete\x85next",
    "combining: e\u0301 n\u0303, halfwidth ｶﾀｶﾅ, fullwidth ＡＢＣ！（）",
    "[CLS] [unused1] ##piece user@example.org https://x.y/z?a=b#c C++ `code`",
    "   ",
    "",
]


def original_words(texts):
    batch = ORIGINAL.tokenize([text.encode("utf-8") for text in texts]).to_list()
    return [[word.decode("utf-8") for word in words] for words in batch]


def test_hand_worked_example():
    text = "Don't go\u00adin,\u00a0你好! "
    assert split_words(text) == ["Don", "'", "t", "go", "in", ",", "\u00a0", "你", "好", "!"]


def test_sentences_of_many_scripts():
    assert [split_words(text) for text in SENTENCES] == original_words(SENTENCES)


# Single characters of all kinds, with those that separate words and marks coming up often.
ANY_TEXT = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from(" \t\u00a0\u00ad\u200c.,$^'漢字あア한a")
)


@settings(max_examples=50)
@given(st.lists(ANY_TEXT, min_size=1, max_size=20))
def test_any_text(texts):
    assert [split_words(text) for text in texts] == original_words(texts)


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_every_code_point(step):
    """If this fails after an upgrade, a library now knows another version of Unicode.

    The spaces of TF's RE2 are those of `regex`, and Python's, control characters aside.
    """
    numbers = [n for n in range(0, 0x110000, step) if not 0xD800 <= n <= 0xDFFF]
    characters = list(map(chr, numbers))
    for start in range(0, len(characters), 1 << 16):
        texts = [f"a{character}b" for character in characters[start : start + (1 << 16)]]
        pairs = zip(texts, original_words(texts), strict=True)
        assert [hex(ord(text[1])) for text, words in pairs if split_words(text) != words] == []
    replaced = tf.strings.regex_replace(characters, UNICODE_SPACE, " ").numpy()
    assert [text.decode("utf-8") for text in replaced] == list(map(plain_spaces, characters))
    others = [char for char in characters if has_other_space(char)]
    assert others == [char for char in characters if char.isspace() and char > "\x9f"]
    assert step > 1 or len(others) == 18
