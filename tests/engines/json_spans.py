"""The positions of the members of a JSON object in its text, by Python's own decoder, which returns the end of each
value."""
import json

DECODER = json.JSONDecoder()
SPACE = " \t\r\n"


def members(text):
    """(name, start of its member, start of its value, end) of an object's own members."""
    found, at = [], skip(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = DECODER.raw_decode(text, at)
        begins = skip(text, skip(text, end, ":"))
        _, ends = DECODER.raw_decode(text, begins)
        found.append((name, at, begins, ends))
        at = skip(text, skip(text, ends, ","))
    return found


def skip(text, at, sign=""):
    """Skips white space, and one given character if it follows."""
    while text[at] in SPACE:
        at += 1
    return at + (bool(sign) and text[at] == sign)


def value_of(text, name):
    """(start of the value, end) of the member of that name, the last if there are several."""
    return next(((begins, ends) for own, _, begins, ends in reversed(members(text)) if own == name), None)


def without(text, name):
    """The text without that member and without one comma."""
    for number, (own, at, _, ends) in enumerate(members(text)):
        if own == name and number:
            return text[:text.rindex(",", 0, at)] + text[ends:]
        if own == name:
            after = skip(text, ends)
            return text[:at] + text[skip(text, after + 1) if text[after] == "," else ends:]
    return text
