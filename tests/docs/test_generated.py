"""The generated pages are as the code and the tests say; when one is stale, run: make docs."""

import textwrap


def test_every_generated_page_is_fresh_and_every_run_writes_the_same(generated):
    # What lies there was written by another run, in another process.
    stale = [page.name for page, text in generated.items() if page.read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_every_row_that_a_test_proves_has_a_text_and_every_text_a_test(generate, marks):
    assert generate.read_texts("specification").keys() == marks.keys()


def test_marks_are_found_on_functions_classes_parameters_and_modules(generate, tmp_path):
    (tmp_path / "test_a.py").write_text(
        textwrap.dedent("""
            import pytest

            pytestmark = [pytest.mark.spec("S1-02")]

            @pytest.mark.spec("S1-10", "S1-01")
            async def test_function(): ...

            @pytest.mark.spec("S1-03")
            class TestClass:
                def test_method(self): ...
                def helper(self): ...

            @pytest.mark.parametrize("value", [pytest.param(1, marks=pytest.mark.spec("S1-04")), 2])
            def test_parameters(value): ...
        """),
        encoding="utf-8",
    )
    place = f"{tmp_path.name}/test_a.py"
    everywhere = [f"{place}::TestClass::test_method", f"{place}::test_function", f"{place}::test_parameters"]
    assert list(generate.find_marks(tmp_path).items()) == [
        ("S1-01", [f"{place}::test_function"]),
        ("S1-02", everywhere),
        ("S1-03", [f"{place}::TestClass::test_method"]),
        ("S1-04", [f"{place}::test_parameters"]),
        ("S1-10", [f"{place}::test_function"]),
    ]
