"""What ranks before what, and why; never by the order of the file."""

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.handles import handle
from kbd.core.model import Relation, State
from kbd.core.normal import normalise
from kbd.core.query import overlap, query_words
from kbd.core.rank import RankPolicy, Wanted, rank
from kbd.core.shelf import Candidate, Shelf

TODAY = date(2026, 6, 11)


def entry(title, key=None, **columns):
    norm = normalise(title)
    given = {
        "key": hash(title) if key is None else key,
        "title": title,
        "norm": norm,
        "handle": handle(norm),
        "ident": None,
        "type": "pitfall",
        "body": "",
        "state": State.ACTIVE,
        "ref": 0,
        "last": None,
        "created": date(2026, 1, 1),
        "never_cited": True,
    }
    return Candidate(**(given | columns))


def relation(s, p, o, days_ago=1, e=None):
    day = TODAY - timedelta(days=days_ago)
    return Relation(
        s.title if isinstance(s, Candidate) else s, p, o.title if isinstance(o, Candidate) else o, day, day, e
    )


A, B, C = entry("Lock fd leaked on exception path"), entry("Store timestamps in UTC"), entry("Backoff must be capped")


def ranking(entries, relations=(), **wanted):
    files = tuple((name,) for name in wanted.pop("files", ()))
    return rank([Shelf.of(entries, relations)], Wanted(files=files, **wanted), TODAY)


def titles(entries, relations=(), **wanted):
    return [one.candidate.title for one in ranking(entries, relations, **wanted).ranked]


def scores(entries, relations=(), **wanted):
    return {one.candidate.title: one.score for one in ranking(entries, relations, **wanted).ranked}


def test_entry_that_applies_to_the_file_comes_first():
    busy = entry("A lesson that everybody cites", ref=200, last=TODAY, never_cited=False)
    assert titles([busy, A], [relation(A, "applies_to", "src/net.py")], files=["src/net.py"])[0] == A.title


@pytest.mark.parametrize(
    ("names", "object_", "fit"),
    [
        ("src/net.py", "src/net.py", 1.0),
        ("src/net.py", "./src/net.py", 1.0),
        ("/home/a/project/src/net.py", "src/net.py", 0.8),
        ("src/net.py", "project/src/net.py", 0.8),
        ("src/net.py", "net.py", 0.5),
        ("net.py", "src/net.py", 0.5),
        ("src/net.py", "src", 0.4),
        ("src/net.py", "src/", 0.4),
        ("src", "src/net.py", 0.4),
        ("src/net.py", "src/internet.py", 0.0),
        ("src/internet.py", "net.py", 0.0),
        ("src2/net.py", "src", 0.0),
        ("src/net.py", "/", 0.0),
        ("src/net.py", "", 0.0),
        ("", "src/net.py", 0.0),
    ],
)
def test_relation_fits_by_whole_parts_of_the_path(names, object_, fit):
    found = scores([A], [Relation(A.title, "applies_to", object_, TODAY, TODAY)], files=[names])
    assert found[A.title].relation == pytest.approx(8 * fit)


def test_the_best_of_several_relations_counts_once():
    both = [relation(A, "applies_to", "net.py"), relation(A, "applies_to", "src/net.py")]
    assert scores([A], both, files=["src/net.py", "src/other.py"])[A.title].relation == 8


def test_stale_relation_ranks_behind_a_fresh_one_however_exact():
    relations = [relation(A, "applies_to", "src/net.py", days_ago=200), relation(B, "applies_to", "net.py")]
    assert titles([A, B], relations, files=["src/net.py"]) == [B.title, A.title]


def test_expired_relation_says_nothing():
    assert scores([A], [relation(A, "applies_to", "src/net.py", e=TODAY)], files=["src/net.py"])[A.title].relation == 0


@pytest.mark.parametrize("name", [lambda e: e.title.upper(), lambda e: e.handle, lambda e: f" {e.title} "])
def test_relation_may_name_its_entry_by_title_or_handle(name):
    assert scores([A], [relation(name(A), "applies_to", "a.py")], files=["a.py"])[A.title].relation == 8


