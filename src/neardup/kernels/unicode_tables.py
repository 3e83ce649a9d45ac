"""Unicode data of the normalizers: classes, case folding, composition and ignorable code points, and kernel tables.

All is the same in every version of Python. A newer version knows more characters than Unicode 14.0, the version of the
oldest supported Python. So each code point that Unicode 14.0 leaves unassigned is treated as most of them turn out to
be, whether the running Python knows it or not. Noncharacters, which are never assigned, are not affected.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import Bools, Bytes, Integers

#: The code points of planes 0 to 3 that Unicode 14.0 leaves unassigned, as runs of hexadecimal numbers.
_UNASSIGNED_RUNS = """
378-379 380-383 38B 38D 3A2 530 557-558 58B-58C 590 5C8-5CF 5EB-5EE 5F5-5FF 70E 74B-74C 7B2-7BF 7FB-7FC 82E-82F
83F 85C-85D 85F 86B-86F 88F 892-897 984 98D-98E 991-992 9A9 9B1 9B3-9B5 9BA-9BB 9C5-9C6 9C9-9CA 9CF-9D6 9D8-9DB
9DE 9E4-9E5 9FF-A00 A04 A0B-A0E A11-A12 A29 A31 A34 A37 A3A-A3B A3D A43-A46 A49-A4A A4E-A50 A52-A58 A5D A5F-A65
A77-A80 A84 A8E A92 AA9 AB1 AB4 ABA-ABB AC6 ACA ACE-ACF AD1-ADF AE4-AE5 AF2-AF8 B00 B04 B0D-B0E B11-B12 B29 B31
B34 B3A-B3B B45-B46 B49-B4A B4E-B54 B58-B5B B5E B64-B65 B78-B81 B84 B8B-B8D B91 B96-B98 B9B B9D BA0-BA2 BA5-BA7
BAB-BAD BBA-BBD BC3-BC5 BC9 BCE-BCF BD1-BD6 BD8-BE5 BFB-BFF C0D C11 C29 C3A-C3B C45 C49 C4E-C54 C57 C5B-C5C
C5E-C5F C64-C65 C70-C76 C8D C91 CA9 CB4 CBA-CBB CC5 CC9 CCE-CD4 CD7-CDC CDF CE4-CE5 CF0 CF3-CFF D0D D11 D45 D49
D50-D53 D64-D65 D80 D84 D97-D99 DB2 DBC DBE-DBF DC7-DC9 DCB-DCE DD5 DD7 DE0-DE5 DF0-DF1 DF5-E00 E3B-E3E E5C-E80
E83 E85 E8B EA4 EA6 EBE-EBF EC5 EC7 ECE-ECF EDA-EDB EE0-EFF F48 F6D-F70 F98 FBD FCD FDB-FFF 10C6 10C8-10CC
10CE-10CF 1249 124E-124F 1257 1259 125E-125F 1289 128E-128F 12B1 12B6-12B7 12BF 12C1 12C6-12C7 12D7 1311 1316-1317
135B-135C 137D-137F 139A-139F 13F6-13F7 13FE-13FF 169D-169F 16F9-16FF 1716-171E 1737-173F 1754-175F 176D 1771
1774-177F 17DE-17DF 17EA-17EF 17FA-17FF 181A-181F 1879-187F 18AB-18AF 18F6-18FF 191F 192C-192F 193C-193F 1941-1943
196E-196F 1975-197F 19AC-19AF 19CA-19CF 19DB-19DD 1A1C-1A1D 1A5F 1A7D-1A7E 1A8A-1A8F 1A9A-1A9F 1AAE-1AAF 1ACF-1AFF
1B4D-1B4F 1B7F 1BF4-1BFB 1C38-1C3A 1C4A-1C4C 1C89-1C8F 1CBB-1CBC 1CC8-1CCF 1CFB-1CFF 1F16-1F17 1F1E-1F1F 1F46-1F47
1F4E-1F4F 1F58 1F5A 1F5C 1F5E 1F7E-1F7F 1FB5 1FC5 1FD4-1FD5 1FDC 1FF0-1FF1 1FF5 1FFF 2065 2072-2073 208F 209D-209F
20C1-20CF 20F1-20FF 218C-218F 2427-243F 244B-245F 2B74-2B75 2B96 2CF4-2CF8 2D26 2D28-2D2C 2D2E-2D2F 2D68-2D6E
2D71-2D7E 2D97-2D9F 2DA7 2DAF 2DB7 2DBF 2DC7 2DCF 2DD7 2DDF 2E5E-2E7F 2E9A 2EF4-2EFF 2FD6-2FEF 2FFC-2FFF 3040
3097-3098 3100-3104 3130 318F 31E4-31EF 321F A48D-A48F A4C7-A4CF A62C-A63F A6F8-A6FF A7CB-A7CF A7D2 A7D4 A7DA-A7F1
A82D-A82F A83A-A83F A878-A87F A8C6-A8CD A8DA-A8DF A954-A95E A97D-A97F A9CE A9DA-A9DD A9FF AA37-AA3F AA4E-AA4F
AA5A-AA5B AAC3-AADA AAF7-AB00 AB07-AB08 AB0F-AB10 AB17-AB1F AB27 AB2F AB6C-AB6F ABEE-ABEF ABFA-ABFF D7A4-D7AF
D7C7-D7CA D7FC-D7FF FA6E-FA6F FADA-FAFF FB07-FB12 FB18-FB1C FB37 FB3D FB3F FB42 FB45 FBC3-FBD2 FD90-FD91 FDC8-FDCE
FE1A-FE1F FE53 FE67 FE6C-FE6F FE75 FEFD-FEFE FF00 FFBF-FFC1 FFC8-FFC9 FFD0-FFD1 FFD8-FFD9 FFDD-FFDF FFE7 FFEF-FFF8
1000C 10027 1003B 1003E 1004E-1004F 1005E-1007F 100FB-100FF 10103-10106 10134-10136 1018F 1019D-1019F 101A1-101CF
101FE-1027F 1029D-1029F 102D1-102DF 102FC-102FF 10324-1032C 1034B-1034F 1037B-1037F 1039E 103C4-103C7 103D6-103FF
1049E-1049F 104AA-104AF 104D4-104D7 104FC-104FF 10528-1052F 10564-1056E 1057B 1058B 10593 10596 105A2 105B2 105BA
105BD-105FF 10737-1073F 10756-1075F 10768-1077F 10786 107B1 107BB-107FF 10806-10807 10809 10836 10839-1083B
1083D-1083E 10856 1089F-108A6 108B0-108DF 108F3 108F6-108FA 1091C-1091E 1093A-1093E 10940-1097F 109B8-109BB
109D0-109D1 10A04 10A07-10A0B 10A14 10A18 10A36-10A37 10A3B-10A3E 10A49-10A4F 10A59-10A5F 10AA0-10ABF 10AE7-10AEA
10AF7-10AFF 10B36-10B38 10B56-10B57 10B73-10B77 10B92-10B98 10B9D-10BA8 10BB0-10BFF 10C49-10C7F 10CB3-10CBF
10CF3-10CF9 10D28-10D2F 10D3A-10E5F 10E7F 10EAA 10EAE-10EAF 10EB2-10EFF 10F28-10F2F 10F5A-10F6F 10F8A-10FAF
10FCC-10FDF 10FF7-10FFF 1104E-11051 11076-1107E 110C3-110CC 110CE-110CF 110E9-110EF 110FA-110FF 11135 11148-1114F
11177-1117F 111E0 111F5-111FF 11212 1123F-1127F 11287 11289 1128E 1129E 112AA-112AF 112EB-112EF 112FA-112FF 11304
1130D-1130E 11311-11312 11329 11331 11334 1133A 11345-11346 11349-1134A 1134E-1134F 11351-11356 11358-1135C
11364-11365 1136D-1136F 11375-113FF 1145C 11462-1147F 114C8-114CF 114DA-1157F 115B6-115B7 115DE-115FF 11645-1164F
1165A-1165F 1166D-1167F 116BA-116BF 116CA-116FF 1171B-1171C 1172C-1172F 11747-117FF 1183C-1189F 118F3-118FE
11907-11908 1190A-1190B 11914 11917 11936 11939-1193A 11947-1194F 1195A-1199F 119A8-119A9 119D8-119D9 119E5-119FF
11A48-11A4F 11AA3-11AAF 11AF9-11BFF 11C09 11C37 11C46-11C4F 11C6D-11C6F 11C90-11C91 11CA8 11CB7-11CFF 11D07 11D0A
11D37-11D39 11D3B 11D3E 11D48-11D4F 11D5A-11D5F 11D66 11D69 11D8F 11D92 11D99-11D9F 11DAA-11EDF 11EF9-11FAF
11FB1-11FBF 11FF2-11FFE 1239A-123FF 1246F 12475-1247F 12544-12F8F 12FF3-12FFF 1342F 13439-143FF 14647-167FF
16A39-16A3F 16A5F 16A6A-16A6D 16ABF 16ACA-16ACF 16AEE-16AEF 16AF6-16AFF 16B46-16B4F 16B5A 16B62 16B78-16B7C
16B90-16E3F 16E9B-16EFF 16F4B-16F4E 16F88-16F8E 16FA0-16FDF 16FE5-16FEF 16FF2-16FFF 187F8-187FF 18CD6-18CFF
18D09-1AFEF 1AFF4 1AFFC 1AFFF 1B123-1B14F 1B153-1B163 1B168-1B16F 1B2FC-1BBFF 1BC6B-1BC6F 1BC7D-1BC7F 1BC89-1BC8F
1BC9A-1BC9B 1BCA4-1CEFF 1CF2E-1CF2F 1CF47-1CF4F 1CFC4-1CFFF 1D0F6-1D0FF 1D127-1D128 1D1EB-1D1FF 1D246-1D2DF
1D2F4-1D2FF 1D357-1D35F 1D379-1D3FF 1D455 1D49D 1D4A0-1D4A1 1D4A3-1D4A4 1D4A7-1D4A8 1D4AD 1D4BA 1D4BC 1D4C4 1D506
1D50B-1D50C 1D515 1D51D 1D53A 1D53F 1D545 1D547-1D549 1D551 1D6A6-1D6A7 1D7CC-1D7CD 1DA8C-1DA9A 1DAA0 1DAB0-1DEFF
1DF1F-1DFFF 1E007 1E019-1E01A 1E022 1E025 1E02B-1E0FF 1E12D-1E12F 1E13E-1E13F 1E14A-1E14D 1E150-1E28F 1E2AF-1E2BF
1E2FA-1E2FE 1E300-1E7DF 1E7E7 1E7EC 1E7EF 1E7FF 1E8C5-1E8C6 1E8D7-1E8FF 1E94C-1E94F 1E95A-1E95D 1E960-1EC70
1ECB5-1ED00 1ED3E-1EDFF 1EE04 1EE20 1EE23 1EE25-1EE26 1EE28 1EE33 1EE38 1EE3A 1EE3C-1EE41 1EE43-1EE46 1EE48 1EE4A
1EE4C 1EE50 1EE53 1EE55-1EE56 1EE58 1EE5A 1EE5C 1EE5E 1EE60 1EE63 1EE65-1EE66 1EE6B 1EE73 1EE78 1EE7D 1EE7F 1EE8A
1EE9C-1EEA0 1EEA4 1EEAA 1EEBC-1EEEF 1EEF2-1EFFF 1F02C-1F02F 1F094-1F09F 1F0AF-1F0B0 1F0C0 1F0D0 1F0F6-1F0FF
1F1AE-1F1E5 1F203-1F20F 1F23C-1F23F 1F249-1F24F 1F252-1F25F 1F266-1F2FF 1F6D8-1F6DC 1F6ED-1F6EF 1F6FD-1F6FF
1F774-1F77F 1F7D9-1F7DF 1F7EC-1F7EF 1F7F1-1F7FF 1F80C-1F80F 1F848-1F84F 1F85A-1F85F 1F888-1F88F 1F8AE-1F8AF
1F8B2-1F8FF 1FA54-1FA5F 1FA6E-1FA6F 1FA75-1FA77 1FA7D-1FA7F 1FA87-1FA8F 1FAAD-1FAAF 1FABB-1FABF 1FAC6-1FACF
1FADA-1FADF 1FAE8-1FAEF 1FAF7-1FAFF 1FB93 1FBCB-1FBEF 1FBFA-1FFFD 2A6E0-2A6FF 2B739-2B73F 2B81E-2B81F 2CEA2-2CEAF
2EBE1-2F7FF 2FA1E-2FFFD 3134B-3FFFD
"""

#: The same as pairs of first and last code points.
UNASSIGNED_RANGES = tuple((int(run.split("-")[0], 16), int(run.split("-")[-1], 16)) for run in _UNASSIGNED_RUNS.split())


N_CODE_POINTS = 0x110000
N_CHARACTERS = 0x40000  # planes 0 to 3; above are only ignorables and private use

#: Default_Ignorable_Code_Point, first and last [DerivedCoreProperties.txt, Unicode 14 to 17].
IGNORABLE_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x200B, 0x200F),  # zero-width space, joiners, direction marks
    (0x202A, 0x202E),  # direction embeddings
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFF8),  # unassigned specials
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags, variation selectors supplement
)

#: Points and similar characters, first and last: vowel points, accents and recitation marks of Hebrew, Arabic and
#: Syriac, which most writers omit, and tatweel, which stretches a word. Hamza and madda (U+0653-0655, U+065F)
#: distinguish letters and are not included.
POINT_RANGES = (
    (0x0591, 0x05BD),  # Hebrew accents and points
    (0x05BF, 0x05BF),  # rafe
    (0x05C1, 0x05C2),  # shin dot, sin dot
    (0x05C4, 0x05C5),  # upper dot, lower dot
    (0x05C7, 0x05C7),  # qamats qatan
    (0x0610, 0x061A),  # honorifics, small high letters, small vowels
    (0x0640, 0x0640),  # tatweel
    (0x064B, 0x0652),  # fathatan to sukun
    (0x0656, 0x065E),  # subscript alef to fatha with two dots
    (0x0670, 0x0670),  # superscript alef
    (0x06D6, 0x06DC),  # recitation marks; U+06DD, 06DE and 06E9 are symbols between words
    (0x06DF, 0x06E8),
    (0x06EA, 0x06ED),
    (0x0711, 0x0711),  # Syriac superscript alaph
    (0x0730, 0x074A),  # Syriac points
    (0x0897, 0x089F),  # pepet and recitation marks
    (0x08C9, 0x08E1),
    (0x08E3, 0x08FF),
    (0xFB1E, 0xFB1E),  # varika
    (0xFC5E, 0xFC63),  # points on a space or a tatweel
    (0xFCF2, 0xFCF4),
    (0xFE70, 0xFE72),
    (0xFE74, 0xFE74),
    (0xFE76, 0xFE7F),
    (0x10EFA, 0x10EFF),  # points of African Arabic, and recitation marks
)

#: Blocks of scripts written without spaces between words, first and last: those that UAX #14 breaks as
#: ideographic or by dictionary (classes ID, CJ, SA), Tibetan, and the aksara scripts Balinese and Javanese.
UNSPACED_RANGES = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x197F),  # Tai Le
    (0x1980, 0x19DF),  # New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x2E80, 0x2FDF),  # CJK Radicals Supplement, Kangxi Radicals
    (0x3000, 0x303F),  # CJK Symbols and Punctuation: iteration marks, ideographic zero, Hangzhou numerals
    (0x3040, 0x309F),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana, with the prolonged sound mark
    (0x3100, 0x312F),  # Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo Extended
    (0x31F0, 0x31FF),  # Katakana Phonetic Extensions
    (0x3400, 0x4DBF),  # CJK Unified Ideographs Extension A
    (0x4E00, 0x9FFF),  # CJK Unified Ideographs
    (0xA000, 0xA48F),  # Yi Syllables
    (0xA980, 0xA9DF),  # Javanese
    (0xA9E0, 0xA9FF),  # Myanmar Extended-B
    (0xAA60, 0xAA7F),  # Myanmar Extended-A
    (0xAA80, 0xAADF),  # Tai Viet
    (0xF900, 0xFAFF),  # CJK Compatibility Ideographs: the twelve that NFKC leaves
    (0x116D0, 0x116FF),  # Myanmar Extended-C
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x16FFF),  # Ideographic Symbols and Punctuation
    (0x17000, 0x18DFF),  # Tangut, Tangut Components, Khitan Small Script, Tangut Supplements
    (0x1AFF0, 0x1AFFF),  # Kana Extended-B
    (0x1B000, 0x1B16F),  # Kana Supplement, Kana Extended-A, Small Kana Extension
    (0x1B170, 0x1B2FF),  # Nushu
    (0x20000, 0x3FFFF),  # CJK Unified Ideographs Extension B and later: planes 2 and 3
)

PICTOGRAPHS = (0x1F000, 0x1FAFF)  # Mahjong Tiles to Symbols and Pictographs Extended-A

#: Blocks of punctuation and symbols, whose newer characters are neither letters nor pictographs, first and last.
_SYMBOL_RANGES = (
    (0x2000, 0x2BFF),  # General Punctuation to Miscellaneous Symbols and Arrows
    (0x2E00, 0x2E7F),  # Supplemental Punctuation
    (0x2FF0, 0x2FFF),  # Ideographic Description Characters
    (0x1CC00, 0x1CEBF),  # Symbols for Legacy Computing Supplement, Miscellaneous Symbols Supplement
    (0x1FB00, 0x1FBFF),  # Symbols for Legacy Computing
)

# Large uniform blocks in which no code point has a mapping, a combining class or a mark.
_REGULAR_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xD800, 0xF8FF),
    (0x17000, 0x18DFF),
    (0x20000, 0x2F7FF),
    (0x2FA20, 0x3FFFF),
)


class Properties(NamedTuple):
    """Truth values for each code point of planes 0 to 3."""

    alnum: Bools
    mark: Bools
    symbol: Bools  # category So
    ignorable: Bools  # by default, or as points
    newer: Bools  # assigned after Unicode 14.0 or not yet assigned, and not ignorable


def in_ranges(ranges: tuple[tuple[int, int], ...], size: int) -> Bools:
    """Flag the code points below ``size`` that lie in one of the ranges, both ends included."""
    flags = np.zeros(size, dtype=np.bool_)
    for first, last in ranges:
        flags[first : last + 1] = True
    return flags


def character_class(flags: Bools) -> str:
    """Return the flagged code points as the inside of a regular expression's ``[...]``."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    return "".join(rf"\U{first:08x}-\U{end - 1:08x}" for first, end in edges.tolist())


