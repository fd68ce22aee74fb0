"""PTX text as tokens. What comes to its end with the line is one token: .version, .target, .address_size, .file, .loc."""
import re

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<line>\.(?:version|target|address_size|file|loc)\b[^\n]*)
      | (?P<string>"[^"\n]*")
      | (?P<number>0[fF][0-9A-Fa-f]{8}\b|0[dD][0-9A-Fa-f]{16}\b|0[xX][0-9A-Fa-f]+U?\b|\d+U?\b)
      | (?P<word>[.%$A-Za-z_][\w$.]*(?:::[\w.]+)*)
      | (?P<sign>[-+~!@|<>=,;:(){}\[\]])""",
    re.VERBOSE | re.DOTALL,
)


class Wrong(Exception):
    """What the translator can't make of the PTX, in a sentence."""


class Token:
    __slots__ = ("kind", "text", "row")

    def __init__(self, kind, text, row):
        self.kind, self.text, self.row = kind, text, row


def tokens_of(text):
    """All of them, and one of kind "end"."""
    found, at, row = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Wrong("line %d: %r is no PTX" % (row, text[at : at + 20]))
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup, match.group(), row))
        row += text.count("\n", at, match.end())
        at = match.end()
    found.append(Token("end", "", row))
    return found


class Stream:
    """Tokens, taken one after the other."""

    def __init__(self, text):
        self.all = tokens_of(text)
        self.at = 0

    @property
    def next(self):
        return self.all[self.at]

    def behind(self):
        """The one behind the next."""
        return self.all[min(self.at + 1, len(self.all) - 1)]

    def take(self):
        token = self.next
        if token.kind != "end":
            self.at += 1
        return token

    def has(self, text):
        """Takes the next one if it is this."""
        if self.next.text != text or self.next.kind == "string":
            return False
        self.at += 1
        return True

    def must(self, text):
        if not self.has(text):
            raise Wrong("line %d: %r where %r belongs" % (self.next.row, self.next.text, text))

    def word(self):
        if self.next.kind != "word":
            raise Wrong("line %d: %r where a name belongs" % (self.next.row, self.next.text))
        return self.take().text

    def integer(self):
        negative = self.has("-")
        token = self.take()
        if token.kind != "number" or token.text[:2] in ("0f", "0F", "0d", "0D"):
            raise Wrong("line %d: %r where an integer belongs" % (token.row, token.text))
        value = int(token.text.rstrip("U"), 0)
        return -value if negative else value
