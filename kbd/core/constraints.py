"""Constraint expressions of a schema, a contract or a query: text to a tree, by a small grammar of their own.

    rule       = [type ":"] body | "created" type "has" body
    body       = "if" or ("then" | ":") or | or ["if" or]
    or         = and {"or" and}          and = not {"and" not}          not = "not" not | test
    test       = "(" or ")" | "has_relation(" name ["," type] ")" | "has_property(" name ")"
               | operand ["must"] ["not"] "exist" | operand ["not"] "in" list
               | operand ("=" | "!=" | "<" | "<=" | ">" | ">=" | "contains") operand
    operand    = name | "Type.name" | text in quotes | number | date | true | false | null

A name is a property of the entity. On the right of `=`, `!=`, `contains` and `in` a bare name that is no declared
property is text (`status = open`). Nothing is evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

MAX_CHARS = 2000
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?)"
    r"|(?P<number>[-+]?\d+(?:\.\d+)?(?![\w.]))"
    r"|(?P<name>[^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*)"
    r"|(?P<sign>==|!=|<>|<=|>=|[=<>()\[\],:]))"
)
_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset({"and", "or", "not", "in", "if", "then", "exists", "exist", "must", "contains", "has"})


class RuleFault(ValueError):
    """The text is no rule; the message is one clause that names the place."""


@dataclass(frozen=True, slots=True)
class Name:
    """A property of the entity."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A value."""

    value: Any


Operand = Name | Literal


@dataclass(frozen=True, slots=True)
class Compare:
    """`operator` is one of = != < <= > >= contains."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class In:
    """The value is one of these."""

    left: Operand
    values: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """The property has a value; `must`: what it names exists as well."""

    name: str
    must: bool = False


@dataclass(frozen=True, slots=True)
class HasRelation:
    """The entity is the source of a relation, to an entity of the type if one is given."""

    rel: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    inner: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of them."""

    parts: tuple[Expression, ...]