@functools.cache
def properties() -> Properties:
    """Return the properties by which the normalizers are defined.

    A newer character is a letter without case and mappings, except in blocks of symbols, where it separates, and in
    blocks of pictographs, where it is one.
    """
    ignorable = in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CHARACTERS)
    newer = in_ranges(UNASSIGNED_RANGES, N_CHARACTERS) & ~ignorable
    pictographs = in_ranges((PICTOGRAPHS,), N_CHARACTERS)
    alnum = np.fromiter(map(str.isalnum, map(chr, range(N_CHARACTERS))), dtype=np.bool_, count=N_CHARACTERS)
    alnum[newer] = ~(pictographs | in_ranges(_SYMBOL_RANGES, N_CHARACTERS))[newer]
    mark = np.zeros(N_CHARACTERS, dtype=np.bool_)
    symbol = newer & pictographs
    for c in irregular_code_points():
        category = unicodedata.category(chr(c))
        mark[c] = category[0] == "M"
        symbol[c] = category == "So"
    return Properties(alnum, mark, symbol, ignorable, newer)


def irregular_code_points() -> list[int]:
    """Return the code points of planes 0 to 3 that may have a mapping, a combining class, or be a mark or symbol."""
    regular = in_ranges(_REGULAR_RANGES + UNASSIGNED_RANGES, N_CHARACTERS)
    irregular: list[int] = np.flatnonzero(~regular).tolist()
    return irregular


