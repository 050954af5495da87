"""``abelnet explore``: the address, Ctrl-C, and a port in use."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

COMMAND = [sys.executable, "-m", "abelnet", "explore", "--no-browser"]


def test_the_page_is_served_until_ctrl_c() -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found is not None
        with urllib.request.urlopen(found[0], timeout=10) as response:
            assert b"<title>abelnet explore</title>" in response.read()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (output, errors) == ("", "abelnet: interrupted\n")


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"abelnet: port: expected a free one, got {port}, which is in use; choose another, or 0 for any free one"
    ]
