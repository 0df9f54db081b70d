"""A random group in every form that is read: the same problem, facts and notes from all, as far as each can tell."""

from pathlib import Path

import pytest

import evenlag
from tests.support.problems import seeds
from tests.support.told_forms import FORMS
from tests.support.told_groups import told_group
from tests.support.told_reference import TELLS, Told, of_problem, reference


def differences(name: str, seed: int, folder: Path) -> dict[str, tuple[object, object]]:
    """Return where a form gives another group than the reference: what it gives, and what it should."""
    form, group = FORMS[name], told_group(seed)
    shown = form.shown(group)
    if shown is None:
        return {}
    wanted = reference(shown[0], form.facts(), form.source.format(folder))
    wanted.notes = sorted([*wanted.notes, *shown[1]])
    found = of_problem(evenlag.read(**form.write(group, folder)))
    return {
        field: (mine, theirs)
        for field in Told.__dataclass_fields__
        if (mine := getattr(found, field)) != (theirs := getattr(wanted, field))
    }


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_group_that_it_tells(name: str, tmp_path: Path) -> None:
    for seed in seeds(20):
        assert differences(name, seed, tmp_path) == {}, seed


def test_every_fact_is_told_by_a_form() -> None:
    assert {word for form in FORMS.values() for word in form.facts()} == {*TELLS}
