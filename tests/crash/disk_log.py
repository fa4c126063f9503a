"""The log of writes that QEMU's blklogwrites makes (dm-log-writes' form), and disks as a power cut
may leave them.

    superblock, one sector   magic (8), version (8), number of entries (8), bytes in a sector (4)
    entry, one sector        first sector (8), sectors (8), flags (8), length of a mark (8)
    its data, that many sectors, unless it is a flush or discards them
"""

import struct

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD = 1, 2, 4

# What a writer leaves past the file system, with the number of operations acknowledged so far.
MARK = b"acknowledged so far:"


class Entry:
    def __init__(self, at, length, place, flags):
        self.at, self.length = at, length  # on the disk, in bytes
        self.place = place                 # of the data in the log
        self.flags = flags


class Log:
    def __init__(self, path):
        self.file = open(path, "rb")
        magic, _, count, self.sector = struct.unpack("<QQQI", self.file.read(28))
        assert magic == MAGIC, "not a log of writes"
        self.entries = []
        place = self.sector
        for _ in range(count):
            self.file.seek(place)
            first, sectors, flags, _ = struct.unpack("<QQQQ", self.file.read(32))
            place += self.sector
            self.entries.append(Entry(first * self.sector, sectors * self.sector, place, flags))
            if not flags & DISCARD:
                place += sectors * self.sector

    def data(self, entry):
        if entry.flags & DISCARD:
            return bytes(entry.length)
        self.file.seek(entry.place)
        return self.file.read(entry.length)

    def apply(self, disk, entry):
        disk.seek(entry.at)
        disk.write(self.data(entry))

    def apply_unflushed(self, disk, entry, chance):
        """Kept, lost, or torn: each sector as chance has it."""
        fate = "kept" if entry.flags & FUA else chance.choice(("kept", "lost", "torn"))
        if fate == "kept":
            self.apply(disk, entry)
        elif fate == "torn":
            data = self.data(entry)
            for at in range(0, entry.length, self.sector):
                if chance.random() < 0.5:
                    disk.seek(entry.at + at)
                    disk.write(data[at:at + self.sector])
