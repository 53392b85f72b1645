"""Turning what environments return into text."""

import re

_COLOUR = re.compile("\x1b\\[([0-9;]*)m(.*?)\x1b\\[0m", re.DOTALL)
_ESCAPE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def plain(text):
    """Text for a terminal without its escape sequences; what was highlighted stands in brackets."""
    marked = _COLOUR.sub(lambda match: _bracket(match.group(1), match.group(2)), text)
    return _ESCAPE.sub("", marked).strip("\n")


def _bracket(codes, inner):
    # Only a coloured background marks a place; a coloured letter is one of several kinds of landmark.
    background = any(code.isdigit() and 40 <= int(code) < 48 for code in codes.split(";"))
    return "[%s]" % inner if background else inner


def describe(value):
    """An observation that is no text: numbers, lists and mappings as Python writes them, arrays as lists."""
    value = simple(value)
    return value if isinstance(value, str) else repr(value)


def simple(value):
    """NumPy's scalars and arrays as numbers and lists, in containers too."""
    if isinstance(value, (str, bytes, bool, int, float, type(None))):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: simple(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(simple(inner) for inner in value)
    if isinstance(value, list):
        return [simple(inner) for inner in value]
    return value
