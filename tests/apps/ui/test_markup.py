"""Markup: whatever a text is, it stays a text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.apps.ui.markup import Markup, element, fragment


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(element("p", "a <b> & c"), "<p>a &lt;b&gt; &amp; c</p>", id="a text is escaped"),
        pytest.param(element("a", "x", href='/a"b'), '<a href="/a&quot;b">x</a>', id="an attribute is escaped"),
        pytest.param(element("p", [1, [None, "x"], element("b", "y")]), "<p>1x<b>y</b></p>", id="children are nested"),
        pytest.param(element("br"), "<br>", id="a void element has no end"),
        pytest.param(element("input", name="q", hidden=True, value=None), '<input name="q" hidden>', id="switches"),
        pytest.param(
            element("p", class_="a", data_x_y="1"), '<p class="a" data-x-y="1"></p>', id="names of attributes"
        ),
        pytest.param(fragment("a", element("i")), "a<i></i>", id="a fragment has no element around it"),
        pytest.param(
            element("p", "a\0b\x1b\ud800"), "<p>a\ufffdb\ufffd\ufffd</p>", id="what no page can have is marked"
        ),
    ],
)
def test_markup_is_written(made: Markup, expected: str) -> None:
    assert str(made) == expected


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: element("script", "alert(1)"), id="a script with a text"),
        pytest.param(lambda: element("p", onclick="alert(1)"), id="an attribute that runs code"),
        pytest.param(lambda: element("p", style="color: red"), id="a style"),
        pytest.param(lambda: element("a", href="javascript:alert(1)"), id="a link that runs code"),
        pytest.param(lambda: element("a", href="//elsewhere.example"), id="a link to another server"),
        pytest.param(lambda: element("a", href="https://elsewhere.example"), id="a link that leads elsewhere"),
        pytest.param(lambda: element("img src=x"), id="a name with more in it"),
        pytest.param(lambda: element("p", **{"a=1 b": "c"}), id="an attribute with more in it"),
    ],
)
def test_what_could_run_or_lead_elsewhere_cannot_be_made(make: object) -> None:
    with pytest.raises(ValueError, match=r"no name|no text|no attribute|leads elsewhere"):
        make()  # type: ignore[operator]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_is_read_back_as_it_was(text: str, value: str) -> None:
    """A parser finds one element, its attribute and its text, and nothing else."""
    reader = Reader()
    reader.feed(str(element("p", text, title=value)))
    reader.close()
    assert reader.tags == ["p"]
    assert [name for name, _ in reader.attributes] == ["title"]
    if all(each.isprintable() for each in text + value):
        assert reader.text == text and reader.attributes[0][1] == value
