"""Names that matplotlib's own font lacks get a font that has them, if one is installed."""

import io
import logging

import pytest

from evenlag.report import picture

pytest.importorskip("matplotlib")


def title_font(name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fonts of a title once it is drawn; a font that comes with matplotlib stands for an installed wide one."""
    monkeypatch.setattr(picture, "WIDE_FONTS", ("No Such Font", "DejaVu Serif"))
    figure, axes = picture.blank_figure(2, 2)
    axes.set_title(name)
    picture.render(figure, io.BytesIO(), format="png")
    return list(axes.title.get_fontfamily())


@pytest.mark.parametrize("name", ["注文", "サービス", "주문"])
def test_wide_names_get_the_fonts_that_are_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert title_font(name, monkeypatch) == ["sans-serif", "DejaVu Serif"]


def test_other_names_keep_their_font(monkeypatch: pytest.MonkeyPatch) -> None:
    assert title_font("bestellungen-größe", monkeypatch) == ["sans-serif"]


def test_a_missing_font_is_no_warning_and_logging_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "WIDE_FONTS", ())
    before = logging.getLogger("matplotlib.font_manager").level
    figure, axes = picture.blank_figure(2, 2)
    axes.set_title("注文")
    picture.render(figure, io.BytesIO(), format="svg")  # a warning would be an error here
    assert logging.getLogger("matplotlib.font_manager").level == before