@pytest.mark.parametrize(("s", "p", "o"), [(A, "requires", B), (A, "extends", B), (B, "extends", A)])
def test_what_a_related_entry_requires_or_extends_comes_along(s, p, o):
    found = scores([A, B, C], [relation(A, "applies_to", "a.py"), relation(s, p, o)], files=["a.py"])
    assert (found[A.title].relation, found[B.title].hop, found[C.title].hop) == (8, 4, 0)


def test_the_requirement_does_not_bring_along_who_requires_it():
    found = scores([A, B], [relation(A, "applies_to", "a.py"), relation(B, "requires", A)], files=["a.py"])
    assert found[B.title].hop == 0


def test_a_second_hop_gives_nothing():
    links = [relation(A, "applies_to", "a.py"), relation(A, "requires", B), relation(B, "requires", C)]
    assert scores([A, B, C], links, files=["a.py"])[C.title].hop == 0


def test_superseded_entry_is_left_out_and_its_successor_inherits_the_file():
    found = ranking([A, B], [relation(A, "applies_to", "a.py"), relation(B, "supersedes", A)], files=["a.py"])
    assert [(one.candidate.title, one.score.hop) for one in found.ranked] == [(B.title, 4)]
    assert [one.reason for one in found.left] == [f"superseded by [{B.handle}] {B.title}"]


def test_archived_successor_supersedes_nothing():
    gone = entry(B.title, state=State.ARCHIVED)
    assert titles([A, gone], [relation(gone, "supersedes", A)]) == [A.title]


def test_an_entry_does_not_supersede_itself():
    assert titles([A], [relation(A, "supersedes", A)]) == [A.title]


@pytest.mark.parametrize("state", [State.DORMANT, State.ARCHIVED])
def test_only_active_entries_are_handed_out(state):
    found = ranking([A, entry(B.title, state=state)])
    assert [one.candidate.title for one in found.ranked] == [A.title]
    assert [one.reason for one in found.left] == [state.value]


def test_other_types_are_left_out():
    found = ranking([A, entry(B.title, type="decision")], types=frozenset({"decision"}))
    assert ([one.candidate.title for one in found.ranked], found.left[0].reason) == (
        [B.title],
        "a pitfall, not asked for",
    )


def test_conflicts_are_known_from_both_sides():
    shelf = Shelf.of([A, B], [relation(A, "conflicts_with", B)])
    assert (shelf.conflicts[A.key], shelf.conflicts[B.key]) == ((B,), (A,))


def test_title_counts_more_than_text_and_both_more_than_neither():
    text = entry("Something else entirely", body="the retry loop hides it")
    assert titles([C, text, entry("Retry loops hide faults")], query="retry") == [
        "Retry loops hide faults", text.title, C.title
    ]  # fmt: skip


def test_rare_word_counts_more_than_a_common_one():
    common = [entry(f"Cache rule number {n}") for n in range(8)]
    assert titles([*common, entry("Quorum rule for writes")], query="cache quorum")[0] == "Quorum rule for writes"


@pytest.mark.parametrize(
    ("title", "query"), [("Locked files", "lock"), ("子进程会阻塞循环", "为什么阻塞了"), ("C++ ABI break", "abi")]
)
def test_word_is_found_at_the_beginning_of_a_word(title, query):
    assert scores([entry(title)], query=query)[title].title > 0


def test_word_is_not_found_inside_a_word():
    assert scores([entry("Blocked by a deadlock")], query="lock")["Blocked by a deadlock"].title == 0


def test_handle_or_id_in_the_query_finds_the_entry():
    ident = entry("Some entry with an id", ident="KD07")
    assert titles([C, A, ident], query=f"see {A.handle}")[0] == A.title
    assert titles([C, A, ident], query="what about KD07?")[0] == ident.title


def test_one_common_word_does_not_make_an_entry_asked_for():
    found = {one.candidate.title: one.is_asked_for for one in ranking([A, B], query="an exception path here").ranked}
    assert found == {A.title: True, B.title: False}
    assert not any(one.is_asked_for for one in ranking([A, B], query="exception").ranked)


def test_recent_counts_more_and_fades_by_half_in_thirty_days():
    found = scores(
        [entry("Cited today in anger", last=TODAY), entry("Cited a month ago", last=TODAY - timedelta(days=30))]
    )
    assert [score.recency for score in found.values()] == [2.0, 1.0]


