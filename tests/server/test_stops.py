"""Every order of two stops, at the start, during recovery and under load: nothing acknowledged is lost.

Of the 25 pairs a run of the tests takes some by chance; VELLUM_STOPS=all (`make stoptest`) takes all.
"""

import contextlib
import os
import signal
import subprocess
import time

import pytest

import harness
from harness import encode
from test_lifecycle import check_writers, run_writers

STOPS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SHUTDOWN": [],
         "SHUTDOWN NOSAVE": ["NOSAVE"], "SHUTDOWN ABORT": ["ABORT"]}
PAIRS = [(one, other) for one in STOPS for other in STOPS]
SAMPLE = 4
END_LIMIT_S = 120

# A job in the background inherits that SIGINT is ignored, and so would the servers, until they block it.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytestmark = [pytest.mark.vellum,
              pytest.mark.sockets("a stop ends the proxy's connections, too")]


def chosen_pairs():
    if os.environ.get("VELLUM_STOPS") == "all":
        return PAIRS
    return harness.chance().sample(PAIRS, SAMPLE)


def tell(process, port, how):
    """One that starts may not listen yet, one that stops not any more."""
    if isinstance(how, signal.Signals):
        process.send_signal(how)
        return
    limit = time.monotonic() + END_LIMIT_S
    while process.poll() is None and time.monotonic() < limit:
        with contextlib.suppress(ConnectionRefusedError):
            with contextlib.suppress(ConnectionResetError, BrokenPipeError, EOFError), \
                    harness.Raw(port) as raw:
                raw.send(encode("SHUTDOWN", *how))
                answer = raw.reply()
                assert how == ["ABORT"] and answer == b"-ERR No shutdown in progress.\r\n", answer
            return
        time.sleep(0.005)


def end_by(process, port, pair, may_be_killed=False):
    """Both, and one more where none of them was to end it. The exit code is that of an ordered stop,
    of a SIGINT that insists, or of a signal that came before anybody was there to take it."""
    for name in pair:
        tell(process, port, STOPS[name])
    if all(name == "SHUTDOWN ABORT" for name in pair):
        process.send_signal(signal.SIGTERM)
    codes = {0}
    if "SIGINT" in pair[1:]:
        codes.add(1)
    if may_be_killed:
        codes |= {-signal.SIGTERM, -signal.SIGINT}
    code = process.wait(END_LIMIT_S)
    assert code in codes, (pair, code)


def insists(pair):
    """Ends at once, as a crash would."""
    return pair[1] == "SIGINT"


def begin_start(server):
    with open(server.log, "ab") as log:
        return subprocess.Popen([server.program, *server.arguments()], stdout=log, stderr=log,
                                cwd=server.directory, env=harness.ENVIRONMENT)


def await_said(server, process, text, begin):
    limit = time.monotonic() + END_LIMIT_S
    while text not in server.said()[begin:] and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.001)


def test_pairs_of_stops_under_load(make_server):
    for pair in chosen_pairs():
        server = make_server(appendfsync="always" if insists(pair) else "everysec")
        acknowledged, sent = run_writers(
            server, 0, 50, lambda server=server, pair=pair: end_by(server.process, server.port, pair))
        server.start()
        check_writers(server, acknowledged, sent)
        assert len(acknowledged) > 50
        server.stop()


@pytest.mark.parametrize("moment", ["start", "recovery"])
def test_pairs_of_stops_while_it_starts(make_server, moment):
    """From the first moment on, after an ordered stop; or when it has begun to read a journal."""
    server = make_server(appendfsync="always")
    for pair in chosen_pairs():
        leave = server.kill9 if moment == "recovery" else server.stop
        acknowledged, sent = run_writers(server, 0, 12, leave)
        begin = len(server.said())
        process = begin_start(server)
        if moment == "recovery":
            await_said(server, process, "starting, pid", begin)
        end_by(process, server.port, pair, may_be_killed=moment == "start")
        server.start()
        check_writers(server, acknowledged, sent)
