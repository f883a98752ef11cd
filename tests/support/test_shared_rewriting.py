"""What a worker rewrites ahead is what pytest reads when it imports the file."""

import pytest
from _pytest.assertion import rewrite
from shared_rewriting import files, kept, rewrite_file


def test_a_file_that_was_rewritten_ahead_is_read_by_pytest_and_explains_its_assertions(tmp_path, pytestconfig):
    path = tmp_path / "test_sum.py"
    path.write_text("def check(left):\n    assert left == 3\n")
    rewrite_file(path, pytestconfig)

    code = rewrite._read_pyc(path, kept(path))
    namespace = {}
    exec(code, namespace)
    with pytest.raises(AssertionError, match="^assert 2 == 3$"):
        namespace["check"](2)


def test_a_file_that_cannot_be_compiled_is_left_to_its_import(tmp_path, pytestconfig):
    path = tmp_path / "test_half.py"
    path.write_text("def half(\n")
    rewrite_file(path, pytestconfig)
    assert not kept(path).exists()


def test_this_file_and_our_modules_are_among_what_is_shared(request):
    shared = set(files())
    assert request.path in shared
    assert {path.name for path in shared} >= {"conftest.py", "crib.py"}