def fold(text: str) -> str:
    """Fold compatibility and case: the fixed point of NFKC, full case folding, NFKC, without ignorables and points.

    For a single character this is NFKC_Casefold [UAX #44, UAX #31 section 5.1]. For a text it may differ from the
    mapping of its characters one by one: canonical order is restored before case is folded.
    """
    # A newer character neither composes with its neighbours nor is reordered.
    parts = _newer_pattern().split(text)
    parts[::2] = map(_fold_known, parts[::2])
    return "".join(parts)


def compose(text: str) -> str:
    """Return the compatibility composition (NFKC) of a text, without points."""
    parts = _newer_pattern().split(_points_pattern().sub("", text))
    parts[::2] = [_points_pattern().sub("", normalize_unicode("NFKC", part)) for part in parts[::2]]
    return "".join(parts)


Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def normalize_unicode(form: Form, text: str) -> str:
    """Return ``unicodedata.normalize(form, text)`` in linear time.

    Python sorts a run of combining marks by insertion, in quadratic time, while no other thread can run. So long runs
    are sorted before.
    """
    if len(text) > _LONG_RUN and not text.isascii():
        text = _long_runs_pattern().sub(lambda run: _sort_marks(form, run[0]), text)
    return unicodedata.normalize(form, text)


#: Runs of up to this many marks may be sorted by insertion.
_LONG_RUN = 32


