import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import harness  # noqa: E402

WORKERS = [int(n) for n in os.environ.get("VELLUM_TEST_WORKERS", "1,3").split(",")]
if harness.IS_REDIS:
    WORKERS = WORKERS[:1]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds or much memory")
    config.addinivalue_line("markers", "vellum: about what Redis does not have")


def pytest_collection_modifyitems(items):
    if harness.IS_REDIS:
        for item in items:
            if item.get_closest_marker("vellum"):
                item.add_marker(pytest.mark.skip(reason="not Redis's"))


@pytest.fixture(params=WORKERS, ids=lambda n: f"{n}w")
def workers(request):
    return request.param


@pytest.fixture
def make_server(workers):
    """Starts servers with options of their own; each is stopped, and must stop well."""
    made = []

    def make(**options):
        server = harness.Server(workers, **options)
        made.append(server)
        return server.start()

    yield make
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
