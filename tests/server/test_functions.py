"""Libraries of functions: every worker sees them, and they are as durable as data."""


CODE = """#!lua name=lib
redis.register_function('put', function(keys, args)
    redis.call('SET', keys[1], args[1])
    return redis.call('GET', keys[1])
end)
redis.register_function{function_name='count', flags={'no-writes'},
                        callback=function(keys, args) return #keys + 10 * #args end}"""


def test_load_is_seen_by_all_workers(server):
    clients = [server.client() for _ in range(8)]
    for version in range(5):
        code = f"#!lua name=lib\nredis.register_function('f', function() return {version} end)"
        assert clients[version].execute_command("FUNCTION", "LOAD", "REPLACE", code) == b"lib"
        for client in clients:
            assert client.execute_command("FCALL", "f", 0) == version


def test_flushall_keeps_libraries_and_shows_none(client):
    client.execute_command("FUNCTION", "LOAD", CODE)
    client.execute_command("FLUSHALL")
    assert client.execute_command("DBSIZE") == 0
    assert client.execute_command("KEYS", "*") == []
    assert client.execute_command("FCALL", "put", 1, "k", "v") == b"v"


def test_inside_a_transaction(client):
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("FUNCTION", "LOAD", CODE)
    pipe.execute_command("FCALL", "put", 1, "k", "v")
    assert pipe.execute() == [b"lib", b"v"]


def test_kill_9_loses_no_acknowledged_library(make_server):
    server = make_server(appendfsync="always")
    server.client().execute_command("FUNCTION", "LOAD", CODE)
    server.kill9()
    server.start()
    assert server.client().execute_command("FCALL_RO", "count", 1, "k", "a") == 11