def _sort_marks(form: Form, run: str) -> str:
    """Decompose the characters of a run and put its marks into canonical order [UAX #15, section 1.3]."""
    table = _mark_decompositions("NFKD" if "K" in form else "NFD")
    if any(character in run for character in map(chr, table)):
        pieces = (run[begin : begin + _PIECE] for begin in range(0, len(run), _PIECE))
        run = "".join([piece.translate(table) for piece in pieces])
    codes = np.frombuffer(run.encode("utf-32-le"), np.uint32)
    orders = _combining_classes()[codes]
    starters = orders == 0
    keys = np.cumsum(starters) << 8 | orders if starters.any() else orders
    return codes[np.argsort(keys, kind="stable")].tobytes().decode("utf-32-le")


_PIECE = 1 << 16


@functools.cache
def _combining_classes() -> Bytes:
    classes = np.zeros(N_CHARACTERS, dtype=np.uint8)
    for c in irregular_code_points():
        classes[c] = unicodedata.combining(chr(c))
    return classes


@functools.cache
def _marks() -> list[int]:
    """Return the code points whose decomposition begins with a mark that reorders."""
    return [c for c in irregular_code_points() if unicodedata.combining(unicodedata.normalize("NFKD", chr(c))[0])]


@functools.cache
def _mark_decompositions(form: Form) -> dict[int, str]:
    decomposed = {c: unicodedata.normalize(form, chr(c)) for c in _marks()}
    return {c: text for c, text in decomposed.items() if text != chr(c)}


