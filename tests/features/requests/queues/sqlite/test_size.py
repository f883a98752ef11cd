"""However many requests there are, what a Builder does costs the same."""

import asyncio
from contextlib import contextmanager

from tool_requests import built_tool
from toolcrib.features.requests.queues.sqlite_changes import Change, file_request

MADE = built_tool()


def fill(queue, a_request, many):
    """File many at once: one change, because each would wait for the disk."""
    with queue._file.writing() as connection:
        change = Change(connection=connection, at="2024-01-15T12:00:00.000Z", day="20240115")
        for number in range(many):
            request_id, experiment = f"req_20240115_{number:05}", f"exp_{number % 100}"
            file_request(change, a_request(f"tool_{number}", id=request_id, experiment=experiment))


@contextmanager
def steps_of(queue):
    """How many steps SQLite needs for what is done meanwhile, in tens."""
    queue.get("")
    database, counted = queue._file._opened[-1], []
    for connection in (database._writer, database._reader):
        connection.set_progress_handler(lambda: counted.append(1), 10)
    yield counted
    for connection in (database._writer, database._reader):
        connection.set_progress_handler(None, 10)


def cost_of_building(queue, a_request):
    with steps_of(queue) as counted:
        queue.file(a_request("one_more", priority="low"))
        queue.file(a_request("one_more", priority="high"))
        claim = queue.claim("o", 60)
        queue.renew(claim)
        queue.note(claim, "made")
        queue.find_open("one_more")
        queue.history(claim.id)
        queue.finish(claim, MADE)
        queue.reconcile()
        queue.requests("pending", limit=3)
        queue.requests(limit=3)
    return len(counted)


def test_building_costs_no_more_among_five_thousand_requests(open_one, a_request):
    few, many = open_one(), open_one()
    fill(few, a_request, 10)
    first = cost_of_building(few, a_request)
    fill(many, a_request, 5_000)
    assert cost_of_building(many, a_request) < 1.5 * first + 10


def test_everything_can_be_read_of_ten_thousand_requests(queue, a_request):
    fill(queue, a_request, 10_000)
    assert len(queue.requests()) == 1_000
    assert len(queue.requests(limit=20_000)) == 10_000
    experiments = queue.experiments()
    assert len(experiments) == 100
    assert all(len(each.requests) == 100 for each in experiments)


async def test_threads_of_a_loop_share_one_queue(queue, a_request):
    filed = await asyncio.gather(*(asyncio.to_thread(queue.file, a_request(f"tool_{n}")) for n in range(40)))
    assert len({each.id for each in filed}) == 40
    claims = await asyncio.gather(*(asyncio.to_thread(queue.claim, f"owner {n}", 60) for n in range(50)))
    assert len({claim.id for claim in claims if claim}) == 40
    assert claims.count(None) == 10
    done = await asyncio.gather(*(asyncio.to_thread(queue.finish, claim, MADE) for claim in claims if claim))
    assert done == [True] * 40
