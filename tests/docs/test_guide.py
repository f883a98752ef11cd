"""The guide to tool folders leads on to what its reader needs next."""

import pytest


@pytest.mark.spec("S2-74")
@pytest.mark.parametrize("page", ["architecture.md", "roadmap.md", "voice-agents.md", "text-agents.md"])
def test_the_guide_to_tool_folders_leads_to_a_page_that_is_there(root, page):
    guide = (root / "docs" / "tool-folders.md").read_text(encoding="utf-8")
    assert f"]({page})" in guide
    text = (root / "docs" / page).read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(text.splitlines()) > 10
