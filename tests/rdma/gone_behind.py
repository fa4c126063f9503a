#!/usr/bin/env python3
"""tests/rdma/gone_behind.py SERVER-HOST SERVER-PORT PROXY-PORT PROXY-PID: clients of the proxy that go
behind bytes which the server does not take, because they wait in BLPOP, are noticed: by their close
and by a reset. One that stays is kept. The proxy sleeps meanwhile."""
import os
import socket
import struct
import subprocess
import sys
import time

LIMIT_S = 10
MOST_CPU_S = 1

host, port, proxy_port, proxy = sys.argv[1:]


def ask(*words):
    return subprocess.run(["redis-cli", "-h", host, "-p", port, *words], stdout=subprocess.PIPE,
                          text=True, timeout=LIMIT_S, check=True).stdout.strip()


def blocked():
    lines = ask("info", "clients").splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("blocked_clients:"))


def until_blocked(count):
    end = time.monotonic() + LIMIT_S
    while blocked() != count:
        assert time.monotonic() < end, f"{blocked()} clients are blocked, not {count}"
        time.sleep(0.2)


def cpu_s():
    with open(f"/proc/{proxy}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waiting(name):
    """A client in BLPOP, with as much behind it as there is room for."""
    client = socket.create_connection(("127.0.0.1", int(proxy_port)))
    client.sendall(f"BLPOP {name} 0\r\n".encode())
    client.settimeout(1)
    try:
        client.sendall(b"PING\r\n" * 170000)
    except TimeoutError:
        pass
    return client


clients = {name: waiting(name) for name in ("stays", "closed", "reset")}
until_blocked(3)
used_s, began = cpu_s(), time.monotonic()
clients["closed"].close()
clients["reset"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
clients["reset"].close()
until_blocked(1)
print(f"noticed after {time.monotonic() - began:.1f} s; the proxy used {cpu_s() - used_s:.2f} s")
for name in ("closed", "reset"):
    assert ask("lpush", name, "element") == ask("llen", name) == "1", f"{name} took the element"
assert cpu_s() - used_s < MOST_CPU_S, "the proxy did not sleep"
ask("lpush", "stays", "element")
assert clients["stays"].recv(100).startswith(b"*2\r\n$5\r\nstays\r\n$7\r\nelement\r\n")
ask("del", "closed", "reset")
