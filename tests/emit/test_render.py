"""Generated C is indented by its braces, whatever the template looked like."""

from __future__ import annotations

from mccompile.emit.render import comment, indent_c


def test_braces_say_how_deep_a_line_lies() -> None:
    text = """void f(int n)
{

if (n) {
/* two
 * lines { */
g("}", n);

} else {
h(n,
n);
}


return;
#pragma once
}
"""
    assert (
        indent_c(text)
        == """void f(int n)
{
    if (n) {
        /* two
         * lines { */
        g("}", n);
    } else {
        h(n,
            n);
    }

    return;
#pragma once
}
"""
    )


def test_a_comment_cannot_be_left() -> None:
    assert comment("a */ b /* c \\ d\ne") == "a * / b / * c / d e"
