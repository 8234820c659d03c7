"""Languages of real sentences."""

from labse_tf.tokenization.language_id import identify

SENTENCES = {
    "en": "All human beings are born free and equal in dignity and rights.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "zh": "北京是中华人民共和国的首都，也是全国的政治中心、文化中心。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "am": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።",
    "no": "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter.",
    "he-yi": "יעדער מענטש ווערט געבוירן פֿרײַ און גלײַך אין כּבֿוד און רעכט.",
}


def test_sentences_in_many_scripts():
    found = dict(zip(SENTENCES, identify(list(SENTENCES.values())), strict=True))
    assert {name: language for name, (language, _) in found.items()} == {
        name: name.split("-")[-1] for name in SENTENCES
    }
    assert all(0.4 < probability <= 1 for _, probability in found.values())


def test_capitals_and_line_breaks_make_no_difference():
    text = SENTENCES["de"]
    [small, capitals, broken] = identify([text.lower(), text.upper(), text.replace(" ", "\n")])
    assert small == capitals
    assert broken == identify([text])[0]


def test_no_text_and_a_language_that_the_paper_lacks():
    bashkir = "Башҡортостан Республикаһы — Рәсәй Федерацияһы составындағы республика."
    assert [language for language, _ in identify(["", "   ", bashkir])] == [None, None, "ba"]
    assert identify([]) == []
