"""Rules on shell commands: the table of what they can do (cases 36 and 37), and what they cost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import Allow, Cap, Deny, Effect, Layer, Mode, Policy, Rule, decide_command


def ruled(*rules: Rule) -> Policy:
    return Policy("tested", frozenset({"bash"}), (Cap(Layer.HARNESS, Mode.FULL),), rules)


def only(*matches: str) -> Policy:
    return ruled(*(Rule("bash", match, Effect.ALLOW) for match in matches))


def never(*matches: str) -> Policy:
    return ruled(*(Rule("bash", match, Effect.DENY) for match in matches))


def runs(policy: Policy, command: str) -> bool:
    return isinstance(decide_command(policy, "bash", command), Allow)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("rm", id="alone"),
        pytest.param("rm -rf x", id="with arguments"),
        pytest.param("git status && rm -rf x", id="behind &&"),
        pytest.param("git status || rm x", id="behind ||"),
        pytest.param("git status; rm x", id="behind a semicolon"),
        pytest.param("git status | rm x", id="behind a pipe"),
        pytest.param("git status |& rm x", id="behind a pipe of both streams"),
        pytest.param("git status & rm x", id="behind a background job"),
        pytest.param("git status\nrm x", id="on the next line"),
        pytest.param("git status $(rm x)", id="in a substitution"),
        pytest.param("git status `rm x`", id="in backticks"),
        pytest.param('git status "$(git log $(rm x))"', id="in a nested substitution"),
        pytest.param("git diff <(rm x)", id="in a process substitution"),
        pytest.param("git log > $(rm x)", id="in the target of a redirection"),
        pytest.param("cat <<E\n$(rm x)\nE", id="in a here-document"),
        pytest.param("bash <<'E'\nrm x\nE", id="in a here-document for a shell"),
        pytest.param("bash <<< 'rm x'", id="in a here-string for a shell"),
        pytest.param("/bin/rm x", id="by its absolute path"),
        pytest.param("./rm x", id="by a relative path"),
        pytest.param("r''m x", id="with quotes inside"),
        pytest.param("\\rm x", id="escaped"),
        pytest.param("$'\\x72m' x", id="in ANSI-C quotes"),
        pytest.param("RM x", id="in another case"),
        pytest.param("{rm,-rf,x}", id="in a brace list"),
        pytest.param("A=1 rm x", id="behind an assignment"),
        pytest.param("nohup rm x", id="behind nohup"),
        pytest.param("sudo -n -u root rm x", id="behind sudo with flags"),
        pytest.param("sudo --user=root A=1 rm x", id="behind sudo with an assignment"),
        pytest.param("sudo -Q a rm x", id="behind a flag that nobody knows"),
        pytest.param("env -i A=1 rm x", id="behind env"),
        pytest.param("env -S 'rm x'", id="in a string that env splits"),
        pytest.param("timeout -s KILL 5 rm x", id="behind timeout"),
        pytest.param("timeout --signal=KILL -k 1 5 rm x", id="behind timeout with long flags"),
        pytest.param("timeout $T rm x", id="behind an argument that is only known later"),
        pytest.param("ls | xargs -0 -n1 rm", id="behind xargs"),
        pytest.param("ls | xargs -I{} rm {}", id="behind xargs with a placeholder"),
        pytest.param("time -p rm x", id="behind time"),
        pytest.param("time { rm x; }", id="in a group that is timed"),
        pytest.param("nice -10 rm x", id="behind nice"),
        pytest.param("command rm x", id="behind command"),
        pytest.param("exec -a y rm x", id="behind exec"),
        pytest.param("stdbuf -oL rm x", id="behind stdbuf"),
        pytest.param("setsid -w rm x", id="behind setsid"),
        pytest.param("busybox rm x", id="behind busybox"),
        pytest.param("watch -n 1 'rm x'", id="behind watch"),
        pytest.param("flock lock -c 'rm x'", id="behind flock"),
        pytest.param("sudo nohup nice -n 5 env A=1 rm x", id="behind many wrappers"),
        pytest.param("eval 'rm x'", id="in eval"),
        pytest.param("eval rm x", id="in eval without quotes"),
        pytest.param("trap 'rm x' EXIT", id="in a trap"),
        pytest.param("bash -c 'rm x'", id="in bash -c"),
        pytest.param("sh -ec 'git log; rm x'", id="in sh with other flags"),
        pytest.param("bash -c \"bash -c 'rm x'\"", id="in a shell in a shell"),
        pytest.param("find . -name x -exec rm {} \\;", id="in find -exec"),
        pytest.param("find . -exec git log {} \\; -execdir rm {} +", id="in the second of find's commands"),
        pytest.param("(rm x)", id="in a subshell"),
        pytest.param("{ rm x; }", id="in a group"),
        pytest.param("if rm x; then git log; fi", id="in a condition"),
        pytest.param("for f in *; do rm $f; done", id="in a loop"),
        pytest.param("case x in *) rm x;; esac", id="in a case"),
        pytest.param("f() { rm x; }; f", id="in a function"),
        pytest.param("rm x 'unterminated", id="in text that does not parse"),
        pytest.param("rm x\ngit 'unterminated", id="on a line before one that does not parse"),
    ],
)
@pytest.mark.parametrize(
    "policy",
    [never("rm *"), only("git *", "cat", "ls", "find *")],
    ids=["refused by a deny of rm", "refused where only git is allowed"],
)
def test_rm_is_found(policy, command):
    assert not runs(policy, command)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo rm x", id="rm as an argument"),
        pytest.param("echo 'a; rm x'", id="rm in a quoted argument"),
        pytest.param("git rm x", id="rm as a word of another program"),
        pytest.param("grep rm *.py", id="rm as a pattern"),
        pytest.param("command -v rm", id="asking where rm is"),
        pytest.param("farm x", id="a name that ends so"),
        pytest.param("cat <<'E'\nrm x\nE", id="rm in a text"),
        pytest.param("ls # rm x", id="rm in a comment"),
        pytest.param("$X y", id="a program that only the shell knows"),
    ],
)
def test_a_deny_of_rm_leaves_the_rest_alone(command):
    assert runs(never("rm *"), command)


@pytest.mark.parametrize(
    ("command", "may"),
    [
        pytest.param("git status", True, id="the command"),
        pytest.param("git", True, id="without arguments"),
        pytest.param("git log -p | git apply && git add .", True, id="several"),
        pytest.param("git log 2>&1 >/dev/null 2>/dev/stderr <in 3<&0 3>&-", True, id="with redirections of streams"),
        pytest.param("git log &>/dev/null", True, id="with both streams thrown away"),
        pytest.param("git log > out", False, id="with a redirection to a file"),
        pytest.param("git log >> out", False, id="with one that appends"),
        pytest.param("git log >| out", False, id="with one that insists"),
        pytest.param("git log 2> out", False, id="with one of the errors"),
        pytest.param("git log &> out", False, id="with one of both streams"),
        pytest.param("git log >& out", False, id="with one of both streams in the old way"),
        pytest.param("git log <> out", False, id="with one that opens for both"),
        pytest.param("git log > $OUT", False, id="with one to a file that is only known later"),
        pytest.param("git log >&$FD", False, id="with one to a stream that is only known later"),
        pytest.param("git log > '/dev/null'x", False, id="with one to a file whose name begins like another"),
        pytest.param("> out", False, id="with nothing but one"),
        pytest.param("(git log) > out", False, id="with one of a subshell"),
        pytest.param("for f in a b; do git add $f; done > out", False, id="with one of a loop"),
        pytest.param("git log <<E\nx > out\nE", True, id="with a here-document that holds such text"),
        pytest.param("git log '> out' \\> out", True, id="with such text in quotes"),
        pytest.param("git log $x *.py", True, id="with expansions in the arguments"),
        pytest.param("/usr/bin/git log", True, id="from a folder of the system"),
        pytest.param("nohup git log", True, id="behind a wrapper"),
        pytest.param("env A=1 timeout 5 git log", True, id="behind wrappers"),
        pytest.param("A=1 git log", True, id="behind a harmless assignment"),
        pytest.param("if git diff; then git add .; fi", True, id="in a condition"),
        pytest.param("for f in a b; do git add $f; done", True, id="in a loop"),
        pytest.param("(git log; git diff)", True, id="in a subshell"),
        pytest.param("ls | xargs git add", False, id="beside another command"),
        pytest.param("# nothing", True, id="nothing at all"),
        pytest.param("GIT log", False, id="in another case"),
        pytest.param("gitk", False, id="a longer name"),
        pytest.param("./git log", False, id="from the workspace"),
        pytest.param("/tmp/git log", False, id="from a folder that anybody writes"),
        pytest.param("PATH=. git log", False, id="behind an assignment that changes what runs"),
        pytest.param("env GIT_PAGER=x git log", False, id="behind env with such an assignment"),
        pytest.param("PATH=.\ngit log", False, id="after such an assignment"),
        pytest.param("git log $(git status)", False, id="with a substitution, whatever is in it"),
        pytest.param("git log `git status`", False, id="with backticks"),
        pytest.param("eval git log", False, id="in eval"),
        pytest.param("bash -c 'git log'", False, id="in bash -c"),
        pytest.param("echo git log | bash", False, id="in a shell that reads its input"),
        pytest.param("source git", False, id="in source"),
        pytest.param(". git", False, id="in a dot"),
        pytest.param("gi? log", False, id="by a pattern"),
        pytest.param("$GIT log", False, id="by a variable"),
        pytest.param("git log 'unterminated", False, id="in text that does not parse"),
        pytest.param("case x in x) git log;; esac", False, id="in a case"),
        pytest.param("git() { git log; }; git x", False, id="as a function"),
        pytest.param("sudo -Q git log", False, id="behind a flag that nobody knows"),
    ],
)
def test_where_only_git_is_allowed(command, may):
    assert runs(only("git *"), command) is may


def test_a_redirection_is_named_when_it_alone_is_not_allowed():
    refused = decide_command(only("git *"), "bash", "git log > out")
    assert isinstance(refused, Deny)
    assert refused.reason == "no rule allows a redirection to a file; allowed is git *"
    assert runs(never("rm *"), "git log > out")


@pytest.mark.parametrize(
    ("matches", "command", "may"),
    [
        pytest.param(["git status"], "git status", True, id="without a star exactly those words"),
        pytest.param(["git status"], "git status -s", False, id="and no more"),
        pytest.param(["npm test"], "ls | xargs npm test", False, id="xargs adds words"),
        pytest.param(["git status *"], "git status", True, id="a star at the end may be nothing"),
        pytest.param(["git * --stat"], "git log -p --stat", True, id="a star in the middle is any words"),
        pytest.param(["git log*"], "git log-x", True, id="a star in a word is any text"),
        pytest.param(["git log*"], "git log$x", False, id="but not text that is only known later"),
        pytest.param(["ls src/*"], "ls src/*.py", True, id="a pattern of files is held against it as text"),
        pytest.param(["git {log,diff} *"], "git diff x", True, id="braces choose"),
        pytest.param(["git {log,diff} *"], "git push", False, id="and leave out"),
        pytest.param(["./build *"], "./build all", True, id="a path is named as it is written"),
        pytest.param(["git *", "ls"], "git log; ls", True, id="each command needs one rule"),
        pytest.param(["*"], "anything at all", True, id="a star alone is any command"),
        pytest.param(["*"], "echo $(anything)", False, id="that can be read with certainty"),
        pytest.param(["bash *"], "bash script.sh", True, id="a shell that runs a file is a program"),
        pytest.param(["bash *"], "bash -c x", False, id="one that runs a text is not"),
        pytest.param(["find *"], "find . -exec rm {} +", False, id="what find runs needs a rule too"),
        pytest.param(["find *", "wc *"], "find . -exec wc {} +", True, id="and may have one"),
        pytest.param(["{a,b}" * 9], "aaaaaaaaa", False, id="too many alternatives allow nothing"),
    ],
)
def test_what_a_pattern_allows(matches, command, may):
    assert runs(only(*matches), command) is may


@pytest.mark.parametrize(
    ("match", "command", "may"),
    [
        pytest.param("rm", "rm -rf x", False, id="a deny covers what follows"),
        pytest.param("/bin/rm", "rm x", False, id="a path in a deny counts as its name"),
        pytest.param("git push", "git push --force", False, id="two words"),
        pytest.param("git push", "git -C . push", True, id="flags in between are not seen through"),
        pytest.param("git * push", "git -C . push", False, id="unless the rule says so"),
        pytest.param("sudo *", "sudo ls", False, id="a wrapper can be denied itself"),
        pytest.param("git push * --force*", "git push origin --force-with-lease", False, id="a flag"),
        pytest.param("{a,b}" * 9, "ls", False, id="too many alternatives deny everything"),
    ],
)
def test_what_a_pattern_denies(match, command, may):
    assert runs(never(match), command) is may


def test_a_deny_wins_over_an_allow():
    both = ruled(Rule("bash", "git *", Effect.ALLOW), Rule("bash", "git push *", Effect.DENY))
    assert [runs(both, command) for command in ("git log", "git push", "ls")] == [True, False, False]


def test_without_rules_every_command_runs():
    assert decide_command(ruled(), "bash", "eval $(anything 'at all") == Allow()


@pytest.mark.parametrize(
    ("policy", "command", "reason"),
    [
        pytest.param(never("rm *"), "rm x", "a rule denies rm *", id="a deny"),
        pytest.param(
            only("git *", "ls"), "git log; rm  -rf\n\tx", "no rule allows rm -rf; allowed is git *, ls", id="no allow"
        ),
        pytest.param(
            only("git *"),
            "git log $(x)",
            "no rule allows a part of the command that only the shell can tell "
            "(a substitution, eval, bash -c or the like); allowed is git *",
            id="a substitution",
        ),
        pytest.param(
            never("rm *"),
            "a " * 20_000,
            "the command is too long or too deeply nested to be held against the rules",
            id="too long",
        ),
        pytest.param(
            only("git *"),
            "x\x1b" + "y" * 100,
            f"no rule allows x?{'y' * 78}...; allowed is git *",
            id="clipped and plain",
        ),
    ],
)
def test_the_reason(policy, command, reason):
    assert decide_command(policy, "bash", command) == Deny(reason, Layer.RULE, Mode.FULL)


@given(st.text("rm git$(){}`'\"\\|&;<>\n=-", max_size=40), st.sampled_from(["&&", ";", "\n", "|", "||", "&"]))
def test_a_denied_command_is_found_in_front_of_anything(rest, operator):
    assert not runs(never("rm *"), f"rm x {operator} {rest}")


@given(st.text("git lo'\"|&;()\n=-", max_size=40))
def test_a_substitution_is_never_let_through_behind_what_is_allowed(text):
    if runs(only("git *"), f"git {text}"):
        assert not runs(only("git *"), f"git {text}\ngit $(git log)")


@pytest.mark.parametrize(
    "command",
    [
        "a b c d;" * 4000,
        "nohup " * 5000,
        "eval " * 6000,
        "find -exec " * 2900,
        "{," * 16_000,
        "`" * 32_000,
        '"$' * 16_000,
        "cat <<A " * 3500 + "\n" + "x\n" * 2000,
        "bash -c " * 4000,
        "a*" * 16_000,
    ],
    ids=lambda command: command[:8].strip(),
)
def test_judging_takes_little_time_whatever_the_command(command):
    start = time.process_time()
    decide_command(never("rm * x * y"), "bash", command)
    assert time.process_time() - start < 2


def test_evaluations_in_evaluations_are_given_up():
    command = "a"
    for _ in range(30):
        command = f'eval "$({command})"'
    assert not runs(never("rm *"), command)
