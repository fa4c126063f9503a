import os
import random
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import harness  # noqa: E402

WANTED = os.environ.get("VELLUM_TEST_WORKERS")
WORKERS = [int(n) for n in (WANTED if WANTED not in (None, "any") else "1,3").split(",")]
if harness.IS_REDIS:
    WORKERS = WORKERS[:1]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds or much memory; with the most "
                            "workers only, unless VELLUM_TEST_WORKERS says otherwise")
    config.addinivalue_line("markers", "vellum: about what Redis does not have")
    config.addinivalue_line(
        "markers", "sockets(reason): not to be carried over a channel by the proxy")
    config.addinivalue_line(
        "markers", "shared: may have a server that others have used, emptied")


def workers_of(item):
    return item.callspec.params.get("workers") if hasattr(item, "callspec") else None


def is_left_out(item):
    """With `any`, each test gets one number of workers by VELLUM_SEED; a slow one the most, unless told."""
    workers = workers_of(item)
    if workers is None or WANTED not in (None, "any"):
        return False
    if item.get_closest_marker("slow"):
        return workers != WORKERS[-1]
    name = item.nodeid.replace(f"{workers}w", "")
    chosen = random.Random(f"{os.environ.get('VELLUM_SEED')} {name}").choice(WORKERS)
    return WANTED == "any" and workers != chosen


def pytest_collection_modifyitems(config, items):
    left_out = list(filter(is_left_out, items))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]
    for item in items:
        marker = item.get_closest_marker("sockets")
        if harness.PROXY and marker:
            item.add_marker(pytest.mark.skip(reason=marker.args[0]))
    if harness.IS_REDIS:
        for item in items:
            if item.get_closest_marker("vellum"):
                item.add_marker(pytest.mark.skip(reason="not Redis's"))


@pytest.fixture(params=WORKERS, ids=lambda n: f"{n}w")
def workers(request):
    return request.param


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    item.has_failed = getattr(item, "has_failed", False) or outcome.get_result().failed


@pytest.fixture(scope="session")
def kept():
    """Starting a server takes longer than most tests, and seconds with the proxy, in an emulated
    machine: for tests that are marked `shared`, and there for all, it is kept for the next one."""
    kept = harness.Kept()
    yield kept
    kept.end()


@pytest.fixture
def make_server(workers, kept, request):
    """Starts servers with options of their own; each is stopped, and must stop well."""
    made = []
    shares = harness.PROXY or request.node.get_closest_marker("shared")

    def make(**options):
        server = kept.take(workers, options) if shares and not made else None
        if server is not None:
            made.append(server)
            return server
        made.append(harness.Server(workers, **options))
        made[-1].start()
        if shares:
            made[-1].note_settings()
        return made[-1]

    yield make
    if shares and len(made) == 1 and not request.node.has_failed and kept.keep(made[0]):
        return
    try:
        for server in made:
            server.stop()
    finally:
        for server in made:
            server.remove()


@pytest.fixture
def server(make_server):
    return make_server()


@pytest.fixture
def client(server):
    return server.client()


@pytest.fixture(scope="module")
def stock():
    """Stock Redis, to compare with."""
    server = harness.Server(program="redis-server")
    try:
        yield server.start()
    finally:
        server.remove()
