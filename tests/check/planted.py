"""A small tree of sources, with their objects, in the current folder: what a check is tried on."""

import os
import subprocess


def plant(files):
    """`files`: path to text."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for path in files:
        if path.endswith(".c"):
            object_path = os.path.join("build/obj", path[:-2] + ".o")
            os.makedirs(os.path.dirname(object_path), exist_ok=True)
            subprocess.run(["gcc", "-iquote", ".", "-include", "assert.h", "-c", "-o", object_path, path],
                           check=True)


def planter(tmp_path, monkeypatch, check):
    """Plants files in a directory of its own; returns what the check complains of there."""
    monkeypatch.chdir(tmp_path)

    def plant_and_check(files):
        plant(files)
        return list(check.complaints("build"))
    return plant_and_check
