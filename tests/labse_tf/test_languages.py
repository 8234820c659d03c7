"""The 109 languages of the paper and the other names that corpora give them."""

from __future__ import annotations

import subprocess
import sys

import pycountry
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from labse_tf.errors import InputError
from labse_tf.languages import (
    LANGUAGES,
    find_code,
    find_paper_code,
    is_code,
    language_of,
    require_code,
    script_of,
    three_letter_code,
)

# The codes of the paper's appendix, written down independently of the module.
_PAPER = """
af am ar as az be bg bn bo bs ca ceb co cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha haw
he hi hmn hr ht hu hy id ig is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt
my ne nl no ny or pa pl pt ro ru rw si sk sl sm sn so sq sr st su sv sw ta te tg th tk tl tr tt ug
uk ur uz vi wo xh yi yo zh zu
"""
PAPER = _PAPER.split()


def test_the_languages_are_the_109_of_the_paper():
    assert len(LANGUAGES) == len(PAPER) == 109
    assert set(LANGUAGES) == set(PAPER)
    assert all(code == language.code for code, language in LANGUAGES.items())
    some = [("th", "Thai", "Thai"), ("gd", "Scottish Gaelic", "Latn"), ("zh", "Chinese", "Hani")]
    some += [("ja", "Japanese", "Jpan"), ("sr", "Serbian", "Cyrl"), ("ug", "Uyghur", "Arab")]
    assert [LANGUAGES[language[0]] for language in some] == some
    assert len({language.name for language in LANGUAGES.values()}) == 109
    for code in set(PAPER) - {"ceb", "haw", "hmn"}:
        language = pycountry.languages.get(alpha_2=code)
        assert find_code(language.alpha_3) == code
        assert find_code(getattr(language, "bibliographic", code)) == code


OTHER_NAMES = """
de=de DE=de pt_BR=pt pt-PT=pt zh-Hans=zh zh_Hant_TW=zh sr@latin=sr en_US.UTF-8=en nb=no nn_NO=no
iw=he in=id fil=tl cmn=zh ji=yi eng=en deu=de ger=de swh=sw nob=no zho_TW=zh
"""


OTHER_LANGUAGES = [
    ("mfe", "mfe", "Morisyen", "Latn"),
    ("bak", "ba", "Bashkir", "Cyrl"),
    ("bak_Cyrl", "ba", "Bashkir", "Cyrl"),
    ("san", "sa", "Sanskrit", "Deva"),
    ("crh-Cyrl", "crh", "Crimean Tatar", "Cyrl"),
    ("crh_Latn", "crh-Latn", "Crimean Tatar (Latin)", "Latn"),
    ("zh_yue", "yue", "Cantonese", "Hani"),
    ("zh_min_nan", "nan", "Min Nan Chinese", "Hani"),
    ("gsw-ZH", "gsw", "Swiss German", "Latn"),
    ("tlh", "tlh", "Klingon", "Zyyy"),
    ("arz", "arz", "Egyptian Arabic", "Arab"),
]


def test_other_names_and_languages():
    assert find_code(" de ") == "de"
    for given_, code in (entry.split("=") for entry in OTHER_NAMES.split()):
        assert find_code(given_) == require_code(given_) == code
    for given_, code, name, script in OTHER_LANGUAGES:
        assert find_code(given_) == require_code(given_) == code
        assert language_of(code) == (code, name, script)
        assert script_of(code) == script
        assert find_paper_code(given_) is None and is_code(code)
    for code, three in (("de", "deu"), ("tl", "tgl"), ("ba", "bak")):
        assert three_letter_code(code) == three and find_code(three) == code
    for code in ("de", "mfe", "ba", "crh-Latn", "yue", "sa", "zh", "nqo"):
        assert find_code(code) == code == find_code(code.upper().replace("-", "_"))


def test_another_language_is_said_once_and_a_script_needs_no_names(caplog):
    caplog.set_level("INFO")
    for code in ("ltg", "ltg", "lv", "ltg_Latn"):
        require_code(code)
    [record] = caplog.records
    assert record.message.startswith("'ltg' is Latgalian, not one of the 109 languages of LaBSE")
    # Each worker of a job would hold the names of all languages in all languages.
    program = (
        "import sys; from labse_tf.languages import script_of; assert script_of('mfe') == 'Latn'; "
        "assert not any('name_data' in module for module in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_codes():
    for code in ("xx", "", "qaa", "und", "german", "_de", "x-de", "d e"):
        assert find_code(code) is None
        with pytest.raises(InputError, match="code of a language") as caught:
            require_code(code, path="corpus.tsv", line=3)
        assert (caught.value.path, caught.value.line) == ("corpus.tsv", 3)
    with pytest.raises(InputError) as caught:
        require_code("haww")
    assert "haw" in caught.value.remedy


@given(
    code=st.sampled_from(PAPER),
    mark=st.sampled_from("-_@."),
    rest=st.text(st.characters(codec="utf-8")),
    upper=st.booleans(),
)
def test_any_subtag_is_dropped(code, mark, rest, upper):
    assert find_code((code.upper() if upper else code) + mark + rest) == code


def test_scripts_are_of_unicode():
    """But for the mixed ones of Japanese and Korean."""
    scripts = {language.script for language in LANGUAGES.values()}
    assert {"Jpan", "Kore"} <= scripts and len(scripts) == 26
    for script in scripts - {"Jpan", "Kore"}:
        assert regex.compile(rf"\p{{{script}}}")
