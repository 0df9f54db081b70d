"""Texts of values, as tables may have them in columns of any kind."""

SPACED = ["7", " 7 ", "\t7\n", "7\r\n", "\x0b7\f", "\xa07", "7\u2028", "7\x85", "7 7"]
WHOLE = [
    "7.", "7.0", "7.00", "7.000", "7.0000", "7.5", "+7", "-7", "--7", "007", "7_0", "٣", "0x7", str(2**63 - 1), ".0",
]  # fmt: skip
REAL = [
    ".5", "-.5", "5.", "1e1", "1E+1", "1e-1", "7E3", "7e3.0", "1.5e1", "1e999", "1e1000", "e1", "1e", ".", "1d", "1f",
    "1.23457E+11", "1E+11", "1.5e+16",
]  # fmt: skip
WORDS = ["", " ", "   ", "-", " N/A ", "n/a", "NaN", "<NA>", "NaT", "Infinity", "null", "None", "true", "seven", "1,5"]
NUMBERS = SPACED + WHOLE + REAL + WORDS
"""Numbers in 64 bits, and what is none."""
LONG = [str(2**63), str(-(2**63)), str(-(2**63) - 1), "1" * 19, "1" * 41, str(2**70)]
FLAGS = ["true", " TRUE ", "False", "yes", "1", "t"]
LISTS = [
    "a", "a;b", " a ; b ", ";", "a;;b", ";a", '["a","b"]', '["","a"]', "[]", '["a', "[1", "[1]", '["a",null]', "größe",
]  # fmt: skip
EVERY = NUMBERS + LONG + FLAGS + LISTS
