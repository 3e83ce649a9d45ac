"""Scripts and languages of documents: what is clear, and what stays unclear."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.exploration.profile import Guess, guesses, main_script, scripts_of

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

#: The first article of the Universal Declaration of Human Rights.
ARTICLE = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience "
    "and should act towards one another in a spirit of brotherhood.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
    "und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
    "conciencia, deben comportarse fraternalmente los unos con los otros.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i "
    "sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
    "повинні діяти у відношенні один до одного в дусі братерства.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג "
    "איש ברעהו ברוח של אחוה.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
}
#: Languages without a list, or with relatives that have the same words.
UNCLEAR = (
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa. Wote wamejaliwa akili na dhamiri.",
    "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal dan hati "
    "nurani dan hendaknya bergaul satu sama lain dalam semangat persaudaraan.",
    "Сва људска бића рађају се слободна и једнака у достојанству и правима.",
    "Shr 34 cts vs 1.19 dlrs Net 807,000 vs 2,858,000",
    "12 345 678",
    "",
)


@pytest.mark.parametrize("code", ARTICLE)
def test_a_sentence_tells_its_language(code: str) -> None:
    (guess,) = guesses([ARTICLE[code]])
    assert guess.code == code
    assert 5 <= guess.hits <= guess.words


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_is_not_clear_is_not_guessed(text: str) -> None:
    (guess,) = guesses([text])
    assert (guess.code, guess.hits) == ("", 0)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße", "Latin"),
        ("ＦＵＬＬ ｗｉｄｔｈ ﬁne", "Latin"),
        ("Война и мир, 1869", "Cyrillic"),
        ("Ελληνικά", "Greek"),
        ("شبكة BBC العربية للأخبار والتقارير", "Arabic"),
        ("עברית", "Hebrew"),
        ("中文新闻报道今日头条 CCTV", "Han"),
        ("東京タワーに行く", "Kana"),
        ("ﾊﾝｶｸ ｶﾅ", "Kana"),
        ("한국어", "Hangul"),
        ("ภาษาไทย", "Thai"),
        ("हिन्दी", "Devanagari"),
        ("𞤀𞤣𞤤𞤢𞤥", "other"),
        ("Latin script и кириллица", "mixed"),
        ("🎉🎉 123 !? \u0000\u202e", "none"),
        ("", "none"),
    ],
)
def test_the_main_script_is_that_of_two_thirds_of_the_letters(text: str, script: str) -> None:
    assert main_script(text) == script


@given(st.lists(st.text(max_size=40), max_size=8))
def test_each_document_counts_once(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    found = scripts_of(texts, [str(at) for at in range(len(texts))])
    for counts in (found.scripts, found.languages):
        assert sum(one.documents for one in counts) == len(texts) == found.documents
        assert sum(one.share for one in counts) == pytest.approx(1.0 if texts else 0.0)
        assert [one.documents for one in counts] == sorted((one.documents for one in counts), reverse=True)
    assert [one.name for one in found.scripts] == sorted(
        {main_script(text) for text in texts},
        key=lambda name: (-sum(main_script(text) == name for text in texts), name),
    )


def test_a_language_is_written_in_its_script() -> None:
    arabic = "كرم قائد الطائرة طاقم الرحلة المتجهة إلى مطار الملك خالد الدولي بالرياض بعد عودته من المدرج "
    text = arabic * 5 + ARTICLE["en"]
    assert guesses([text])[0][:2] == ("Arabic", "")


def test_counts_have_names_codes_and_examples() -> None:
    texts = [ARTICLE["en"], ARTICLE["zh"], ARTICLE["en"], "12"]
    found = scripts_of(texts, ["a", "b", "c", "d"])
    assert [(one.name, one.documents, one.ids) for one in found.scripts] == [
        ("Latin", 2, ("a", "c")),
        ("Han", 1, ("b",)),
        ("none", 1, ("d",)),
    ]
    assert [(one.name, one.code, one.documents) for one in found.languages] == [
        ("English", "en", 2),
        ("Chinese", "zh", 1),
        ("unclear", "", 1),
    ]
    english = found.languages[0]
    assert english.hits == 100 * 20 / 30
    assert found.as_dict()["languages"][1]["hits"] > 0


def test_what_is_beyond_the_beginning_says_nothing() -> None:
    text = ARTICLE["en"] + " " * 2_000
    assert guesses([text + ARTICLE["de"] * 50]) == guesses([text]) == [Guess("Latin", "en", 20, 30)]


@pytest.mark.shared
@pytest.mark.skipif(not DATA.exists(), reason="the shared corpora are not there")
@pytest.mark.parametrize(
    ("name", "code", "right"), [("adzuna", "en", 0.99), ("reuters", "en", 0.94), ("saudinews", "ar", 0.92)]
)
def test_real_corpora_are_told(name: str, code: str, right: float) -> None:
    with gzip.open(DATA / name / f"{name}.jsonl.gz") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(2_500), lines, strict=False)]
    found = guesses(texts)
    assert sum(guess.code == code for guess in found) >= right * len(texts)
    assert sum(guess.code not in (code, "") for guess in found) <= 0.001 * len(texts)