@pytest.mark.parametrize("day", [TODAY + timedelta(days=1), date.max, None])
def test_day_ahead_counts_as_absent(day):
    score = scores([entry("A wild clock was here", last=day, created=day)])["A wild clock was here"]
    assert (score.recency, score.exploration) == (0, 0)


def test_references_count_by_their_logarithm():
    found = scores([entry("Cited three times so far", ref=3), entry("Never cited so far", ref=-5)])
    assert {title: score.refs for title, score in found.items()} == {
        "Cited three times so far": 0.5 * math.log2(4), "Never cited so far": 0
    }  # fmt: skip


def test_new_entry_that_never_had_a_chance_gets_a_bonus_for_a_while():
    week = TODAY - timedelta(days=7)
    entries = [
        entry("Made today and never cited", created=TODAY),
        entry("Made a week ago, never cited", created=week),
        entry("Made a week ago and cited", created=week, never_cited=False),
        entry("Made long ago, never cited"),
    ]
    assert [one.score.exploration for one in sorted(ranking(entries).ranked, key=lambda o: -o.score.exploration)] == [
        1.0, 0.5, 0, 0
    ]  # fmt: skip


def test_score_is_the_sum_of_its_terms():
    one = ranking([entry("Fresh and related entry", ref=7, last=TODAY)], [], query="fresh").ranked[0]
    assert one.total == pytest.approx(math.fsum(one.score))


def test_equal_scores_go_by_handle():
    entries = [entry(f"Lesson of equal worth {n}") for n in range(30)]
    assert [one.candidate.handle for one in ranking(entries).ranked] == sorted(one.handle for one in entries)


@given(st.randoms(use_true_random=False))
def test_order_of_file_and_relations_never_shows(shuffler):
    entries = [
        entry(f"Lesson number {n} of cache and lock", key=n, ref=n % 3, body="text " * (n % 4)) for n in range(12)
    ]
    links = [relation(entries[n], "applies_to", f"src/f{n % 2}.py") for n in range(0, 12, 3)]
    links += [relation(entries[1], "requires", entries[0]), relation(entries[5], "supersedes", entries[4])]
    right = titles(entries, links, files=["src/f0.py"], query="cache number 3")
    entries_again, links_again = list(entries), list(links)
    shuffler.shuffle(entries_again)
    shuffler.shuffle(links_again)
    assert titles(entries_again, links_again, files=["src/f0.py"], query="cache number 3") == right


@given(st.text(max_size=300))
def test_any_query_gives_shares_between_nothing_and_all(text):
    found = overlap(text, [A, B, C, entry("缓存必须有上限")])
    assert all(min(share) >= 0 and sum(share) <= 1 + 1e-9 for share in found.shares.values())


def test_words_of_a_query_are_bounded_and_free_of_stop_words():
    assert query_words("How does the cache_lock fail in v1.2?") == ("cache_lock", "fail", "v1.2")
    assert query_words("不要阻塞") == ("不要", "要阻", "阻塞")
    assert len(query_words(" ".join(f"word{n}" for n in range(1000)))) == 24
    assert query_words("") == query_words("the of ?!") == ()


def test_weights_are_those_of_the_policy():
    policy = RankPolicy(relation=1, recency=0, refs=0, exploration=0)
    shelf = Shelf.of([A], [relation(A, "applies_to", "a.py")])
    assert rank([shelf], Wanted(files=(("a.py",),)), TODAY, policy).ranked[0].total == 1


def test_several_bases_are_ranked_together():
    other = Shelf.of([B], [relation(B, "applies_to", "a.py")])
    found = rank([Shelf.of([A], ()), other], Wanted(files=(("a.py",),)), TODAY)
    assert [one.candidate.title for one in found.ranked] == [B.title, A.title]


def test_ten_thousand_relations_of_odd_shape_do_no_harm():
    paths = ["", "/", "..", "a" * 5000, "\\x\\y", "src//x"]
    odd = [Relation(A.title, "applies_to", paths[n % len(paths)], None, None) for n in range(10_000)]
    assert titles([A], odd, files=["src/x", "..", "/"]) == [A.title]
