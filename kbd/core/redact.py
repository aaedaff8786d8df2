"""Text made safe to keep and to show: secrets masked, control characters taken out.

Every expression runs in linear time on hostile text: repetitions are bounded or cannot begin anew inside
their own match.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache

MASK = "[redacted]"
_SHORTEST_SECRET = 12

_NOT_IN_WORD = r"(?<![A-Za-z0-9_-])"
_TOKENS = (
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{12,}",  # AWS key ids
    r"gh[pousr]_[A-Za-z0-9]{16,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"glpat-[A-Za-z0-9_-]{16,}",  # GitLab
    r"xox[a-z]-[A-Za-z0-9-]{8,}",  # Slack
    r"xapp-[A-Za-z0-9-]{8,}",
    r"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and their kin
    r"[spr]k_(?:live|test)_[A-Za-z0-9]{8,}",  # Stripe
    r"AIza[A-Za-z0-9_-]{28,}",  # Google
    r"ya29\.[A-Za-z0-9_-]{16,}",
    r"npm_[A-Za-z0-9]{20,}",
    r"pypi-[A-Za-z0-9_-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}",  # SendGrid
    r"AGE-SECRET-KEY-1[A-Z0-9]{16,}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",  # Telegram
    r"(?:gsk|r8|sbp|rubygems|figd|sntrys|whsec|pscale_tkn|dckr_pat|lin_api|ntn|glsa|shp(?:at|ss|ca|pa)|do[opr]_v1)"
    r"_[A-Za-z0-9_=-]{16,}",  # Groq, Replicate, Supabase, RubyGems, Figma, Sentry, …
    r"(?:xai-|pplx-|tskey-|GOCSPX-|PMAK-|ATATT3|hvs\.|dp\.pt\.)[A-Za-z0-9_=-]{20,}",  # xAI, Google, Atlassian, Vault, …
    r"(?:dapi|SK|key-)[0-9a-f]{32}",  # Databricks, Twilio, Mailgun
    r"(?:EAA|APA91b|NRAK-|secret_)[A-Za-z0-9_-]{24,}",  # Facebook and Square, Firebase, New Relic, Notion
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{20,}",  # Terraform
    r"[MNO][A-Za-z0-9]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",  # JWT
)
_TOKEN_HEADS = (
    "AKIA", "ASIA", "gh", "glpat-", "xox", "xapp-", "sk-", "sk_", "pk_", "rk_", "AIza", "ya29.", "npm_", "pypi-", "hf_",
    "SG.", "AGE-", "eyJ", "-----BEGIN",
)  # fmt: skip
_NAMED = (
    r"(?:pass(?:word|wd|phrase)|passwd|pwd|secret|token(?!s|iz)|api[_-]?key|apikey|access[_-]?key|account[_-]?key|auth[_-]?key"
    r"|private[_-]?key|secret[_-]?key|encryption[_-]?key|client[_-]key|credentials?|密码|口令|密钥|令牌)"
)
# An open quote runs to the end: the snippet was cut inside the secret.
_VALUE = r"""(?:\\?"(?!\[redacted)[^"]+"?|'(?!\[redacted)[^']+'?|[^\s"'`,;&<>(){}\[\]]+)"""

# Each pattern keeps what group 1 matched (the name, the scheme), if it has one, and masks the rest.
_SECRETS = (
    (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,9}-----|\Z)", re.S),
    (_NOT_IN_WORD + "(?:" + "|".join(_TOKENS) + ")", 0),
    (r"(hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]{8,}", re.I),
    (r"\b([a-z][a-z0-9+.-]{1,20}://[^\s/@:]{0,100}:)(?!\d{1,5}/)[^\s]{1,300}(?=@)", re.I),
    (r"\b(authorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:[a-z]{3,12}\s{1,3})?+)[A-Za-z0-9._~+/=:-]{6,}", re.I),
    (r"\b((?:bearer|basic)\s{1,3})(?=[A-Za-z._~+/=-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{8,}", re.I),
    (r"\b(bearer\s{1,3})[A-Za-z0-9._~+/=-]{20,}", re.I),
    (r"(" + _NAMED + r"[A-Za-z0-9_-]{0,30}\\?[\"'`]?\s{0,3}(?:[:=：]|=>|:=|是)\s{0,3})" + _VALUE, re.I),
    (r"(--?" + _NAMED + r"[A-Za-z0-9_-]{0,30}\s{1,3})(?!-)" + _VALUE, re.I),
    (r"([?&](?:sig|signature|x-amz-signature|x-goog-signature)=)[A-Za-z0-9%+/=_-]{10,}", re.I),
    (r"(cookie['\"]?\s{0,3}[:=]\s{0,3}['\"]?)(?=[^\s'\"]{0,100}=)[^'\"\r\n]{8,}", re.I),
    (r"(\s(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:)[^\s'\"]+", 0),  # curl
    (
        r"(\b(?:sshpass\s{1,3}-p\s?|mysql[a-z]{0,8}\s[^|;&\r\n]{0,200}?\s?-p(?=['\"]?[A-Za-z0-9])"
        r"|login\s{1,3}[^\s]{1,100}\s{1,3}password\s{1,3}))[^\s]+",  # and .netrc
        0,
    ),
    (r"(:(?:[0-9]{4,5}|\*):[\w*.-]{1,60}:[\w*.@-]{1,60}:)[^\s:]{4,}", 0),  # .pgpass
    (r"(\"auths?\"\s{0,3}:\s{0,3}\")[A-Za-z0-9+/=]{8,}", 0),  # Docker
    (r"(_PAT\s{0,3}[:=]\s{0,3})" + _VALUE, 0),
    (r"\$(?:apr1|1|2[abxy]|5|6|7|y|argon2[a-z]{1,2})\$[A-Za-z0-9./$=,+_-]{16,}", 0),  # hashes of passwords
    (r"(private-lines:\s{0,3}[0-9]{1,4}\s{1,3})[A-Za-z0-9+/=\s]{16,}", re.I),  # PuTTY
    # The secret half of an AWS key: forty characters of base64, letters of both cases and digits among them.
    (
        r"(?<![A-Za-z0-9+/=])(?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])(?=[A-Za-z+/]{0,39}[0-9])"
        r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])",
        0,
    ),
    # What is left of a key whose header was cut off: a long run of base64.
    (r"(?<![A-Za-z0-9+/])(?=[A-Za-z0-9+/]{0,199}[A-Z])(?=[A-Za-z0-9+/]{0,199}[0-9])[A-Za-z0-9+/]{60,}={0,2}", 0),
)

