"""Which type an untagged entry has, read from phrases that only one type uses.

A signal must be specific to its type: a word that all technical text uses (step, pipeline, error, an arrow)
would draw every entry to the type it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kbd.core.normal import normalise

FALLBACK = "guideline"
_LONGEST_TEXT = 10_000

# In the order in which they are asked. `…` stands for some words of the same sentence, a leading `^` for the
# beginning of the text.
SIGNALS: Mapping[str, tuple[str, ...]] = {
    "pitfall": (
        "race condition", "deadlock", "deadlocks", "memory leak", "leaked", "leaks", "off-by-one", "silently",
        "silent failure", "silent false", "false positive", "false positives", "false negative", "false negatives",
        "false pass", "gotcha", "beware", "pitfall", "footgun", "the trap is", "bites you", "anti-pattern",
        "broke ci", "broke the build", "broke production", "failed import", "data loss", "infinite loop",
        "path traversal", "command injection", "privilege escalation", "stack overflow", "crashes", "crashed",
        "hangs", "corrupts", "corrupted", "will fail", "fails if", "fails when", "fails with", "fails on",
        "fails silently", "fails because", "swallows", "swallowed", "misleads", "misleading", "wrongly", "to avoid",
        "to prevent", "may not", "incorrect", "stale",
        "can bypass", "is overwritten", "are overwritten", "out of memory", "segfault", "use-after-free",
        "causes … to fail", "causes … failure", "root cause", "unexpectedly", "counterintuitively", "not obvious",
        "is not a valid", "blocks the event loop", "blocks event loop", "arbitrary file", "operation not permitted",
        "permission denied", "unlike what", "has no effect", "is ignored by", "^don't", "^do not", "^never",
        "^avoid", "^watch out", "^careful", "masks … fail", "masks … error",
        "竞态", "死锁", "泄漏", "泄露", "踩坑", "坑:", "陷阱", "误报", "漏报", "会阻塞", "会导致", "崩溃", "卡死",
        "静默失败", "静默", "注意不要", "小心", "千万不要", "数据丢失", "报错",
        "^不要", "^别用", "^别再", "^别在", "^禁止", "^切勿", "^避免", "导致…失败",
        "导致…错误", "导致…丢失", "导致…重复",
    ),
    "decision": (
        "we chose", "chose … over", "chose … instead of", "chose … because", "chosen over",
        "chosen … over", "chosen because", "chosen … because", "chosen as", "chosen for", "selected … over",
        "selected … vs", "selected … because", "picked … over", "we picked", "we decided", "decided to",
        "decided against", "decided on", "opted for", "opted to", "opted against", "went with", "settled on",
        "sticking with", "standardized on", "standardised on", "in favor of", "in favour of", "trade-off accepted",
        "rejected because", "rejected (", "rejected per", "was rejected", "we rejected", "deferred until",
        "deferred to", "deferred;", "deferred (", "(deferred", "(rejected", "alternatives considered", "decision:",
        "decided:", "rationale:", "is the right choice", "is the recommended", "scope limited to", "descoped",
        "out of scope", "reversed … decision", "replaced … with", "replaces", "migrated from … to", "renamed to",
        "switched from … to", "switched to", "we will use",
        "我们选择", "我们选了", "选择了", "选用", "选型", "我们决定", "最终决定", "决定采用", "决定使用", "决定不",
        "决定:", "采用…而不是", "采用…而非", "而不选", "放弃了", "弃用", "权衡", "取舍", "改用", "否决",
        "暂缓", "定为",
    ),
    "process": (
        "workflow:", "steps:", "step 1", "step one", "checklist", "runbook", "playbook:", "procedure:", "^process:",
        "release process", "release checklist", "deploy process", "how to release", "how to deploy",
        "first … then … finally", "before every release", "before each release", "before merging, run",
        "the order is:", "in this order:", "^sequence:", "^release:", "^deploy:", "^rollback:", "^onboarding:",
        "流程:", "流程是", "发布流程", "部署流程", "操作流程", "步骤:", "步骤如下", "操作步骤", "第一步", "检查清单",
        "工作流:", "先…再…最后", "先…然后…最后", "依次执行", "^发布:", "^部署:", "^回滚:",
    ),
    "model": (
        "state machine", "states:", "data model", "domain model", "mental model", "object model", "^schema:",
        "architecture:", "structure:", "hierarchy:", "topology:", "layers:", "lifecycle:", "life cycle:",
        "data flow:", "consists of", "is composed of", "is made up of", "is structured as", "is organized as",
        "is organised as", "is divided into", "has three layers", "has two layers", "three-layer", "two-layer",
        "four-layer", "invariant:", "one-to-many", "many-to-many", "entity relationship",
        "状态机", "状态:", "状态有", "数据模型", "领域模型", "架构:", "架构是", "结构:", "结构是", "层级:",
        "生命周期:", "数据流:", "由…组成", "由…构成", "分为…层", "分成…层", "三层架构", "一对多", "多对多",
    ),
    "guideline": (
        "pattern:", "rule:", "principle:", "convention:", "guideline:", "best practice", "rule of thumb",
        "prefer … over", "always use", "should always", "must always", "make sure to", "every … must", "one … per",
        "规则:", "原则:", "约定:", "规范:", "最佳实践", "始终", "总是", "一律", "务必", "应该", "应当", "优先使用",
        "必须",
    ),
}


@dataclass(frozen=True, slots=True)
class Classified:
    """A type and the phrase that gave it; `signal` is None for the fallback."""

    type: str
    signal: str | None


def classify(text: str, extra: Mapping[str, Sequence[str]] | None = None) -> Classified:
    """Return the type of an entry's title and body: the first type, in the order of `SIGNALS`, with a signal in it.

    Args:
        text: title and text, as written; what lies beyond 10,000 characters is not read.
        extra: further phrases by type, in the same notation, from the config. They are asked first: whoever
            configures a phrase means it.
    """
    haystack = _plain(text[:_LONGEST_TEXT])
    configured = tuple((name, tuple(phrases)) for name, phrases in (extra or {}).items())
    for name, phrases in (*configured, *SIGNALS.items()):
        for signal in _signals(phrases):
            if signal.start in haystack and signal.pattern.search(haystack):
                return Classified(name, signal.phrase)
    return Classified(FALLBACK, None)


@dataclass(frozen=True, slots=True)
class _Signal:
    """A phrase, the words it starts with (a quick test, which nearly always fails), and its whole expression."""

    phrase: str
    start: str
    pattern: re.Pattern[str]


@lru_cache(maxsize=64)
def _signals(phrases: tuple[str, ...]) -> tuple[_Signal, ...]:
    return tuple(
        _Signal(phrase, _plain(phrase.removeprefix("^").partition("…")[0]), re.compile(_expression(phrase)))
        for phrase in phrases
    )


def _expression(phrase: str) -> str:
    """Return the expression of a phrase; its gaps are bounded, so the time stays linear in the text."""
    anchored = phrase.startswith("^")
    words = [_plain(words) for words in phrase.removeprefix("^").split("…")]
    gap = r"(?:[^.!?。!?]|\.(?=\S)){1,80}?"
    return (r"\A" if anchored else "") + gap.join(_bounded(part) for part in words)


def _bounded(words: str) -> str:
    """Escape `words` and keep their ASCII edges from matching inside longer words."""
    if not words:
        return "(?!)"
    left = r"(?<![a-z0-9_])" if words[0].isascii() and words[0].isalnum() else ""
    right = r"(?![a-z0-9_])" if words[-1].isascii() and words[-1].isalnum() else ""
    return left + re.escape(words) + right


def _plain(text: str) -> str:
    return normalise(text).replace("：", ":").lstrip("[]-+ ")
