"""What a fault is: an edit of the sources, and who has to notice it.

An edit is a pair: the text to be found, exactly once and whatever its line breaks, and what stands
there instead. `killers` are tried in turn until one fails.
"""

import dataclasses

POWERCUT, CUTS, FAULTS, STALLS = "test_powercut", "test_cuts", "test_faults", "test_stalls"
ROT, LOST, DISK, RANDOM, CONCURRENT = "test_rot", "test_lost", "test_disk", "test_random", "test_concurrent"
INDEX_FILE, SPACE, LONG_RECORD = "test_index_file", "test_page_file", "test_long_record"
CUTS_SPACE = "test_cuts_space"
TREES = ["test_tree", "test_tree_room", "test_tree_reads"]
WAIT_RANDOM, UPLOAD, LONG_KEYS = "wait/test_random", "test_upload", "test_long_keys"
LARGE = "test_large"
TINY_RANDOM = "tiny/test_random"
TINY_BELIEVED = "tiny/test_believed"
BULK_LOAD, CLOCK, EVICT = "test_bulk_load", "test_clock", "test_evict"
BORROWED = "test_borrowed"
ORDERED = "test_ordered_keys"


@dataclasses.dataclass
class Fault:
    name: str
    file: str
    what: str
    edits: list
    killers: list
    quick: bool = False


class Faults(list):
    def add(self, name, file, what, *edits, by, quick=False):
        self.append(Fault(name, file, what, list(edits), by, quick))
