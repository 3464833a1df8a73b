"""File names from ids: reversible, never shared, and within what file systems take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.folder.layout import Layout, dedupe_key, parts_of
from quire.folder.names import LIMIT, Names, decode
from quire.model.receipt import Kind, Receipt, Stage, key_of

PLAIN, PORTABLE = Names(), Names(portable=True)

ids = st.text(min_size=0, max_size=40) | st.text(alphabet="aAbB_:|/'\\.%~ ", max_size=12)


def receipt(key: str, record_id: str = "r", step: str = "s", name: str = "e") -> Receipt:
    return Receipt(
        key, record_id, step, 1, name, Kind.ONCE, Stage.DONE, "", "", "", "1", "n", "w", None, 1, 0.0, 0.0, "", "", ""
    )


@pytest.mark.parametrize("names", [PLAIN, PORTABLE], ids=["plain", "portable"])
@given(text=ids)
def test_an_id_is_read_back_from_its_name(names: Names, text: str) -> None:
    name = names.encode(text)

    assert decode(name) in (text, None)
    assert decode(name) == text or len(name.encode()) > LIMIT - 3
    assert "/" not in name and "\0" not in name and not name.startswith(".") and name
    assert len(name.encode()) <= LIMIT


@given(texts=st.lists(ids, min_size=2, max_size=8, unique=True))
def test_no_two_ids_share_a_name_even_where_case_and_composition_are_not_seen(texts: list[str]) -> None:
    import unicodedata

    seen = [unicodedata.normalize("NFKD", PORTABLE.encode(text)).casefold() for text in texts]

    assert len(set(seen)) == len(texts)
    assert len({PLAIN.encode(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("text", ["cmp_2026_03_spring_drop:prt_4183", "kw_analytics", "a|b", "Zürich", "价格", "a b"])
def test_what_a_file_system_keeps_stays_readable(text: str) -> None:
    assert PLAIN.encode(text) == text


@pytest.mark.parametrize("text", ["CON", "nul.txt", "a.", "a ", "a:b", "a|b", "A", "a?b", "Zürich"])
def test_a_portable_name_is_one_that_windows_takes(text: str) -> None:
    name = PORTABLE.encode(text)

    assert not set(name) & set('<>:"/\\|?*')
    assert not name.endswith((".", " "))
    assert name.partition(".")[0].lower() not in ("con", "nul")
    assert decode(name) == text


@pytest.mark.parametrize("names", [PLAIN, PORTABLE], ids=["plain", "portable"])
def test_a_long_id_gets_a_readable_beginning_and_a_hash_of_the_whole(names: Names) -> None:
    one, other = "x/" + "y" * 300, "x/" + "y" * 299 + "z"

    assert names.encode(one) != names.encode(other)
    assert names.encode(one).startswith("x%2Fyyy")
    assert decode(names.encode(one)) is None
    assert (
        len(f"receipt_{names.encode(one, 110)}_{names.encode(one, 50)}~{names.encode(one, 40)}~{'0' * 16}.json") < 255
    )


def test_the_files_of_the_seed_have_its_names() -> None:
    layout = Layout("seo", PLAIN)
    record = "cmp_2026_03_spring_drop:prt_4183"
    own = receipt(key_of("own", "cmp_2026_03_spring_drop|prt_4183|PUBLISH"), record, "PUBLISH")

    assert layout.receipt(record, "PUBLISH").endswith(
        "/artifacts/receipt_cmp_2026_03_spring_drop:prt_4183_PUBLISH.json"
    )
    assert layout.receipt("sub_1", "UPDATE_TRACKER").endswith("/artifacts/receipt_sub_1_UPDATE_TRACKER.json")
    assert layout.state(record) == f"Workflows/seo/state/state_{record}.json"
    assert layout.lock(own) == "Workflows/seo/locks/lock_cmp_2026_03_spring_drop|prt_4183|PUBLISH.lock"
    assert layout.log("run_0192", 1772475262.0) == "Workflows/seo/logs/2026-03-02/run_0192.json"


parts = st.text(alphabet="ab|%:_1", max_size=4)


@given(one=st.tuples(parts, parts, parts, parts, parts), other=st.tuples(parts, parts, parts, parts, parts))
def test_no_two_effect_keys_share_a_lock(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    def lock(of: tuple[str, ...]) -> str:
        workflow, record, step, scope, name = of
        return Layout("w", PLAIN).lock(receipt(key_of(workflow, record, step, 1, scope, "once", name, 0)))

    assert (lock(one) == lock(other)) == (one == other)


@given(own=st.text(alphabet="ab|%", max_size=12), made=st.tuples(parts, parts, parts, parts))
def test_a_key_of_the_users_own_shares_no_lock_with_one_of_the_engine(own: str, made: tuple[str, ...]) -> None:
    workflow, record, step, name = made
    ours = receipt(key_of(workflow, record, step, 1, "", "once", name, 0))
    users = receipt(key_of("own", own))
    mimic = receipt(key_of("own", dedupe_key(ours)[0]))

    locks = {Layout("w", PLAIN).lock(each) for each in (ours, users, mimic)}

    assert len(locks) == (2 if users.key == mimic.key else 3)


@given(st.lists(st.text(max_size=6), max_size=6))
def test_a_key_is_taken_apart_as_it_was_made(texts: list[str]) -> None:
    assert parts_of(key_of(*texts)) == texts