Expression = Compare | In | Exists | HasRelation | Not | And | Or


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule: the type it is about ("" if the text names none), and whether only for entities just created."""

    type: str
    expression: Expression
    on_created: bool = False


def parse_rule(text: str, types: Collection[str], known: Collection[str] = ()) -> Rule:
    """Return the rule that a text says.

    Args:
        text: in the grammar above.
        types: names that may stand before a dot or a colon as a type.
        known: declared properties: bare names on the right that are properties and no text.

    Raises:
        RuleFault: the text is no rule.
    """
    return _Parser(text, types, known).rule()


def parse_condition(text: str, known: Collection[str] = ()) -> Expression:
    """Return the expression that a condition of a query says; raises RuleFault."""
    return _Parser(text, (), known).whole()


def names_in(expression: Expression) -> set[str]:
    """Return the properties that an expression looks at."""
    match expression:
        case Exists():
            return {expression.name}
        case Compare():
            return {one.name for one in (expression.left, expression.right) if isinstance(one, Name)}
        case In():
            return {one.name for one in (expression.left, *expression.values) if isinstance(one, Name)}
        case HasRelation():
            return set()
        case Not():
            return names_in(expression.inner)
        case And() | Or():
            return set().union(*map(names_in, expression.parts))


def musts_in(expression: Expression) -> set[str]:
    """Return the properties of which an expression says that what they name must exist."""
    match expression:
        case Exists():
            return {expression.name} if expression.must else set()
        case Not():
            return musts_in(expression.inner)
        case And() | Or():
            return set().union(*map(musts_in, expression.parts))
        case _:
            return set()


def relations_in(expression: Expression) -> list[HasRelation]:
    """Return the tests of an expression for relations."""
    match expression:
        case HasRelation():
            return [expression]
        case Not():
            return relations_in(expression.inner)
        case And() | Or():
            return [found for part in expression.parts for found in relations_in(part)]
        case _:
            return []


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind in ("name", "sign") else ""


def _tokens(text: str) -> list[_Token]:
    if len(text) > MAX_CHARS:
        raise RuleFault(f"longer than {MAX_CHARS} characters")
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise RuleFault(f"cannot be read at {text[at : at + 12].strip()!r}")
        tokens.append(_Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
        at = found.end()
    return tokens


class _Parser:
    """Recursive descent, bounded in depth: no text can exhaust the interpreter's stack."""

    def __init__(self, text: str, types: Collection[str], known: Collection[str]) -> None:
        self._tokens = _tokens(text)
        self._types, self._known = types, known
        self._at = self._depth = 0
        self._type = ""

    def rule(self) -> Rule:
        created = self._peek().word == "created" and self._peek(2).word == "has"
        if created:
            self._at += 1
            self._type = self._name("a type")
            self._expect("has")
        elif self._peek().kind == "name" and self._peek().word != "if" and self._peek(1).word == ":":
            self._type = self._name("a type")
            self._expect(":")
        body = self.whole()
        return Rule(self._type, body, created)

    def whole(self) -> Expression:
        body = self._conditional()
        if self._at < len(self._tokens):
            raise RuleFault(f"cannot be read at {self._peek().text!r}")
        return body

    def _conditional(self) -> Expression:
        if self._takes("if"):
            condition = self._either()
            if not self._takes(":") and not self._takes("then"):
                raise RuleFault("`if` lacks its `then`")
            return Or((Not(condition), self._either()))
        body = self._either()
        return Or((Not(self._either()), body)) if self._takes("if") else body

    def _either(self) -> Expression:
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Expression:
        parts = [self._negated()]
        while self._takes("and"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negated(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RuleFault(f"nested more than {_MAX_DEPTH} deep")
        try:
            return Not(self._negated()) if self._takes("not") else self._test()
        finally:
            self._depth -= 1

    def _test(self) -> Expression:
        if self._takes("("):
            inner = self._either()
            self._expect(")")
            return inner
        if self._peek(1).word == "(" and self._peek().word in ("has_relation", "has_property"):
            return self._call()
        left = self._operand(bare_is_text=False)
        if self._peek().word in ("exists", "exist", "must", "not", "in"):
            return self._after(left)
        operator = self._next("a comparison").word
        if operator == "contains":
            return Compare("contains", left, self._operand(bare_is_text=True))
        if operator not in _COMPARISONS:
            raise RuleFault("a comparison such as `=` or `exists` is missing")
        operator = _COMPARISONS[operator]
        return Compare(operator, left, self._operand(bare_is_text=operator in ("=", "!=")))

    def _after(self, left: Operand) -> Expression:
        must = self._takes("must")
        negative = self._takes("not")
        if self._takes("in") and not must:
            test: Expression = In(left, self._values())
        elif (self._takes("exists") or self._takes("exist")) and isinstance(left, Name):
            test = Exists(left.name, must and not negative)
        else:
            raise RuleFault("`exists` or `in` is missing")
        return Not(test) if negative else test

    def _call(self) -> Expression:
        function = self._next("a name").word
        self._expect("(")
        name = self._qualified(self._name("a name")) if function == "has_property" else self._name("a relation")
        type_ = self._name("a type") if function == "has_relation" and self._takes(",") else ""
        self._expect(")")
        return Exists(name) if function == "has_property" else HasRelation(name, type_)

    def _values(self) -> tuple[Operand, ...]:
        closing = {"[": "]", "(": ")"}.get(self._next("a list").word)
        if closing is None:
            raise RuleFault("`in` needs a list such as [open, done]")
        values = [self._operand(bare_is_text=True)]
        while self._takes(","):
            values.append(self._operand(bare_is_text=True))
        self._expect(closing)
        return tuple(values)

    def _operand(self, *, bare_is_text: bool) -> Operand:
        token = self._next("a value")
        match token.kind:
            case "text":
                return Literal(re.sub(r"\\(.)", r"\1", token.text[1:-1]))
            case "date":
                return Literal(token.text)
            case "number":
                return Literal(float(token.text) if "." in token.text else int(token.text))
        if token.kind == "sign" or token.word in _RESERVED:
            raise RuleFault(f"a value is missing before {token.text!r}")
        if token.word in _CONSTANTS:
            return Literal(_CONSTANTS[token.word])
        name = self._qualified(token.text)
        return Literal(token.text) if bare_is_text and name == token.text and name not in self._known else Name(name)

    def _qualified(self, name: str) -> str:
        """Return the property of `Type.property`; the type becomes that of the rule."""
        type_, dot, rest = name.partition(".")
        if not dot or type_ not in self._types:
            return name
        if self._type not in ("", type_):
            raise RuleFault(f"is about {self._type} and {type_} at once")
        self._type = type_
        return rest

    def _peek(self, ahead: int = 0) -> _Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _Token("end", "", -1)

    def _next(self, wanted: str) -> _Token:
        token = self._peek()
        if token.kind == "end":
            raise RuleFault(f"ends where {wanted} should stand")
        self._at += 1
        return token

    def _name(self, wanted: str) -> str:
        token = self._next(wanted)
        if token.kind != "name":
            raise RuleFault(f"{wanted} should stand at {token.text!r}")
        return token.text

    def _takes(self, word: str) -> bool:
        taken = self._peek().word == word
        self._at += taken
        return taken

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise RuleFault(f"`{word}` is missing at {self._peek().text or 'the end'!r}")