@functools.cache
def _long_runs_pattern() -> re.Pattern[str]:
    flags = np.zeros(N_CHARACTERS, dtype=np.bool_)
    flags[_marks()] = True
    return re.compile(f"[{character_class(flags)}]{{{_LONG_RUN + 1},}}")


def strip_ignorables(text: str) -> str:
    """Return a text without its ignorable code points and points."""
    return _ignorables_pattern().sub("", text)


def _fold_known(text: str) -> str:
    while True:
        folded = normalize_unicode("NFKC", strip_ignorables(text))
        folded = normalize_unicode("NFKC", folded.casefold())
        if folded == text:
            return folded
        text = folded


@functools.cache
def _ignorables_pattern() -> re.Pattern[str]:
    return re.compile(f"[{character_class(in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CODE_POINTS))}]+")


@functools.cache
def _points_pattern() -> re.Pattern[str]:
    return re.compile(f"[{character_class(in_ranges(POINT_RANGES, N_CODE_POINTS))}]+")


@functools.cache
def _newer_pattern() -> re.Pattern[str]:
    """Return the pattern of a run of newer characters, as a group."""
    newer = properties().newer
    # Python tests ranges above U+FFFF one by one; the lookahead skips this for most characters.
    lookahead = rf"{character_class(newer[:0x10000])}\U00010000-\U0003ffff"
    return re.compile(f"(?=[{lookahead}])([{character_class(newer)}]+)")


