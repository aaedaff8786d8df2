"""What the commands of a shell do: which only look things up, which run others, which change files."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _verbs(names: str) -> frozenset[str]:
    return frozenset(names.split())


SHELLS = _verbs("bash sh zsh dash ash ksh fish pwsh powershell powershell.exe cmd cmd.exe")
INTERPRETERS = _verbs("python python3 python2 node deno bun ruby perl php lua Rscript osascript tsx ts-node")
SEARCHERS = _verbs("rg grep egrep fgrep zgrep rgrep ag ack ugrep ug pt look select-string sls findstr ast-grep sg")
FILTERS = _verbs("sed gsed awk gawk mawk jq yq perl")
VIEWERS = _verbs(
    "cat bat batcat head tail less more most nl wc stat file diff cmp colordiff delta sort uniq cut tr md5sum sha1sum "
    "sha256sum shasum xxd hexdump od strings tac column comm join paste fold zcat zless gzcat view type get-content gc "
    "cksum b2sum rev expand readlink realpath"
)
MOVERS = _verbs("cp mv install ln rsync scp move-item copy-item")
REMOVERS = _verbs("rm unlink touch truncate tee sponge shred remove-item")
_LISTERS = _verbs(
    "find fd fdfind locate ls ll la dir tree exa eza which whereis where du df basename dirname pwd popd dirs test [ "
    "[[ true false : exit history man help tldr apropos get-childitem gci printenv ps top date sleep wait jobs for "
    "select case esac fi done tput clear id whoami uname hostname seq shopt set unset"
)
_GIT_LOOKUPS = _verbs(
    "grep log show diff blame status ls-files ls-tree ls-remote shortlog rev-parse rev-list cat-file describe reflog "
    "show-ref for-each-ref whatchanged merge-base name-rev annotate range-diff difftool help"
)
_HUB_LOOKUPS = _verbs("view list diff checks status search browse")
_RESERVED = _verbs("if then elif else while until do ! { } function coproc")
_WRAPPERS = {  # verb → its options that take a value
    "sudo": "ugCpDRT", "doas": "uC", "env": "uCS", "nice": "n", "ionice": "cnp", "nohup": "", "command": "",
    "builtin": "", "exec": "a", "time": "fo", "timeout": "sk", "stdbuf": "ioe", "xargs": "nIPLdsEa", "setsid": "",
    "chronic": "", "caffeinate": "t", "unbuffer": "", "busybox": "", "watch": "n", "parallel": "j",
    "uvx": "", "npx": "", "bunx": "", "rtk": "",
}  # fmt: skip
_CONTAINERS = _verbs("docker podman nerdctl kubectl oc docker-compose")
_RUNNERS = _verbs("uv poetry pdm pipx rye hatch pipenv conda")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
_DECLARES = _verbs("export local declare typeset readonly")


def verb_index(words: Sequence[str]) -> int:
    """Return the index of the word that says what a command does; its length if it only assigns variables.

    Skipped are reserved words, assignments, declarations, and commands that run another (sudo, xargs, uv run, …).
    """
    index = 0
    while index < len(words):
        word = words[index].rsplit("/", 1)[-1]
        if word in _RESERVED or word in _DECLARES or _ASSIGNS.match(words[index]):
            index += 1
        elif word in _RUNNERS and words[index + 1 : index + 2] == ["run"]:
            index += 2
        elif word in _CONTAINERS and "exec" in words[index + 1 : index + 4]:
            index = _inside(words, words.index("exec", index) + 1)
        elif word in _WRAPPERS and index + 1 < len(words):
            index = _past_options(words, index + 1, _WRAPPERS[word]) + (word == "timeout")
        else:
            break
    return index


def _inside(words: Sequence[str], index: int) -> int:
    """Return where the command begins that runs in a container, named behind the options of `exec`."""
    if "--" in words[index:]:
        return words.index("--", index) + 1
    return min(_past_options(words, index, "euwnc") + 1, len(words))


def _past_options(words: Sequence[str], index: int, valued: str) -> int:
    while index < len(words) and words[index].startswith("-") and len(words[index]) > 1:
        index += 1 + (len(words[index]) == 2 and words[index][1] in valued)
    return index


def is_lookup(verb: str, args: Sequence[str]) -> bool:
    """Whether a command only shows what is there, so that its arguments are a query and not the agent's work."""
    name = verb.lower()
    if name == "git":
        return _subcommand(args) in _GIT_LOOKUPS
    if name in ("gh", "glab", "hub"):
        return not _HUB_LOOKUPS.isdisjoint([arg for arg in args if not arg.startswith("-")][:2])
    if name == "perl":
        return any(re.fullmatch(r"-[a-z0]*n[a-z0]*", arg) for arg in args)
    return name in SEARCHERS or name in VIEWERS or name in _LISTERS or name in FILTERS


def _subcommand(args: Sequence[str]) -> str:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        index += 1 + (args[index] in ("-C", "-c", "--git-dir", "--work-tree"))
    return args[index] if index < len(args) else "status"


def edits_in_place(verb: str, args: Sequence[str]) -> bool:
    """Whether a filter rewrites its files (`sed -i`, `perl -pi -e`)."""
    if verb not in FILTERS:
        return False
    return any(re.match(r"-[A-Za-z]*i|--in-?place", arg) for arg in args)