# No secret is without one of these, and most lines are without any: it is looked for before all else.
_SUSPICIOUS = re.compile(
    r"[A-Za-z0-9+/_.=-]{12}|://|-----|\s--?u|:(?:[0-9]{4}|\*)|[?&]sig|_PAT|\$[0-9ay]|密码|口令|密钥|令牌"
    r"|(?i:pass|pwd|secret|token|key|auth|bearer|basic|credential|cookie|mysql)"
)
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_LINE = re.compile(r"(?<![A-Za-z0-9+/])(?=[A-Za-z+/]{0,80}[0-9=])[A-Za-z0-9+/]{8,}={0,2}")

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)
_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@cache
def _secrets() -> tuple[re.Pattern[str], ...]:
    """Compile at the first need: commands that only show text have none, and it takes them 10 ms."""
    return tuple(re.compile(pattern, flags) for pattern, flags in _SECRETS)


def redact(snippet: str) -> str:
    """Return `snippet` in one line, without control characters, its secrets masked. Idempotent.

    Masks private keys, the tokens of well-known services, JWT, authorization headers, credentials in URLs,
    connection strings, and values given to names such as `password`. Redact before cutting a text to length:
    half a secret has lost the prefix that gives it away.
    """
    return _without_secrets(printable(snippet))


def _without_secrets(text: str) -> str:
    if not _SUSPICIOUS.search(text):
        return text
    text = _without_end_of_key(text)
    for pattern in _secrets():
        text = pattern.sub(_masked, text)
    return text


def redact_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of a text with their secrets masked, a private key over several of them included. Idempotent.

    All else stays, control characters as well.
    """
    masked: list[str] = []
    in_key = False
    for line in lines:
        begins = "-----BEGIN" in line and "PRIVATE KEY" in line
        masked.append(MASK if in_key and not begins else _without_secrets(line))
        in_key = (in_key or begins) and not _KEY_END.search(line)
    return masked


def _without_end_of_key(text: str) -> str:
    """Mask the lines of a private key whose head is missing: all long words before its end."""
    end = _KEY_END.search(text)
    if end is None or "-----BEGIN" in text[: end.start()]:
        return text
    return _KEY_LINE.sub(MASK, text[: end.start()]) + text[end.start() :]


def holds_secret(text: str) -> bool:
    """Tell whether a private key, a token of a well-known service or a credential in a URL stands in the text.

    Narrower than `redact`, since it decides on refusing a value: a word such as `password:` alone is no secret, and a
    token has a digit in it (`sk-learn-pipeline-review` is none).
    """
    keys, tokens, *services = _secrets()[:4]
    certain = any(pattern.search(text) for pattern in (keys, *services))
    return certain or any(re.search("[0-9]", found[0]) for found in tokens.finditer(text))


def masked_id(given: str) -> str:
    """Return an id of an agent; one that begins with a token becomes `redacted-` and a digest, the same every time."""
    # The heads alone decide for nearly all: an id is looked at for each record.
    if not given.startswith(_TOKEN_HEADS) or not holds_secret(given):
        return given
    return f"redacted-{hashlib.sha256(given.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _masked(found: re.Match[str]) -> str:
    kept = (found.group(1) or "") if found.re.groups else ""
    return kept + MASK


def printable(text: str, *, keep_lines: bool = False) -> str:
    r"""Return `text` fit for a terminal or a log: no escape sequence, control character or bidi control. Idempotent.

    Tabs become spaces, and so do line ends unless `keep_lines`, which makes each of them `\n`. A lone surrogate,
    which no stream can encode, becomes U+FFFD.
    """
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n" if keep_lines else " ", text).replace("\t", " ")
    lines = text.split("\n")
    return _SURROGATES.sub("\ufffd", "\n".join(_UNSEEN.sub("", line) for line in lines))
