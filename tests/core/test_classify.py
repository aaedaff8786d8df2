"""Types read from signal phrases, in English and Chinese."""

import pytest

from kbd.core.classify import SIGNALS, Classified, classify

SENTENCES = {
    "pitfall": [
        "Cache warmup races — a race condition between two workers on first start",
        "Importing inside the plugin broke CI after a failed import of yaml",
        "The parser silently drops rows with an empty key",
        "File handle leaked when the upload is cancelled",
        "Don't call subprocess.run in async functions",
        "Never block the event loop with requests.get",
        "fcntl.flock on symlinked path = arbitrary file lock",
        "Pagination has an off-by-one on the last page",
        "grep on minified files gives false positives",
        "The importer hangs on a FIFO",
        "**不要在 async 函数里直接调 subprocess.run** — 会阻塞 event loop",
        "两个进程同时写入会出现竞态",
        "异常路径上文件锁泄漏",
        "升级驱动后导致部分测试失败",
        "切换时区时静默丢弃记录",
    ],
    "decision": [
        "We chose httpx over requests for its async client",
        "Chose Amazon Transcribe over Whisper: existing SSO",
        "Selected long polling vs websockets: proxies",
        "SQLite was chosen because one file is easy to copy",
        "Decided to keep the monorepo",
        "We opted for a single writer",
        "Switched from npm to pnpm in March",
        "我们选择 PostgreSQL，运维更熟",
        "采用轮询而不是推送",
        "最终决定：日志只保留三十天",
    ],
    "process": [
        "Workflow: branch, test, review, merge",
        "Release: build, verify, tag, publish",
        "Steps: stop the writer, copy, start again",
        "Runbook for a full disk",
        "First freeze the branch, then tag it and finally publish",
        "发布流程：构建、校验、打标签、发布",
        "先停服务，再备份，最后升级",
        "步骤：一、备份 二、迁移",
    ],
    "model": [
        "Session states: COLD to DEAD",
        "The job queue is a state machine with five nodes",
        "An order consists of lines and a header",
        "Invariant: every row has an owner",
        "会话状态：冷、流式、空闲、死亡",
        "配置由默认值、文件和参数组成",
        "系统分为采集、存储两层",
    ],
    "guideline": [
        "Pattern: always use atomic commits",
        "Rule: never skip the review",
        "Atomic commits: one logical change per commit",
        "Something happened in the code",
        "Store timestamps in UTC",
        "最佳实践：一次提交只做一件事",
        "时间一律用 UTC 存储",
        "",
    ],
}


@pytest.mark.parametrize(("text", "expected"), [(text, name) for name, texts in SENTENCES.items() for text in texts])
def test_sentence_has_its_type(text: str, expected: str) -> None:
    assert classify(text).type == expected


def test_types_are_asked_in_their_order() -> None:
    assert list(SIGNALS) == ["pitfall", "decision", "process", "model", "guideline"]
    assert classify("We chose a queue over threads after a race condition").type == "pitfall"


@pytest.mark.parametrize("text", ["each step of the pipeline", "A → B → C", "an error in code", "child process: id"])
def test_words_of_all_technical_text_are_no_signals(text: str) -> None:
    assert classify(text) == Classified("guideline", None)


@pytest.mark.parametrize("text", ["the bleakest day", "unchosen overlays", "别名要短", "schemas: none"])
def test_signal_does_not_match_inside_a_word(text: str) -> None:
    assert classify(text) == Classified("guideline", None)


@pytest.mark.parametrize(
    "text", ["We CHOSE\nhttpx  over requests", "we chose **httpx** over `requests`", "[x] We chose httpx over y"]
)
def test_case_markup_and_line_breaks_do_not_matter(text: str) -> None:
    assert classify(text) == Classified("decision", "we chose")


def test_gap_stays_within_a_sentence_but_crosses_version_dots() -> None:
    assert classify("They chose v1.2 over v2.0").signal == "chose … over"
    assert classify("They chose well. Move over there").signal is None


def test_configured_phrases_come_first_and_may_add_types() -> None:
    extra = {"security": ["CVE-", "^Threat", "signed … key"], "pitfall": ["brittle"], "empty": []}
    assert classify("CVE-2026-1 is a race condition", extra) == Classified("security", "CVE-")
    assert classify("Threat: stolen laptop", extra) == Classified("security", "^Threat")
    assert classify("a brittle selector", extra) == Classified("pitfall", "brittle")
    assert classify("race condition", extra) == Classified("pitfall", "race condition")


def test_configured_phrase_is_plain_text_and_nonsense_matches_nothing() -> None:
    assert classify("abc", {"x": ["a.c", "", "^", "…", "  "]}) == Classified("guideline", None)


def test_long_hostile_text_is_read_in_linear_time() -> None:
    assert classify("chose " * 50_000).type == "guideline"
    assert classify("先" * 50_000).type == "guideline"