# The low three bits of an entry of `UnicodeTables.kinds`: how a code point affects tokens.
KIND_MASK = 7
SEPARATOR = 0  # ends a token
WORD = 1  # continues a word or begins one
SINGLE = 2  # a token of its own
MARK = 3  # belongs to the token before it; dropped if there is none
IGNORABLE = 4  # skipped
MAPPED = 5  # replaced by code points in `UnicodeTables.blob`
UNSUPPORTED = 6  # depends on its neighbours in a way that the kernel does not implement
# Two flags.
REORDERS = 8  # canonical combining class other than 0: may be reordered among its neighbours
COMPOSES = 16  # the second half of a primary composite: may compose with the character before
DROPPED = 0xFF  # in tables of ASCII bytes: nothing is written

#: Versions of Unicode that are known to give the same tables.
KNOWN_VERSIONS = frozenset({"14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0"})

_JAMO_VOWELS = range(0x1161, 0x1176)
_JAMO_FINALS = range(0x11A8, 0x11C3)


class UnicodeTables(NamedTuple):
    """The Unicode data of the kernel `normalize_utf8`, built by `neardup.text.normalize.kernel_tables`.

    kinds: uint8[0x110000], a kind (`SEPARATOR` to `UNSUPPORTED`), with the flags `REORDERS` and `COMPOSES`; orders:
    uint8[0x110000], the canonical combining class, of a starter that of the last code point of its decomposition;
    slots: uint16, the position in `blob` of the replacement of a `MAPPED` code point; blob: int32, replacements: the
    number of code points, their maximum bytes with a space beside each, and the code points, none of them mapped;
    pairs: int64, the primary composites as ``first << 42 | second << 21 | composite``, sorted; ascii_bytes: uint8[128],
    the byte written for an ASCII character: a letter, 0x20 for a separator, or `DROPPED`.
    """

    kinds: Bytes
    orders: Bytes
    slots: npt.NDArray[np.uint16]
    blob: npt.NDArray[np.int32]
    pairs: Integers
    ascii_bytes: Bytes


