from tests.support.shares import chosen

CASES = [f"test_a.py::test_many[{case}-x]" for case in range(1_000)]
NAMES = ["test_a.py::test_one", *CASES, "test_b.py::test_many[0]"]


def test_every_test_keeps_its_first_case_and_a_share_of_the_others() -> None:
    kept = chosen(NAMES, 10)
    assert {"test_a.py::test_one", "test_a.py::test_many[0-x]", "test_b.py::test_many[0]"} <= set(kept)
    assert 50 < len(kept) < 200
    assert kept == [name for name in NAMES if name in set(kept)]
    assert kept == chosen(NAMES, 10)


def test_a_test_with_few_cases_keeps_all() -> None:
    few = [f"test_c.py::test_few[case {number}]" for number in range(100)]
    assert chosen([*few, *NAMES], 3) == [*few, *chosen(NAMES, 3)]
    assert len(chosen(few, 3, thinned=few[:1])) < 60
    assert len(chosen([*few, "test_c.py::test_few[more]"], 3)) < 60
    assert len(chosen(few, 30)) < 20


def test_a_share_of_one_is_everything() -> None:
    assert chosen(NAMES, 1) == NAMES
