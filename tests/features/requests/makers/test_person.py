"""A person as a maker."""

from toolcrib.features.requests.delivery import PersonMaker


async def test_a_person_is_told_where_to_work_and_how_to_deliver(office):
    maker = PersonMaker()
    assert await maker.make(office.task()) is False
    (said,) = office.said
    assert str(office.building / "BRIEF.md") in said
    assert "the folder package beside it" in said
    assert said.endswith("crib request deliver req_20240115_001")
    await maker.close()
