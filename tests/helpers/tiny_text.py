"""The sentences that the tests share: tiny parallel corpora, and text of many scripts."""

from __future__ import annotations

import itertools

# English, then the same animals and things in each language; templates below.
_ANIMALS = {
    "en": ["cat", "dog", "bird", "horse", "fish", "cow", "mouse", "wolf"],
    "de": ["Katze", "Hund", "Vogel", "Pferd", "Fisch", "Kuh", "Maus", "Wolf"],
    "fr": ["chat", "chien", "oiseau", "cheval", "poisson", "vache", "souris", "loup"],
    "ja": ["猫", "犬", "鳥", "馬", "魚", "牛", "鼠", "狼"],
    "ar": ["قطة", "كلب", "طائر", "حصان", "سمكة", "بقرة", "فأر", "ذئب"],
    "th": ["แมว", "หมา", "นก", "ม้า", "ปลา", "วัว", "หนู", "หมาป่า"],
    "ru": ["кошка", "собака", "птица", "лошадь", "рыба", "корова", "мышь", "волк"],
}
_THINGS = {
    "en": ["house", "tree", "river", "moon", "bread", "book"],
    "de": ["Haus", "Baum", "Fluss", "Mond", "Brot", "Buch"],
    "fr": ["maison", "arbre", "rivière", "lune", "pain", "livre"],
    "ja": ["家", "木", "川", "月", "パン", "本"],
    "ar": ["بيت", "شجرة", "نهر", "قمر", "خبز", "كتاب"],
    "th": ["บ้าน", "ต้นไม้", "แม่น้ำ", "พระจันทร์", "ขนมปัง", "หนังสือ"],
    "ru": ["дом", "дерево", "река", "луна", "хлеб", "книга"],
}
_TEMPLATES = {
    "en": "{} and {}.",
    "de": "{} und {}.",
    "fr": "{} et {}.",
    "ja": "{}と{}。",
    "ar": "{} و{}.",
    "th": "{}กับ{}",
    "ru": "{} и {}.",
}
LANGUAGES = tuple(_TEMPLATES)
FOREIGN = ("ar", "de", "fr", "ja", "ru", "th")

# One sentence a script, and what trips tokenisers: accents, joined marks, emoji, digits, long runs.
SENTENCES = (
    "The cat sees the house, doesn't it?",
    "Größe, Straße und Übermut kosten 12,50 €.",
    "L'été à Noël: déjà vu, garçon naïf.",
    "Tiếng Việt có nhiều dấu thanh.",
    "Съешь ещё этих мягких французских булок.",
    "Η γρήγορη αλεπού πηδάει.",
    "القطة ترى البيت الكبير.",
    "השועל המהיר קופץ.",
    "猫は家を見ます。カタカナも。",
    "我能吞下玻璃而不伤身体。",
    "한국어 문장입니다.",
    "แมวเห็นบ้านหลังใหญ่",
    "बिल्ली घर देखती है।",
    "பூனை வீட்டைப் பார்க்கிறது.",
    "ქართული ენა",
    "አማርኛ ቋንቋ ነው።",
    "e\u0301 is not é, and 👍🏽 is one sign.",
)


def sentences_of(language: str) -> list[str]:
    """The 48 sentences of a language; the same index is the same meaning in every language."""
    pairs = itertools.product(_ANIMALS[language], _THINGS[language])
    return [_TEMPLATES[language].format(*pair) for pair in pairs]
