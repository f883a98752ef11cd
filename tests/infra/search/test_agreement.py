"""Every index gives the same hits in the same order, and pages lose nothing while rows come and go."""

from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.infra.search import Row
from toolcrib.infra.search.index import Index

WORDS = [
    "mail",
    "mails",
    "mial",
    "email",
    "send",
    "sending",
    "readFile",
    "read-file",
    "x",
    "weather",
    "wether",
    "Café",
    "天气",
    "v2",
    "v3",
]
ids = st.sampled_from([f"{number:02}" for number in range(12)])
# Few times, so that many rows have the same one; some are not times.
times = st.sampled_from(
    ["", "soon", *(f"2026-03-01T10:00:00.00{number}Z" for number in range(3)), "2026-03-01T12:00:00.000+02:00"]
)
texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
slugs = st.lists(st.sampled_from(["mail", "send", "read", "file", "weather", "x"]), min_size=1, max_size=3).map(
    "-".join
)


@st.composite
def rows(draw) -> Row:
    id_ = draw(ids)
    return Row(
        id=id_,
        bundle=draw(st.sampled_from(["b1", "b2"])),
        slug=draw(slugs),
        version="1",
        display_name=draw(texts),
        description=draw(texts),
        tags=tuple(draw(st.lists(st.sampled_from(["mail", "red", "Red"]), max_size=2))),
        parameters=tuple(draw(st.lists(st.tuples(slugs, texts), max_size=1))),
        enabled=draw(st.booleans()),
        modified_at=draw(times),
        # A third of the rows are the process's own, always the same ones.
        key="" if int(id_) % 3 == 0 else f"key-{id_}",
    )


changes = st.one_of(
    st.tuples(st.just("put"), st.lists(rows(), max_size=8, unique_by=lambda row: row.id)),
    st.tuples(st.just("remove"), st.lists(ids, max_size=3)),
    st.tuples(
        st.just("set_own"), st.lists(rows().filter(lambda row: not row.key), max_size=3, unique_by=lambda row: row.id)
    ),
    st.tuples(st.just("remove_bundle"), st.sampled_from(["b1", "b2"])),
    st.tuples(st.just("switch"), st.tuples(st.sampled_from(["b1", "b2"]), st.booleans())),
)
typed = st.one_of(
    texts,
    st.sampled_from(["m", "ma", "re", "mail s", "wea", "wetaher", "sned", "readf", "cafe", "天", "v", ""]),
    st.text(max_size=8),
)


def apply(index, change) -> None:
    name, what = change
    if name == "switch":
        index.put_bundle(what[0], enabled=what[1])
    else:
        getattr(index, name)(what)


@settings(max_examples=60)
@given(st.lists(st.tuples(changes, typed), min_size=1, max_size=8), st.booleans(), st.integers(1, 5))
def test_full_text_search_gives_the_hits_of_a_scan(steps, include_disabled, limit):
    quick, plain = Index(None), Index(None, full_text=False)
    for change, text in steps:
        for index in (quick, plain):
            apply(index, change)
        hits = plain.search(text, limit=50, include_disabled=include_disabled)
        assert quick.search(text, limit=50, include_disabled=include_disabled) == hits
        after = hits[limit] if len(hits) > limit else None
        assert quick.search(text, after=after, limit=limit, include_disabled=include_disabled) == plain.search(
            text, after=after, limit=limit, include_disabled=include_disabled
        )
        for narrowed in (
            {},
            {"tags": ["red"]},
            {"tags": ["mail", "red"], "bundles": ["b1"]},
            {"bundles": ["b2", "b1"]},
        ):
            wanted = {"after": "03", "limit": limit, "include_disabled": include_disabled, **narrowed}
            assert quick.page(**wanted) == plain.page(**wanted)
        everything = quick.page(limit=50, include_disabled=include_disabled)
        for tags in (["RED"], ["Mail", "reD"]):
            page = quick.page(limit=50, tags=tags, any_case=True, include_disabled=include_disabled)
            folded = {tag.casefold() for tag in tags}
            assert page == [row for row in everything if folded <= {tag.casefold() for tag in row.tags}]
        assert (quick.count(), quick.stamps("b1")) == (plain.count(), plain.stamps("b1"))
        assert quick.named("mail") == plain.named("mail")
    quick.close()
    plain.close()


@settings(max_examples=40)
@given(
    st.lists(rows(), min_size=5, max_size=12, unique_by=lambda row: row.id),
    st.lists(changes, max_size=6),
    st.sampled_from(["mail", "m", "x", "send", "wether"]),
    st.integers(1, 3),
)
def test_a_walk_through_pages_gives_every_row_that_stays_exactly_once(first, later, text, limit):
    for index in (Index(None), Index(None, full_text=False)):
        index.put(first)
        stays = {row.id: row for row in first}
        before = {hit.id: hit.tier for hit in index.search(text, limit=50, include_disabled=True)}
        seen: list[str] = []
        listed: list[str] = []
        remaining = iter(later)
        after, last = None, ""
        while True:
            hits = index.search(text, after=after, limit=limit, include_disabled=True)
            page = index.page(after=last, limit=limit, include_disabled=True)
            if not hits and not page:
                break
            seen += [hit.id for hit in hits]
            listed += [row.id for row in page]
            after = hits[-1] if hits else after
            last = page[-1].id if page else last
            change = next(remaining, None)
            if change is not None:
                apply(index, change)
                stays = {id_: row for id_, row in stays.items() if index.get(id_) == row}
        assert len(listed) == len(set(listed))
        assert set(stays) <= set(listed)
        lasting = [id_ for id_ in before if id_ in stays]
        assert [id_ for id_ in dict.fromkeys(seen) if id_ in lasting] == lasting
        assert all(seen.count(id_) == 1 for id_ in lasting)
        index.close()
