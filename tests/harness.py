"""What the tests that talk to a running server share: a server process in a directory of its own,
and a client that shows replies exactly as they came.

The program is $VELLUM_SERVER (default build/bin/vellum-server). With VELLUM_SERVER=redis-server the
tests run against stock Redis: what they demand there is Redis's behaviour.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import redis

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("VELLUM_SERVER") or os.path.join(TOP, "build", "bin", "vellum-server")
CHECKER = os.path.join(os.path.dirname(PROGRAM), "vellum-check")
IS_REDIS = os.path.basename(PROGRAM) == "redis-server"
# A build of tiny extents, nodes and roots (storage/sizes.h), and its longest value.
IS_TINY = "tiny" in os.path.basename(os.path.dirname(os.path.dirname(PROGRAM)))
IS_WAIT = "wait" in os.path.basename(os.path.dirname(os.path.dirname(PROGRAM)))  # reads wait at random
TINY_VALUE_MOST = 1 << 20

# With a proxy (clients/proxy.c) the clients' bytes travel by RDMA: in the machine of tests/rdma.
PROXY = os.environ.get("VELLUM_RDMA_PROXY")
PROXY_MODE = os.environ.get("VELLUM_RDMA_MODE")  # None: the proxy's usual one
PROXIED_HOST = os.environ.get("VELLUM_HOST", "10.9.0.1")
PROXIED = {"bind": PROXIED_HOST + " 127.0.0.1", "protected-mode": "no", "rdma": "yes",
           "rdma-device": os.environ.get("VELLUM_DEVICE", "rxe_a")}

# Not /tmp: that may be memory, and the engine wants a file system with O_DIRECT.
TEMPORARY = os.path.join(TOP, "build", "tmp")

# The address sanitizer takes its own clean-up of a thread's signal stack for an overflow.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "use_sigaltstack=0"))

START_LIMIT_S = 60
STOP_LIMIT_S = 60
COMPLAINT = re.compile(r"Sanitizer|runtime error:|Assertion .* failed|REDIS BUG REPORT")


def stock_redis():
    """Redis's server program. Debian's redis-tools holds it under another name: it looks at the
    name it is called by."""
    found = shutil.which("redis-server")
    if found:
        return found
    link = os.path.join(TEMPORARY, "redis-server")
    os.makedirs(TEMPORARY, exist_ok=True)
    try:
        os.symlink(shutil.which("redis-check-rdb"), link)
    except FileExistsError:
        pass
    return link


def free_port():
    while True:
        port = random.randrange(7100, 8000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def fresh_directory():
    os.makedirs(TEMPORARY, exist_ok=True)
    return tempfile.mkdtemp(dir=TEMPORARY)


def chance():
    """Random choices: of $VELLUM_SEED, or new ones; printed, so that a failure can be repeated."""
    seed = os.environ.get("VELLUM_SEED") or str(random.randrange(10**6))
    print(f"VELLUM_SEED={seed}")
    return random.Random(seed)


def eventually(condition, limit_s=60):
    """Waits until it holds; True, so that `assert eventually(...)` reads well."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.01)
    return True


def heard(listener, client):
    """The messages that a subscriber of redis-py has got of all that was published until now."""
    listener.subscribe("end")
    found = []
    for message in listener.listen():
        if message["type"] == "subscribe":
            client.publish("end", "")
        elif message["channel"] == b"end":
            break
        elif message["type"] in ("message", "pmessage"):
            found.append(message)
    return found


def bulk(value):
    """A reply that holds this."""
    value = value if isinstance(value, bytes) else value.encode()
    return b"$%d\r\n%s\r\n" % (len(value), value)