@functools.cache
def composites() -> dict[tuple[str, str], str]:
    """Return the primary composites except Hangul: (first, second) and what NFC makes of them."""
    found = {}
    for c in irregular_code_points():
        halves = unicodedata.decomposition(chr(c)).split()
        if len(halves) == 2 and halves[0][0] != "<" and unicodedata.is_normalized("NFC", chr(c)):
            found[chr(int(halves[0], 16)), chr(int(halves[1], 16))] = chr(c)
    return found


@functools.cache
def word_tables() -> UnicodeTables:
    """Build the tables of the normalizer ``words``."""
    classes = properties()
    kinds = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    orders = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    plain = kinds[:N_CHARACTERS]
    plain[classes.alnum] = WORD
    plain[classes.mark] = MARK
    plain[ord("_")] = WORD
    plain[classes.alnum & in_ranges(UNSPACED_RANGES, N_CHARACTERS)] = SINGLE
    plain[classes.symbol & in_ranges((PICTOGRAPHS,), N_CHARACTERS)] = SINGLE

    seconds = {second for _, second in composites()}.union(map(chr, _JAMO_VOWELS), map(chr, _JAMO_FINALS))
    slots = np.zeros(N_CHARACTERS, dtype=np.uint16)
    blob = [0]
    for c in irregular_code_points():
        if c < 0x80 or classes.ignorable[c]:
            continue
        character = chr(c)
        if unicodedata.is_normalized("NFKD", character) and character.casefold() == character:
            order = unicodedata.combining(character)
            joins = character in seconds
            if order or joins:
                orders[c] = order
                kinds[c] |= REORDERS * (order > 0) | COMPOSES * joins
            continue
        folded, orders[c], stands_alone = _fold_stages(character, seconds)
        if not stands_alone:
            kinds[c] = UNSUPPORTED
        elif folded != character:
            kinds[c] = MAPPED
            slots[c] = len(blob)
            room = len(folded.encode()) + len(folded)
            blob += [len(folded), room, *map(ord, folded)]
    kinds[in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CODE_POINTS)] = IGNORABLE
    pairs = np.array(sorted(ord(a) << 42 | ord(b) << 21 | ord(c) for (a, b), c in composites().items()), dtype=np.int64)
    return UnicodeTables(kinds, orders, slots, np.array(blob, dtype=np.int32), pairs, _ascii_bytes(kinds, str.lower))


