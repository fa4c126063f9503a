"""Writers that remember what they said and when, and the check of what is there after the server or
its machine was cut off.

Each writer has keys of its own and sends numbered operations one behind the other, several on their
way at a time. What may be left of a writer's keys is what some first k of its operations make of
them, whole operations only (an MSET and an EXEC are one). k is found by comparing, and must
  - count everything acknowledged before the moment that the policy names, and nothing unsent,
  - fit the other writers' k: the whole store is a prefix. If an operation is lost that was
    acknowledged at some moment, nothing sent after that moment may be there.
"""

import random
import threading
import time

import harness
from operations import apply_command, encode, first_operation, operation, read_value

IN_FLIGHT = 8
WRITERS = 4


class History:
    """One writer's operations since a state that is known. Outlives the server."""

    def __init__(self, name, seed):
        self.name = name
        self.chance = random.Random(f"{seed} {name}")
        self.number = 0
        self.state = {}  # before the first of the operations
        self.operations, self.sent, self.acknowledged = [], [], []

    def __str__(self):
        return self.name.decode()

    def next(self):
        self.number += 1
        make = operation if self.operations else first_operation
        made = make(self.chance, self.name, self.number, self.state)
        self.operations.append(made)
        self.sent.append(time.monotonic())
        return made

    def possible(self, seen):
        """The numbers of operations that would have left what is seen."""
        state = dict(self.state)
        wrong = {key for key in state.keys() | seen.keys() if state.get(key) != seen.get(key)}
        found = [] if wrong else [0]
        for count, commands in enumerate(self.operations, 1):
            for words in commands:
                for key in apply_command(state, words):
                    wrong.discard(key)
                    if state.get(key) != seen.get(key):
                        wrong.add(key)
            if not wrong:
                found.append(count)
        return found

    def go_on(self, seen):
        """What is there is where the next operations begin."""
        self.state = seen
        self.operations, self.sent, self.acknowledged = [], [], []


def write(port, history, stop, acknowledge):
    """Sends operations until it is stopped or cut off. An error reply ends it, and is returned."""
    try:
        with harness.Raw(port) as raw:
            replies = []  # how many each operation in flight has to come
            while not stop.is_set():
                batch = b""
                while len(replies) < IN_FLIGHT:
                    sent, count = encode(history.next())
                    batch += sent
                    replies.append(count)
                raw.send(batch)
                for count in replies[:IN_FLIGHT // 2]:
                    for _ in range(count):
                        reply = raw.reply()
                        if reply[:1] == b"-" or b"\r\n-" in reply:
                            return f"{history}: {reply[:200]}"
                    acknowledge(history)
                del replies[:IN_FLIGHT // 2]
    except (OSError, EOFError):
        pass
    return None


def acknowledge_now(history):
    history.acknowledged.append(time.monotonic())


class Writers:
    """Threads that write, one for each history, from start() to join()."""

    def __init__(self, port, histories, acknowledge=acknowledge_now):
        self.errors = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(port, history, acknowledge))
                        for history in histories]
        for thread in self.threads:
            thread.start()

    def _run(self, port, history, acknowledge):
        error = write(port, history, self.stop, acknowledge)
        if error:
            self.errors.append(error)

    def join(self):
        """What went wrong, if it did."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.errors


# ---- the check ----

def read_all(client):
    """Everything that is there, by key."""
    return {key: read_value(client, key) for key in client.keys("*")}


def of_writer(seen, history):
    return {key: v for key, v in seen.items() if key.startswith(history.name + b":")}


def describe(history, seen):
    """The first few keys that differ from what all operations would have left, for a person."""
    state = dict(history.state)
    for commands in history.operations:
        for words in commands:
            apply_command(state, words)
    different = [key for key in state.keys() | seen.keys() if state.get(key) != seen.get(key)]
    return ", ".join(f"{key} has {str(seen.get(key))[:60]} at the end {str(state.get(key))[:60]}"
                     for key in different[:5])


def check(histories, seen, certain):
    """Faults in what is seen. certain(history): how many operations must be there."""
    faults, counts = [], []
    for history in histories:
        mine = of_writer(seen, history)
        found = history.possible(mine)
        least = certain(history)
        if not found:
            faults.append(f"{history}: not what any first operations leave, of"
                          f" {len(history.operations)}: {describe(history, mine)}")
        elif found[-1] < least:
            faults.append(f"{history}: {found[-1]} operations are there, {least} must be")
        counts.append(found)
    if sum(len(of_writer(seen, history)) for history in histories) != len(seen):
        faults.append("there are keys that nobody wrote")
    return faults or out_of_order(histories, counts)


def out_of_order(histories, counts):
    """Operations that are there although one that was acknowledged before they were sent is not."""
    faults = []
    for lost, found in zip(histories, counts):
        if found[-1] >= len(lost.acknowledged):
            continue
        moment = lost.acknowledged[found[-1]]
        for other, there in zip(histories, counts):
            if there[0] and other.sent[there[0] - 1] > moment:
                faults.append(f"{other}: operation {there[0]} is there, {found[-1] + 1} of"
                              f" {lost} is not, acknowledged before that was sent")
    return faults
