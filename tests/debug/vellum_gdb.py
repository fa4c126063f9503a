"""Pretty-printers and commands for gdb: what a stopped server or a core holds.

    gdb -p PID -x tests/debug/vellum_gdb.py
    gdb build/bin/vellum-server CORE -x tests/debug/vellum_gdb.py

Printers: struct format_item (with its key), struct frame, struct key_lock, struct store_txn,
struct conn. Commands, which find the server by the frames of its threads:

    vellum connections     each connection: its client, last command, requests, unsent bytes
    vellum locks           each queue of key locks, with the transactions that hold or await them
    vellum frames          page frames by state
    vellum item ADDRESS    the item whose header stands there

Needs debugging information (`-g`, which every build has). FIELDS names all that is read: tests/debug/
test_gdb.py fails where a structure has lost one of them.
"""

import gdb

FIELDS = {
    "format_item": ["database", "version", "key_len", "payload_len", "type", "flags"],
    "frame": ["page", "file", "state", "refs", "commit", "dirty", "writing", "visited", "waiters"],
    "key_lock": ["next", "txn", "hash", "partition", "exclusive", "granted", "queue"],
    "store_txn": ["state", "phase", "hold", "again", "prefetch_run", "waits", "reruns", "blocking_io", "starved", "throttled",
                  "refuses", "key_lock_count", "ungranted", "write_count", "pin_count", "shown"],
    "conn": ["session", "transport", "of_worker", "request_count", "running", "output_bytes", "waiter",
             "is_streaming", "is_undurable", "send_blocked", "input_ended", "kill", "worker"],
    "session": ["id", "db", "resp_version", "last_command", "name", "multi", "watch"],
    "server": ["workers", "worker_count", "store"],
    "worker": ["server", "conns", "index"],
    "store": ["partitions", "partition_count", "cache"],
    "page_cache": ["arena"],
    "partition": ["key_locks", "key_lock_count"],
    "arena": ["frames", "memory", "chunk_count"],
}
TXN_FLAGS = ("blocking_io", "starved", "throttled", "refuses")
CONN_FLAGS = ("is_streaming", "is_undurable", "send_blocked", "input_ended", "kill")
CHUNK_FRAMES = 1 << 14  # ARENA_CHUNK_FRAMES
HAS_EXPIRY, LONG_KEY, HAS_WAKE, KEY_TREE = 1, 16, 32, 64  # of enum format_flags


def text_of(pointer):
    """A C string as Python's, or "-"."""
    return pointer.string(errors="replace") if int(pointer) else "-"


def number(value):
    """An integer, also of an _Atomic one."""
    return int(value.cast(value.type.strip_typedefs().unqualified()))


def flags(value, names):
    set_ones = [name for name in names if value[name]]
    return " " + " ".join(set_ones) if set_ones else ""


def key_of(item):
    """The key behind an item's header."""
    length = int(item["key_len"])
    if item.address is None:
        return f"{length} bytes"
    start = int(item.address) + item.type.sizeof + 8 * sum(1 for flag in (HAS_EXPIRY, HAS_WAKE) if int(item["flags"]) & flag)
    if int(item["flags"]) & LONG_KEY:
        return "(stands elsewhere)"
    if int(item["flags"]) & KEY_TREE:
        return "(root of a tree of keys)"
    raw = bytes(gdb.selected_inferior().read_memory(start, min(length, 64)))
    return repr(raw)[1:] + ("..." if length > 64 else "")


