"""What is said to systemd and launchd, word for word, and what their answers mean."""

import pytest

from kbd.service_commands import (
    ServiceState,
    forget_commands,
    launchd_place,
    log_command,
    parse_state,
    start_commands,
    state_command,
    stop_commands,
    systemd_place,
)

USER = systemd_place("/h/.config", user=None)
SYSTEM = systemd_place("/h/.config", user="ada")
AGENT = launchd_place("/Users/ada", 501)


def words(stages):
    return [" ".join(stage.command) + ("" if stage.required else " ?") for stage in stages]


def test_each_manager_has_its_place():
    assert USER.path == "/h/.config/systemd/user/kbd.service"
    assert SYSTEM.path == "/etc/systemd/system/kbd.service"
    assert AGENT.path == "/Users/ada/Library/LaunchAgents/io.github.kbd.plist"


@pytest.mark.parametrize(("place", "scope"), [(USER, " --user"), (SYSTEM, "")], ids=["user", "system"])
def test_systemd_reads_the_unit_and_starts_it_without_waiting(place, scope):
    assert words(start_commands(place)) == [
        f"systemctl{scope} daemon-reload",
        f"systemctl{scope} enable kbd.service",
        f"systemctl{scope} reset-failed kbd.service ?",
        f"systemctl{scope} restart --no-block kbd.service",
    ]
    assert words(stop_commands(place)) == [f"systemctl{scope} disable --now kbd.service"]
    assert words(forget_commands(place))[0] == f"systemctl{scope} daemon-reload"


def test_launchd_boots_the_agent_into_the_user_s_domain():
    assert words(start_commands(AGENT)) == [
        "launchctl bootout gui/501/io.github.kbd ?",
        "launchctl enable gui/501/io.github.kbd",
        "launchctl bootstrap gui/501 /Users/ada/Library/LaunchAgents/io.github.kbd.plist",
    ]
    assert words(stop_commands(AGENT)) == ["launchctl bootout gui/501/io.github.kbd ?"]
    assert forget_commands(AGENT) == ()
    assert state_command(AGENT) == ("launchctl", "print", "gui/501/io.github.kbd")


def test_logs_come_from_where_the_manager_keeps_them():
    assert (
        " ".join(log_command(USER, 5, follow=True, log="/l"))
        == "journalctl --user --unit kbd.service --lines 5 --follow"
    )
    assert (
        " ".join(log_command(SYSTEM, 5, follow=False, log="/l")) == "journalctl --unit kbd.service --lines 5 --no-pager"
    )
    assert log_command(AGENT, 5, follow=True, log="/l") == ("tail", "-n", "5", "-F", "/l")


SHOWN = "ActiveState={}\nUnitFileState={}\nStatusText={}\nMainPID={}\nNRestarts={}\nResult={}\n"


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        (("active", "enabled", "watching a=b", 7, 2, "success"), ServiceState(True, "active", "watching a=b", 7, 2)),
        (("inactive", "", "", 0, 0, "success"), ServiceState(False, "inactive")),
        (("failed", "disabled", "", 0, 5, "watchdog"), ServiceState(False, "failed", "watchdog", 0, 5)),
        (("activating", "enabled-runtime", "", 9, 0, "success"), ServiceState(True, "activating", "", 9)),
    ],
)
def test_systemd_s_answer_is_read(fields, state):
    assert parse_state(USER, 0, SHOWN.format(*fields), "") == state


@pytest.mark.parametrize("out", ["", "no equals sign", "MainPID=\nNRestarts=[not set]\n"])
def test_odd_answer_of_systemd_is_unknown_and_not_running(out):
    state = parse_state(USER, 0, out, "")
    assert (state.active, state.pid, state.enabled) == ("unknown", 0, False)


def test_manager_that_does_not_answer_is_unknown_with_its_reason():
    state = parse_state(USER, 1, "", "Failed to connect to bus: No medium found\nmore\n")
    assert state == ServiceState(False, "unknown", "Failed to connect to bus: No medium found")


PRINTED = """\
gui/501/io.github.kbd = {
	active count = 1
	path = /Users/ada/Library/LaunchAgents/io.github.kbd.plist
	state = running

	program = /usr/bin/python3
	pid = 4242
	last exit code = (never exited)
	endpoints = {
		state = other
	}
}
"""


def test_launchd_s_answer_is_read():
    assert parse_state(AGENT, 0, PRINTED, "") == ServiceState(True, "active", "", 4242)
    waiting = (
        PRINTED.replace("= running", "= spawn scheduled").replace("\tpid = 4242\n", "").replace("(never exited)", "2")
    )
    assert parse_state(AGENT, 0, waiting, "") == ServiceState(True, "inactive", "last exit code 2")
    assert parse_state(AGENT, 113, "", "Could not find service") == ServiceState(False, "inactive")
