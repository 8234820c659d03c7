"""Text from WordPieces, in many scripts."""

from __future__ import annotations

import pytest

from labse_tf.tokenization.wordpiece import join_wordpieces


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("", ""),
        ("The cat ##s see it .", "The cats see it."),
        ('don \' t , he said : " no ! " , twice', 'don\'t, he said: "no!", twice'),
        ("( a ) [ b ] « c » “ d ”", "(a) [b] «c» “d”"),
        ("well - known and / or 50 %", "well-known and/or 50%"),
        ("¿ Dónde está ? ¡ Aquí !", "¿Dónde está? ¡Aquí!"),
        ("L ' été à Noël …", "L'été à Noël…"),
        ("猫 は 家 を ##見 ます 。", "猫は家を見ます。"),
        ("我 有 2 只 猫 ， 是 吗 ？", "我有 2 只猫，是吗？"),
        ("แมว ##เห็น บ้าน", "แมวเห็นบ้าน"),
        ("القطة ترى البيت ، أليس كذلك ؟", "القطة ترى البيت، أليس كذلك؟"),
        ("बिल्ली घर देखती है ।", "बिल्ली घर देखती है।"),
        ("Съешь ещё этих булок .", "Съешь ещё этих булок."),
        ("한국어 문장 ##입니다 .", "한국어 문장입니다."),
        ("##piece first", "piece first"),
        ("3 . 14 of 10 , 000 at 12 : 30 , in 2 , 5 .", "3.14 of 10,000 at 12:30, in 2,5."),
        ("in 1999 . 5 left", "in 1999.5 left"),  # It cannot know.
    ],
)
def test_text(tokens, text):
    assert join_wordpieces(tokens.split()) == text