def plain_tables(kinds: Bytes) -> UnicodeTables:
    """Build the tables of a normalizer that changes no character: kinds alone."""
    return UnicodeTables(
        kinds,
        np.zeros(1, dtype=np.uint8),
        np.zeros(1, dtype=np.uint16),
        np.zeros(1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        _ascii_bytes(kinds, str),
    )


def arrays_digest(tables: Iterable[npt.NDArray[Any]]) -> str:
    """Return sixteen hex digits that identify arrays of integers, on every machine."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(np.ascontiguousarray(table, table.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:16]


def _ascii_bytes(kinds: Bytes, case: Callable[[str], str]) -> Bytes:
    """Return the byte that each ASCII character becomes."""
    written: dict[int, Callable[[int], int]] = {
        WORD: lambda c: ord(case(chr(c))),
        SEPARATOR: lambda c: 0x20,
        IGNORABLE: lambda c: DROPPED,
    }
    return np.array([written[int(kinds[c])](c) for c in range(128)], dtype=np.uint8)


def _fold_stages(character: str, seconds: set[str]) -> tuple[str, int, bool]:
    """Return a character folded, the largest combining class at the end of a stage's decomposition, and independence.

    A character folds independently of its neighbours if no stage of `fold` begins with a character that reorders or
    composes (except a single conjoining jamo, which the kernel compares with the character before), and none but the
    last ends, apart from points, with a character that reorders.
    """
    order, independent = 0, True
    stage = unicodedata.normalize("NFKC", character)
    while True:
        decomposed = unicodedata.normalize("NFKD", stage)
        first = decomposed[0]
        order = max(order, unicodedata.combining(decomposed[-1]))
        jamo = len(decomposed) == 1 and _JAMO_VOWELS.start <= ord(first) < _JAMO_FINALS.stop
        independent = independent and not unicodedata.combining(first) and (first not in seconds or jamo)
        bare = strip_ignorables(stage)
        following = unicodedata.normalize("NFKC", bare.casefold())
        if following == stage:
            return stage, order, independent
        independent = independent and not (unicodedata.combining(bare[-1]) and not unicodedata.combining(following[-1]))
        stage = following