def processor_seconds(process):
    """That it has used."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class StartError(Exception):
    """The server ended before it answered; holds what it said."""


class Server:
    """One server on one directory; may be stopped, killed and started again."""

    def __init__(self, workers=1, program=PROGRAM, **options):
        self.program = program
        self.is_redis = os.path.basename(program) == "redis-server"
        if self.is_redis:
            self.program = stock_redis()
        self.workers = workers
        self.options = options
        self.directory = fresh_directory()
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "log")
        self.port = None
        self.process = None
        self.proxy = None
        self.own_port = None  # not the proxy's
        self.settings = None  # CONFIG GET at the start, where it may be kept
        self.starts = 0
        if self.is_redis:
            os.mkdir(self.data)

    def has_sanitizer(self):
        return any(name in self.program for name in ("asan", "tsan"))

    def peak_memory(self, reset=False):
        """The most bytes it has had, since the last reset; 0 where a sanitizer takes most of them."""
        if reset:
            with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
        return 0 if self.has_sanitizer() else peak

    def arguments(self):
        options = {"port": self.port, "dir": self.data, "appendfsync": "everysec"}
        if self.is_redis:
            options.update({"save": "", "appendonly": "yes"})
        else:
            options.update({"workers": self.workers, "maxmemory": "128mb", "journal-size": "32mb"})
            if PROXY:
                options.update(PROXIED)
        if IS_TINY:
            options["proto-max-bulk-len"] = TINY_VALUE_MOST
        for name, value in self.options.items():
            options[name.replace("_", "-")] = value
        return [word for name, value in options.items() for word in ("--" + name, str(value))]

    def start(self):
        self.starts += 1
        for _ in range(5):
            self.port = self.own_port = free_port()
            begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen([self.program, *self.arguments()], stdout=log,
                                                stderr=log, cwd=self.directory,
                                                env=ENVIRONMENT)
            try:
                self._await_answer()
                if PROXY and not self.is_redis:
                    self._start_proxy()
                return self
            except StartError:
                # Somebody else may have taken the port meanwhile.
                if "Address already in use" not in self.said()[begin:]:
                    raise
        raise StartError(self.said())

    def _await_answer(self):
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit:
            if self.process.poll() is not None:
                raise StartError(f"exit {self.process.returncode}: {self.said()}")
            try:
                with Raw(self.port) as raw:
                    if not raw.call("PING").startswith(b"-LOADING"):
                        return
            except (OSError, EOFError):
                pass
            time.sleep(0.02)
        self.kill9()
        raise StartError(f"no answer in {START_LIMIT_S} s: {self.said()}")

    def note_settings(self):
        with Raw(self.own_port) as raw:
            self.settings = raw.call("CONFIG", "GET", "*")

    def _start_proxy(self):
        """From here on clients get the proxy's port."""
        server, self.port = self.own_port, free_port()
        self.proxy = subprocess.Popen([PROXY, "--listen", str(self.port), "--server", PROXIED_HOST,
                                       "--port", str(server),
                                       *(("--mode", PROXY_MODE) if PROXY_MODE else ())])
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise StartError("the proxy does not listen")

    def _end_proxy(self):
        proxy, self.proxy = self.proxy, None
        if proxy is not None:
            code = proxy.poll()
            proxy.kill()
            proxy.wait()
            assert code is None, f"the proxy has ended: {code}"

    def said(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, errors="replace") as log:
            return log.read()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Graceful, as a service manager does it; anything but a clean end is an error."""
        if self.process is None:
            return
        process, self.process = self.process, None
        try:
            self._end_proxy()
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            code = process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"does not stop in {STOP_LIMIT_S} s: {self.said()[-4000:]}")
        finally:
            process.kill()
            process.wait()
        self.check_log()
        assert code == 0, f"exit {code}: {self.said()[-8000:]}"

    def kill9(self):
        process, self.process = self.process, None
        try:
            self._end_proxy()
        finally:
            process.kill()
            process.wait()
        self.check_log()

    def restart(self):
        self.stop()
        self.start()

    def check_log(self):
        assert not COMPLAINT.search(self.said()), self.said()[-8000:]

    def check_data(self):
        """What vellum-check says of the directory of a server that is not running: (status, lines)."""
        done = subprocess.run([CHECKER, self.data], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, env=ENVIRONMENT,
                              check=False)
        return done.returncode, done.stdout

    def remove(self):
        for process in filter(None, (self.proxy, self.process)):
            process.kill()
            process.wait()
        self.proxy = self.process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def client(self, **options):
        return redis.Redis(port=self.port, socket_timeout=60, **options)

    def raw(self, **options):
        return Raw(self.port, **options)

    def cli(self, *words, text=None):
        """redis-cli's output; its failure is an error."""
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], input=text,
                              capture_output=True, text=True, timeout=120, check=True)
        return done.stdout


class Kept:
    """Servers that tests have used, for others that want such a one: one for each number of
    workers. With the proxy, in an emulated machine, just one, but with any options."""

    def __init__(self):
        self.servers = {}

    def take(self, workers, options):
        """A server that was kept, as if it were new, or None."""
        server = self.servers.get(workers)
        fits = server is not None and server.options == options
        if PROXY and not fits:
            self.end()
        if not fits:
            return None
        del self.servers[workers]
        try:
            is_as_new = self._renew(server)
        except Exception:
            server.remove()
            raise
        if is_as_new:
            return server
        self._stop(server)
        return None

    def keep(self, server):
        """Whether it is kept: else its end is the caller's business."""
        if not server.running() or server.starts != 1 or server.workers in self.servers:
            return False
        if server.options and not PROXY:
            return False
        self.servers[server.workers] = server
        return True

    def end(self):
        while self.servers:
            self._stop(self.servers.popitem()[1])

    @staticmethod
    def _stop(server):
        try:
            server.stop()
        finally:
            server.remove()

    @staticmethod
    def _renew(server):
        """By the server's own port: clients, settings, scripts and data of the last test go."""
        with Raw(server.own_port) as raw:
            for words in (("CLIENT", "KILL", "SKIPME", "yes"),
                          ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"), ("FLUSHALL",), ("CONFIG", "RESETSTAT")):
                if raw.call(*words)[:1] not in b"+:":
                    return False
            return raw.call("CONFIG", "GET", "*") == server.settings


class Raw:
    """A connection that returns each reply as the bytes that came, whole."""

    def __init__(self, port, timeout=60, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(("127.0.0.1", port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self.socket.close()
            raise
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *words):
        self.send(encode(*words))
        return self.reply()

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("closed by the server")
        self.unread += data

    def line(self):
        while True:
            end = self.unread.find(b"\r\n")
            if end >= 0:
                line, self.unread = self.unread[:end + 2], self.unread[end + 2:]
                return line
            self.more()

    def exactly(self, size):
        parts, have = [self.unread], len(self.unread)
        while have < size:
            data = self.socket.recv(min(1 << 20, size - have))
            if not data:
                raise EOFError("closed by the server")
            parts.append(data)
            have += len(data)
        data = b"".join(parts)
        data, self.unread = data[:size], data[size:]
        return data

    def reply(self):
        line = self.line()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            return line + self.exactly(int(rest) + 2)
        if kind in b"*~>" and rest != b"-1":
            return line + b"".join(self.reply() for _ in range(int(rest)))
        if kind in b"%|":
            return line + b"".join(self.reply() for _ in range(2 * int(rest)))
        assert kind in b"+-:$*_,#(", line
        return line

    def closed(self):
        """The server closes the connection, in time, with nothing more to say."""
        try:
            return not self.unread and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
