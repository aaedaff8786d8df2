"""Telling systemd how the daemon is: the sd_notify protocol, one datagram a message (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends READY, STATUS, WATCHDOG and the like; does nothing where no service manager asked for it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Take the address from `NOTIFY_SOCKET`; a leading `@` means the abstract namespace."""
        address = env.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        usec = env.get("WATCHDOG_USEC", "")
        for_us = env.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.watchdog_seconds = int(usec) / 1e6 if usec.isdigit() and for_us else None

    def send(self, **fields: str | int) -> None:
        """Send fields such as `READY=1`; a manager that does not listen is no fault of the daemon."""
        if not self._address:
            return
        text = "\n".join(f"{name}={str(value).replace(chr(10), ' ')}" for name, value in fields.items())
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            try:
                sock.sendto(text.encode(), self._address)
            except OSError:
                self._address = ""
