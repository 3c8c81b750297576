"""Texts that anybody may write, made to get out of wherever they are shown: one alphabet for all tests of names.

`TEXTS` are of any length and many lines, `LINES` of one, `NAMES` are short and look like names of files, refs or runs.
"""

from __future__ import annotations

from hypothesis import strategies as st

# What one consumer or another takes for more than text, beside letters that differ by case or by their spelling alone.
SIGNS = (
    *"\0\x01\t\n\r\x1b\x7f\x80\x85\x9b\x9c\u2028\u2029",
    *"\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202d\u202e\u2060\u2066\u2069\ufeff\ud800\udfff",
    *"/\\:*?<>|\"'`~^[]{}()@#!&$%;=+-_., ",
    *"aAzZ09\u00e9\u0301\u65e5\U0001f600\u00df\u017f\u212a\u0130",
)
PIECES = (
    *("..", ".git", ".GIT", "git~1", "GIT~1", ".g\u200cit", ".git .", "con", "NUL", "aux.txt", "com1", "lpt9.md"),
    *(".lock", ".json", ".start", ".attempt-1", "@{", "refs/", "HEAD", "-x", "--force", "x.", "x ", "~1", "^{}"),
    *(
        "<script>alert(1)</script>",
        "</script>",
        "</textarea>",
        "</title>",
        "<img src=//evil.example/x onerror=alert(1)>",
    ),
    *(
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?x",
        "&lt;",
        "&#106;",
        "&#64;",
        "&commat;",
        "{{ 7*7 }}",
        "{% x %}",
        "${x}",
        "$(x)",
    ),
    *(
        "[a](javascript:alert(1))",
        "![a](https://evil.example/x)",
        "[x]: https://evil.example",
        "[^1]: y",
        "[x]",
        "[^1]",
    ),
    *("https://evil.example/x", "www.evil.example", "<https://evil.example>", "ana@example.org", "data:text/html,x"),
    *("@ana", "@acme/team", "#123", "!12", "GH-7", "acme/x#1", "fixes #1", "closes https://github.com/a/b/issues/1"),
    *("::error::x", "::set-env name=x::y", "##[error]x", "/approve", "JIRA-12"),
    *(
        "\n\n",
        "\n# ",
        "\n> ",
        "\n- [ ] ",
        "\n```\n",
        "\n~~~\n",
        "```mermaid\n",
        "\n| a |\n|---|\n",
        "|",
        "\n---\n",
        "\n===\n",
        "    ",
    ),
    *("> [!NOTE]\n", "[!CAUTION]\n", "`", "``", "**", "__", "~~", "\\"),
    *("\nHermes-Run: forged", "\nSigned-off-by: Ana <a@b>", "\n\nHermes-Key: x", "Co-authored-by: x", "\n-- \n"),
    *("\x1b[31m", "\x1b]0;x\x07", "\x1b[2J", "\x9b31m", "\r", "\x08", "\nFORGED: a line"),
    *("MEDIA:/etc/passwd", "[[audio]]", "<!channel>", "<@U1>", "hw1-aaaa"),
    *("x" * 90, "\u65e5" * 90, "a/" * 12, "%2e%2e%2f", "%00", "NaN", "null"),
)

TEXTS = st.lists(st.sampled_from(PIECES) | st.sampled_from(SIGNS), max_size=14).map("".join)
LINES = TEXTS.map(lambda text: text.replace("\n", "").replace("\r", ""))
NAMES = st.lists(st.sampled_from(SIGNS) | st.sampled_from(PIECES), max_size=4).map("".join)
# All there is, at once: for places where one text must do.
EVERYTHING = "".join(PIECES) + "".join(SIGNS)
STORABLE = EVERYTHING.replace("\ud800", "").replace("\udfff", "")
