"""Redaction: by value, by form, by name, at any depth."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadmesh.kernel.redaction import Redaction, Secrets, names_a_secret

TOKEN = "sms_" + "aB3-x_" * 8


class TestByValue:
    def test_a_known_secret_is_found_in_any_text(self) -> None:
        assert Secrets(["hunter2"]).masked("user said hunter2!") == "user said ***!"

    def test_a_secret_is_found_as_json_and_addresses_spell_it(self) -> None:
        secret = 'a"b/c\\d e'
        secrets = Secrets([secret])
        assert secrets.masked(json.dumps({"x": secret})) == '{"x": "***"}'
        assert secrets.masked("/x?y=a%22b%2Fc%5Cd%20e&z") == "/x?y=***&z"

    def test_each_line_of_a_long_secret_is_one(self) -> None:
        line = base64.b64encode(b"k" * 40).decode()
        assert Secrets([f"-----BEGIN KEY-----\n{line}\n"]).masked(f"> {line}") == "> ***"

    def test_a_secret_within_another_leaves_no_rest(self) -> None:
        assert Secrets(["hunter2", "hunter2-and-more"]).masked("hunter2-and-more") == "***"

    def test_a_forgotten_secret_is_shown(self) -> None:
        secrets = Secrets(["hunter2"])
        secrets.discard("hunter2")
        assert secrets.masked("hunter2") == "hunter2"

    def test_a_secret_that_two_know_is_one_until_both_forget(self) -> None:
        secrets = Secrets(["hunter2", "hunter2"])
        secrets.discard("hunter2")
        assert secrets.masked("hunter2") == "***"

    def test_a_value_too_short_to_be_a_secret_masks_nothing(self) -> None:
        assert Secrets(["", "a"]).masked("a banana") == "a banana"


class TestByForm:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (f"token {TOKEN} expired", "token sms_*** expired"),
            ("smo_0123456789abcdef", "smo_***"),
            ("Authorization: Basic dXNlcjpwYXNz", "Authorization: ***"),
            ("{'authorization': 'Negotiate abc'}", "{'authorization': ***"),
            ("Cookie: a=b; c=d\nHost: x", "Cookie: ***\nHost: x"),
            ("sent Bearer abcdefghijklmnop to", "sent Bearer *** to"),
            ("postgresql://me:pw@db/x", "postgresql://me:***@db/x"),
            ("redis://:pw@db/x", "redis://:***@db/x"),
            ('{"password": "a \\" b", "x": 1}', '{"password": ***, "x": 1}'),
            ("?api_key=abc&page=2", "?api_key=***&page=2"),
            ("client_secret=abc, x", "client_secret=***, x"),
        ],
    )
    def test_what_looks_like_a_secret_is_masked(self, text: str, shown: str) -> None:
        assert Secrets().masked(text) == shown

    @pytest.mark.parametrize(
        "text",
        [
            "sms_ tokens are handed out by the platform",
            "a bearer token is missing",
            "http://127.0.0.1:3777/x@y",
            "STEADMESH_TOKEN_FILE=/run/token_file",
            "lease token expired",
        ],
    )
    def test_what_only_speaks_of_secrets_is_left_alone(self, text: str) -> None:
        assert Secrets().masked(text) == text


class TestByName:
    @pytest.mark.parametrize(
        "name",
        [
            "token",
            "access_token",
            "X-Agent-Token",
            "clientSecret",
            "api_key",
            "apiKey",
            "API-Key",
            "password",
            "DB_PASSWORD",
            "Authorization",
            "credentials",
            "private_key",
            "set-cookie",
        ],
    )
    def test_names_of_secrets(self, name: str) -> None:
        assert names_a_secret(name)

    @pytest.mark.parametrize(
        "name", ["key", "seat", "tokenizer", "message_id", "secretary", "monkey", "cook"]
    )
    def test_names_of_other_things(self, name: str) -> None:
        assert not names_a_secret(name)

    def test_values_are_masked_at_any_depth(self) -> None:
        value = {"a": [{"headers": {"Cookie": "x", "Host": "y"}}], "apiKey": {"deep": "x"}}
        assert Redaction(Secrets()).fields(value) == {
            "a": [{"headers": {"Cookie": "***", "Host": "y"}}],
            "apiKey": "***",
        }

    def test_counts_and_flags_are_shown(self) -> None:
        fields = {"max_tokens": 5, "token_count": 2, "token": None, "has_token": True}
        assert Redaction(Secrets()).fields(fields) == fields

    def test_a_password_of_digits_is_masked(self) -> None:
        assert Redaction(Secrets()).fields({"password": 1234}) == {"password": "***"}


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


class TestBounds:
    def test_long_texts_are_cut(self) -> None:
        assert Redaction(Secrets(), longest_text=5).text("abcdefgh") == "abcde..."

    @given(st.integers(0, 300), st.integers(1, 300))
    def test_no_piece_of_a_secret_survives_a_cut(self, before: int, longest: int) -> None:
        secret = "0123456789" * 4
        redaction = Redaction(Secrets([secret]), longest_text=longest)
        text = "x" * before + secret + "y" * 400
        assert not set(redaction.text(text)) & set(secret)
        assert not set(redaction.end_of(text[::-1].replace(secret[::-1], secret), longest)) & set(
            secret
        )

    def test_the_end_of_a_text_is_kept(self) -> None:
        assert Redaction(Secrets()).end_of("x" * 500 + "the end", 7) == "...the end"

    def test_a_circle_is_broken(self) -> None:
        circle: list[object] = []
        circle.append(circle)
        json.dumps(Redaction(Secrets()).value(circle))

    def test_what_cannot_be_shown_is_named(self) -> None:
        shown = Redaction(Secrets()).value([Unshowable(), b"abc", float("nan"), 10**5000])
        assert isinstance(shown, list)
        assert shown[:3] == ["<Unshowable that cannot be shown>", "<3 bytes>", "nan"]
        json.dumps(shown, allow_nan=False)

    def test_an_error_is_told_with_its_kind_and_masked(self) -> None:
        error = ValueError("bad password=abc")
        assert Redaction(Secrets()).value(error) == "ValueError: bad password=***"
