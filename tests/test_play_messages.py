from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from domino_env.play.limits import Bucket, Buckets
from domino_env.play.messages import KINDS, MAX_NAME, MAX_TALK, Refused, alike, clean, read


def message(kind: str, **fields: Any) -> str:
    return json.dumps({"kind": kind, **fields})


PAGE = Path(__file__).parents[1] / "docs" / "table.md"
GOOD = [
    {"kind": "open", "name": "Ana", "preset": "puxar", "changes": {"players": 3, "target": None}, "seconds": 60},
    {"kind": "open", "name": "Ana", "preset": "duplas", "changes": {}, "seconds": None},
    {"kind": "enter", "room": "ABCD2345", "name": "Ana"},
    {"kind": "return", "room": "ABCD2345", "token": "x" * 32},
    {"kind": "sit", "seat": 3},
    {"kind": "stand"},
    {"kind": "bot", "seat": 0, "level": "doubles"},
    {"kind": "bot", "seat": 0, "level": None},
    {"kind": "start", "level": "counting"},
    {"kind": "play", "turn": 7, "move": "6-4L"},
    {"kind": "next", "turn": 7},
    {"kind": "rename", "name": "Rui"},
    {"kind": "say", "text": "olá"},
    {"kind": "kick", "person": 2},
    {"kind": "leave"},
    {"kind": "record"},
    {"kind": "shape", "width": 800.0, "height": 300.0},
    {"kind": "ping"},
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good["kind"])
def test_a_good_message_is_read_as_it_is(good: dict[str, Any]) -> None:
    assert read(json.dumps(good)) == good


def test_every_kind_has_an_example_and_stands_in_the_docs() -> None:
    assert {good["kind"] for good in GOOD} == KINDS.keys()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {kind: re.findall(r"`(\w+)`", fields) for kind, fields in rows} == {k: [*f] for k, f in KINDS.items()}


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good["kind"])
def test_a_field_too_many_or_too_few_is_refused(good: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="fields"):
        read(json.dumps({**good, "seet": 1}))
    for name in good.keys() - {"kind"}:
        with pytest.raises(Refused, match="fields"):
            read(json.dumps({key: value for key, value in good.items() if key != name}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a message"),
        ("{", "not a message"),
        ("[]", "no object"),
        ("null", "no object"),
        ("7", "no object"),
        ("[" * 4000, "not a message"),
        ('{"kind": NaN}', "NaN is no number"),
        ('{"kind": "say", "text": Infinity}', "Infinity is no number"),
        ("9" * 4090, "not a message"),
        ("{}", "unknown kind 'None'"),
        ('{"kind": ["play"]}', "unknown kind"),
        ('{"kind": "paly"}', "did you mean 'play'"),
        ('{"kind": "draw"}', "unknown kind 'draw'; kinds: open, enter"),
        ('{"kind": "pass"}', "unknown kind 'pass'"),
    ],
)
def test_what_is_no_message_is_refused(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        read(text)
    assert refused.value.code == "message"
    assert len(refused.value.why) < 300


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (message("sit", seat=-1), "seat=-1"),
        (message("sit", seat=True), "seat=True"),
        (message("sit", seat=1.0), "seat=1.0"),
        (message("sit", seat="1"), "seat='1'"),
        (message("play", turn=None, move="6-4L"), "turn=None"),
        (message("play", turn=1, move=6), "move is not a short text"),
        (message("play", turn=1, move="6" * 101), "move is not a short text"),
        (message("shape", width=99, height=300), "width is not a number from 100 to 10000"),
        (message("shape", width=300, height=1e9), "height is not"),
        ('{"kind": "shape", "width": 1e999, "height": 300}', "width is not"),
        (message("open", name="Ana", preset="duplas", changes={}, seconds=4), "seconds=4 is not"),
        (message("open", name="Ana", preset="duplas", changes={"target": [1]}, seconds=None), "changes: fields"),
        (message("open", name="Ana", preset="duplas", changes=[], seconds=None), "changes: fields"),
    ],
)
def test_a_wrong_value_names_its_field(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        read(text)


@pytest.mark.parametrize("name", ["", "   ", "\x00", "\u200b\u202e", "x" * (MAX_NAME + 1), 7, None, ["Ana"]])
def test_a_name_without_letters_or_with_too_many_is_refused(name: Any) -> None:
    with pytest.raises(Refused) as refused:
        read(message("rename", name=name))
    assert refused.value.code == "name"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  Ana  Maria ", "Ana Maria"),
        ("Ana\nMaria\t!", "Ana Maria !"),
        ("\u202eanA", "anA"),
        ("A\x00na", "Ana"),
        ("A\ud800na", "Ana"),
        ("<img src=x onerror=1>", "<img src=x onerror=1>"),
        ("null", "null"),
        ("Ana", "Ana"),
        ("e\u0301", "é"),
    ],
)
def test_text_is_kept_on_one_line_in_its_own_direction(given: str, kept: str) -> None:
    assert clean(given) == kept
    assert read(message("say", text=given))["text"] == kept
    clean(given).encode()


def test_what_people_say_has_an_end() -> None:
    assert read(message("say", text="x" * MAX_TALK))["text"] == "x" * MAX_TALK
    with pytest.raises(Refused, match="1 to 200 letters, not 201"):
        read(message("say", text="x" * (MAX_TALK + 1)))


def test_names_are_alike_but_for_case_and_width() -> None:
    assert alike("ANA") == alike("ana") == alike("\uff21na")  # a full-width A
    assert alike("Ana") != alike("Anna")


def test_a_bucket_fills_again_with_time() -> None:
    bucket = Bucket(3, 2.0, now=10.0)
    assert [bucket.take(10.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(10.4)
    assert bucket.take(10.5)
    assert not bucket.take(10.5)
    assert bucket.left(1000.0) == 3


def test_full_buckets_are_forgotten() -> None:
    buckets = Buckets(2, 1.0)
    assert buckets.any("a", 0.0)
    assert [buckets.take("a", 0.0) for _ in range(3)] == [True, True, False]
    assert buckets.take("b", 0.0)
    assert not buckets.any("a", 0.5)
    buckets.advance(1.5)
    assert len(buckets) == 1
    assert buckets.any("a", 1.5)
    buckets.advance(2.0)
    assert len(buckets) == 0
