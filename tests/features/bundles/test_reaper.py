"""Removing deleted bundles for good: after two days, never earlier, even if the clock jumps."""

import pytest

DAY = 86_400.0


@pytest.fixture
def deleted(shop, bundles, put_bundle):
    """A bundle that was deleted just now."""
    id_ = put_bundle(bundles)
    bundles.delete_bundle(id_)
    return id_


@pytest.mark.spec("S1-74")
def test_an_empty_bundle_is_gone_two_days_after_it_was_deleted(shop, bundles, deleted):
    shop.clock.pass_by(2 * DAY - 1)
    assert bundles.reap() == []
    assert shop.read(deleted) is not None
    shop.clock.pass_by(1)
    assert bundles.reap() == [deleted]
    assert shop.store.keys() == []
    assert bundles.reap() == []
    assert bundles.list_bundles(include_disabled=True).items == ()


@pytest.mark.spec("S1-74")
def test_a_bundle_in_which_a_file_appeared_is_kept(shop, bundles, deleted, tool_document):
    for name in ("weather@v1.json", "notes.txt", "sub/a.json"):
        shop.store.create(f"bundles/{deleted}/{name}", b"{ half")
        shop.clock.pass_by(3 * DAY)
        assert bundles.reap() == []
        assert shop.read(deleted) is not None
        shop.store.discard(f"bundles/{deleted}/sub") if "/" in name else shop.store.remove(f"bundles/{deleted}/{name}")
    shop.clock.pass_by(1)
    assert bundles.reap() == [deleted]


@pytest.mark.spec("S1-74")
def test_a_file_of_a_person_keeps_the_folder(file_shop, put_bundle):
    bundles = file_shop.open()
    id_ = put_bundle(bundles)
    bundles.delete_bundle(id_)
    readme = file_shop.path(id_, "README.md")
    readme.write_text("mine")
    file_shop.clock.pass_by(3 * DAY)
    assert bundles.reap() == []
    assert readme.read_text() == "mine"
    readme.unlink()
    assert bundles.reap() == [id_]


def test_a_bundle_that_lives_again_is_kept(shop, bundles, deleted, bundle_document):
    shop.clock.pass_by(3 * DAY)
    shop.open().put_bundle(deleted, bundle_document("back"))
    assert bundles.reap() == []
    assert bundles.bundle(deleted).slug == "back"


def test_a_bundle_that_was_deleted_once_more_has_two_days_again(shop, bundles, deleted, bundle_document):
    shop.clock.pass_by(3 * DAY)
    other = shop.open()
    other.put_bundle(deleted, bundle_document("back"))
    other.delete_bundle(deleted)
    assert bundles.reap() == []
    shop.clock.pass_by(DAY)
    assert bundles.reap() == other.reap() == []
    shop.clock.pass_by(DAY)
    assert bundles.reap() == [deleted]


def test_nothing_is_removed_by_who_sees_it_for_the_first_time(shop, deleted):
    shop.clock.pass_by(3 * DAY)
    later = shop.open()
    assert later.reap() == []
    assert later.reap() == [deleted]


@pytest.mark.parametrize("hours", [25, 24, 2])
def test_a_clock_that_is_put_forward_brings_nothing_forward(shop, bundles, deleted, hours):
    assert bundles.reap() == []
    shop.clock.pass_by(2 * DAY - 2 * 3_600)
    shop.clock.now += hours * 3_600
    assert bundles.reap() == []
    assert bundles.reap() == []
    shop.clock.pass_by(2 * 3_600 - 1)
    assert bundles.reap() == []
    shop.clock.pass_by(1)
    assert bundles.reap() == [deleted]


def test_a_clock_that_was_behind_when_it_was_deleted_brings_nothing_forward(shop, bundles, put_bundle):
    shop.clock.now -= DAY
    id_ = put_bundle(bundles)
    bundles.delete_bundle(id_)
    shop.clock.now += DAY
    shop.clock.pass_by(DAY + 3_600)
    assert bundles.reap() == bundles.reap() == []
    shop.clock.pass_by(DAY)
    assert bundles.reap() == [id_]


def test_a_clock_that_is_put_back_only_makes_it_later(shop, bundles, deleted):
    shop.clock.pass_by(3 * DAY)
    shop.clock.now -= 2 * DAY
    assert bundles.reap() == bundles.reap() == []
    shop.clock.pass_by(DAY)
    assert bundles.reap() == [deleted]


def test_nothing_is_removed_in_a_pass_before_which_the_clock_was_moved(shop, bundles, deleted):
    for hours in (2, -2):
        shop.clock.pass_by(5 * DAY)
        shop.clock.now += hours * 3_600
        assert bundles.reap() == []
    assert bundles.reap() == [deleted]


def test_a_clock_that_jitters_stops_nothing(shop, bundles, deleted):
    for _ in range(3):
        shop.clock.pass_by(DAY)
        shop.clock.now += 60
        gone = bundles.reap()
        if gone:
            break
    assert gone == [deleted]


def test_a_time_that_is_given_counts_instead_of_the_clock(shop, bundles, deleted):
    shop.clock.steady += 3 * DAY
    assert bundles.reap(shop.clock.now + 3 * DAY) == [deleted]


def test_a_bundle_that_is_not_deleted_is_never_removed(shop, bundles, put_bundle):
    id_ = put_bundle(bundles)
    for _ in range(3):
        shop.clock.pass_by(30 * DAY)
        assert bundles.reap() == []
    assert bundles.bundle(id_).slug == "acme"