class Printer:
    """Says what a structure holds in one line."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return WORDING[self.value.type.strip_typedefs().unqualified().tag](self.value)


def say_item(item):
    return (f"item key={key_of(item)} database={int(item['database'])} commit={int(item['version'])}"
            f" payload={int(item['payload_len'])} type={int(item['type'])} flags={int(item['flags']):#x}")


def named(value, enum, prefix):
    """A small integer as the name it has in an enum."""
    return str(gdb.Value(number(value)).cast(gdb.lookup_type("enum " + enum))).removeprefix(prefix).lower()


def frame_state(frame):
    return named(frame["state"], "frame_state", "FRAME_")


def say_frame(frame):
    return (f"frame page={int(frame['page'])} of file {int(frame['file'])} {frame_state(frame)}"
            f" refs={int(frame['refs'])} commit={int(frame['commit'])}"
            f"{flags(frame, ('dirty', 'writing', 'visited'))}"
            f"{' awaited' if int(frame['waiters']) else ''}")


def say_key_lock(key_lock):
    return (f"key_lock hash={int(key_lock['hash']):#x} partition={int(key_lock['partition'])}"
            f" {'exclusive' if key_lock['exclusive'] else 'shared'}"
            f" {'granted' if key_lock['granted'] else 'waits'} txn={int(key_lock['txn']):#x}")


def say_txn(txn):
    state = named(txn["state"], "txn_state", "TXN_")
    return (f"txn {state}, next {txn['phase']}, {txn['hold']} waits={number(txn['waits'])}"
            f" key_locks={int(txn['key_lock_count'])}"
            f" (not granted: {number(txn['ungranted'])}) writes={int(txn['write_count'])}"
            f" pins={int(txn['pin_count'])} reruns={int(txn['reruns'])} shown={int(txn['shown'])}"
            f"{flags(txn, TXN_FLAGS)}")


def say_conn(conn):
    session = conn["session"]
    return (f"conn id={int(session['id'])} name={text_of(session['name'])} db={int(session['db'])}"
            f" resp={int(session['resp_version'])} cmd={text_of(session['last_command'])}"
            f" requests={int(conn['request_count'])} running={int(conn['running'])}"
            f" unsent={int(conn['output_bytes'])}"
            f"{' blocked' if int(conn['waiter']) else ''}{' multi' if int(session['multi']) else ''}"
            f"{' watch' if int(session['watch']) else ''}{flags(conn, CONN_FLAGS)}"
            f"{'' if int(conn['transport']) else ' closed'}")


WORDING = {"format_item": say_item, "frame": say_frame, "key_lock": say_key_lock, "store_txn": say_txn,
           "conn": say_conn}


def printer_for(value):
    kind = value.type.strip_typedefs().unqualified()
    if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in WORDING:
        return Printer(value)
    return None


def find_server():
    """The server, which some frame of some thread knows."""
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        while frame is not None:
            if found := server_in(frame):
                return found
            frame = frame.older()
    raise gdb.GdbError("no thread of a server is here")


def server_in(frame):
    try:
        block = frame.block()
    except RuntimeError:  # no debugging information: a library's
        return None
    for symbol in block:
        if not (symbol.is_argument or symbol.is_variable):
            continue
        value = symbol.value(frame)
        if value.is_optimized_out or str(symbol.type) not in ("struct server *", "struct worker *"):
            continue
        if int(value):
            return value if str(symbol.type) == "struct server *" else value["server"]
    return None


def chain(first, *link):
    """The elements of a list, each with the address of the next in the field `link`."""
    while int(first):
        yield first.dereference()
        for name in link:
            first = first[name]


class Vellum(gdb.Command):
    """vellum connections | locks | frames | item ADDRESS"""

    def __init__(self):
        super().__init__("vellum", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = argument.split()
        if words[:1] == ["item"] and len(words) == 2:
            address = gdb.parse_and_eval(words[1])
            kind = gdb.lookup_type("struct format_item").pointer()
            print(say_item(address.cast(kind).dereference()))
            return
        shown = {"connections": connections, "locks": locks, "frames": frames}.get(argument.strip())
        if shown is None:
            raise gdb.GdbError("usage: " + self.__doc__)
        thread = gdb.selected_thread()
        try:
            shown(find_server())
        finally:
            if thread is not None:
                thread.switch()

    def complete(self, text, word):
        return [name for name in ("connections", "locks", "frames", "item") if name.startswith(word)]


def connections(server):
    for index in range(int(server["worker_count"])):
        worker = server["workers"][index]
        for conn in chain(worker["conns"]["lh_first"], "of_worker", "le_next"):
            print(f"worker {index}: {say_conn(conn)}")


def locks(server):
    """The first key_lock of each queue of a bucket leads to the next key's queue."""
    store = server["store"]
    for index in range(int(store["partition_count"])):
        partition = store["partitions"][index]
        if not int(partition["key_lock_count"]):
            continue
        first, last = partition["key_locks"].type.range()
        for bucket in range(first, last + 1):
            head = partition["key_locks"][bucket]
            while int(head):
                print(f"queue of key hash {int(head['hash']):#x}, partition {index}")
                for key_lock in chain(head, "next"):
                    print(f"  {say_key_lock(key_lock)}")
                    print(f"    {say_txn(key_lock['txn'].dereference())}")
                head = head["queue"]["next_bucket"]


def frames(server):
    arena = server["store"]["cache"]["arena"]
    states = {}
    for chunk in range(int(arena["chunk_count"])):
        if not int(arena["frames"][chunk]):
            continue
        for index in range(CHUNK_FRAMES):
            frame = arena["frames"][chunk][index]
            kind = frame_state(frame) + flags(frame, ("dirty", "writing"))
            states[kind] = states.get(kind, 0) + 1
    for kind, count in sorted(states.items()):
        print(f"{kind}: {count}")


gdb.pretty_printers.append(printer_for)
Vellum()
