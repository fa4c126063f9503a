"""tests/run counts, and runs again, what it should."""

import importlib.machinery
import importlib.util
import os

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(os.path.dirname(HERE), "run")

UNSTEADY = """
import os, pytest

@pytest.mark.parametrize("n", range(3))
def test_many(n):
    pass

def test_first_time():
    seen = {seen!r}
    with open(seen, "a") as file:
        file.write(os.environ["VELLUM_SEED"] + "\\n")
    with open(seen) as file:
        seeds = file.read().split()
    assert {condition}, {message!r}
"""
SECOND_TIME = "len(seeds) > 1 and len(set(seeds)) == 1"


@pytest.fixture
def module(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_loader(
        "run", importlib.machinery.SourceFileLoader("run", PATH))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TOP", str(tmp_path))
    monkeypatch.delenv("VELLUM_SEED", raising=False)
    (tmp_path / "build").mkdir()
    return module


@pytest.fixture
def run(module, tmp_path):
    def run(condition, message="late"):
        (tmp_path / "test_it.py").write_text(UNSTEADY.format(
            seen=str(tmp_path / "seen"), condition=condition, message=message))
        return module.pytest("build", "it", "test_it.py")
    return run


def test_a_case_that_fails_once_is_run_again_and_told_of(run):
    result = run(SECOND_TIME)
    assert (result.passed, result.failed) == (4, 0)
    assert result.unsteady == ["test_it.py::test_first_time"]


def test_a_case_that_fails_twice_has_failed(run):
    result = run("False")
    assert (result.passed, result.failed, result.unsteady) == (3, 1, [])


@pytest.mark.parametrize("message", ["exit -6: server log", "Assertion `x' failed",
                                     "AddressSanitizer: heap-use-after-free"])
def test_a_crash_is_not_run_again(run, message):
    result = run(SECOND_TIME, message)
    assert (result.passed, result.failed, result.unsteady) == (3, 1, [])


COUNTED = """#!/bin/sh
echo run >>{seen}
if [ $(wc -l <{seen}) = {good} ]; then echo '5 passed, 0 failed'; else
    echo '{output}'; echo '4 passed, 1 failed'; exit 1; fi
"""


@pytest.mark.parametrize("good,output,passed,failed,unsteady", [
    (1, "", 5, 0, []), (2, "too late", 5, 0, ["it: 1 cases"]), (3, "too late", 4, 1, []),
    (2, "the server ended", 4, 1, [])])
def test_a_part_that_counts_its_cases(module, tmp_path, good, output, passed, failed, unsteady):
    script = tmp_path / "script"
    script.write_text(COUNTED.format(seen=tmp_path / "seen", good=good, output=output))
    result = module.counted("it", ["sh", str(script)], "build", again=True)
    assert (result.passed, result.failed, result.unsteady) == (passed, failed, unsteady)


PART = """#!/usr/bin/python3
import sys
print("unsteady, passed when run again: a_case" if sys.argv[-1] == "good" else "nothing")
print("3 passed, 0 failed" if sys.argv[-1] != "silent" else "")
sys.exit(sys.argv[-1] == "bad")
"""


@pytest.mark.parametrize("parts,passed,failed", [
    (["good"], 3, 0), (["good", "good", "good"], 9, 0), (["good", "silent"], 3, 1),
    (["bad", "good"], 6, 1)])
def test_parts_side_by_side(module, tmp_path, monkeypatch, capsys, parts, passed, failed):
    script = tmp_path / "part"
    script.write_text(PART)
    monkeypatch.setattr(module, "__file__", str(script))
    result = module.run_lanes("build", parts, 2)
    assert (result.passed, result.failed) == (passed, failed)
    assert result.unsteady == ["a_case"] * parts.count("good")
    printed = capsys.readouterr().out
    assert all(f"---- {part} ----" in printed for part in parts)


@pytest.mark.parametrize("device,guest,passed", [(0, 1, 2), (1, 0, 2), (0, 0, 2), (1, 1, 0)])
def test_rdma_needs_a_device_or_a_machine(module, tmp_path, device, guest, passed):
    folder = tmp_path / "tests" / "rdma"
    folder.mkdir(parents=True)
    for name, text in (("device", f"exit {device}"), ("guest", f"exit {guest}"),
                       ("run", "echo '2 passed, 0 failed'")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    result = module.part_rdma("build")
    assert (result.passed, result.failed) == (passed, 0)
