"""What COMMAND reports of the commands, compared with stock redis-server."""

import pytest

import harness


def without_notes(specs):
    """A key specification is a list of names and values; the notes are each server's own words."""
    return [spec[2:] if spec[0] == b"notes" else spec for spec in specs]


def facts_of_commands(rows):
    """By name, subcommands too: {fact: value}."""
    facts = {}
    for name, arity, flags, first, last, step, categories, tips, specs, subcommands in rows:
        facts[name.decode()] = {
            "arity": arity, "flags": sorted(flags), "keys": (first, last, step),
            "categories": sorted(categories), "tips": sorted(tips), "specs": without_notes(specs)}
        facts.update(facts_of_commands(subcommands))
    return facts


def rows_of_commands(server):
    """As they come: the library would make something of them."""
    connection = server.client().connection_pool.get_connection("COMMAND")
    try:
        connection.send_command("COMMAND")
        return connection.read_response()
    finally:
        connection.disconnect()


# Where 7.2 differs from stock, which is 7.0.
NEWER = {"zrank": ["arity"], "zrevrank": ["arity"],  # WITHSCORE
         "wait": ["flags", "categories"],  # may stand in scripts
         **{name: ["flags"] for name in ("blpop", "brpop", "blmove", "brpoplpush", "bzpopmin",
                                         "bzpopmax")},  # likewise
         "command|getkeys": ["arity"], "command|getkeysandflags": ["arity"]}  # of one word


def test_commands_are_described_as_stock_does(server, stock):
    ours, theirs = (facts_of_commands(rows_of_commands(s)) for s in (server, stock))
    names = ours.keys() & theirs.keys()
    assert len(names) > 200
    assert {name: [fact for fact in ours[name] if ours[name][fact] != theirs[name][fact]]
            for name in names if ours[name] != theirs[name]} == NEWER


def test_every_listed_command_answers(server):
    """Whatever COMMAND lists exists: called with no arguments it does not say 'unknown'."""
    names = [n.decode() for n in server.client().execute_command("COMMAND LIST")]
    with server.raw() as raw:
        for name in names:
            if name.lower() in ("quit", "shutdown", "monitor", "sync", "psync", "subscribe",
                                "psubscribe", "ssubscribe", "reset"):
                continue
            assert not raw.call(*name.split("|")).lower().startswith(b"-err unknown"), name


# ---- COMMAND DOCS ----

def decoded(raw):
    """A reply as values; maps as they are in RESP2, lists of keys and values."""
    line = raw.line()
    kind, rest = line[:1], line[1:-2]
    if kind in b"*~%":
        return [decoded(raw) for _ in range(int(rest) * (2 if kind == b"%" else 1))]
    if kind == b"$":
        return raw.exactly(int(rest) + 2)[:-2].decode()
    return int(rest) if kind == b":" else rest.decode()


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def documents(server, *names, resp=3):
    with server.raw() as raw:
        raw.call("HELLO", resp)
        raw.send(harness.encode("COMMAND", "DOCS", *names))
        return decoded(raw)


def by_name(documented):
    """{name: facts}, subcommands too."""
    found = {}
    for name, facts in pairs(documented).items():
        found[name] = pairs(facts)
        found.update(by_name(found[name].get("subcommands", [])))
    return found


def argument_text(argument, name):
    """An argument in the notation of a syntax line; its type follows a colon."""
    text = name + ":" + argument["type"]
    if "arguments" in argument:
        text += "(" + syntax(argument["arguments"]) + ")"
    if argument.get("display_text", argument["name"]) != argument["name"]:
        text += "'%s'" % argument["display_text"]
    for mark, fact in (("#", "key_spec_index"), ("@", "since"), ("!", "deprecated_since")):
        if fact in argument:
            text += mark + str(argument[fact])
    if "token" in argument:
        text = argument["token"] + " " + text
    flags = set(argument.get("flags", []))
    assert flags <= {"optional", "multiple", "multiple_token"}
    dots = "..." if "multiple" in flags else ""
    if "optional" not in flags:
        return text + dots
    return f"[{text}]..." if "multiple_token" in flags else f"[{text}{dots}]"


# 7.2 gives other names to what consists of other arguments; and it has no underlines.
RENAMED = {
    "async": "flush-type", "count": "count-block", "encoding_offset": "get-block",
    "encoding_offset_increment": "incrby-block", "encoding_offset_value": "set-block",
    "end_index": "end-unit-block", "field_value": "data", "group_consumer": "group-block", "id": "id-selector",
    "id_or_auto": "id-selector", "index": "range", "index_unit": "unit", "key_value": "data",
    "longitude_latitude": "fromlonlat", "longitude_latitude_member": "data", "nosave_save": "save-selector",
    "offset_count": "limit", "on_off_skip": "action", "parameter_value": "data", "score_member": "data",
    "timeout_error": "unblock-type", "username_password": "auth", "wrap_sat_fail": "overflow-block",
}


def syntax(arguments):
    texts = []
    for argument in map(pairs, arguments):
        name = argument["name"]
        if "arguments" in argument:
            name = RENAMED.get(name, name)
        texts.append(argument_text(argument, name.replace("_", "-")))
    return " ".join(texts)


# What 7.2 tells where it differs in more than such names.
NEWER_SYNTAX = {
    "bitop": "operation:oneof(AND and:pure-token OR or:pure-token XOR xor:pure-token "
             "NOT not:pure-token) destkey:key#0 key:key#1...",
    "client|kill":
        "filter:oneof(old-format:string'ip:port'!2.8.12 new-format:oneof("
        "[ID client-id:integer@2.8.12] [TYPE client-type:oneof(NORMAL normal:pure-token "
        "MASTER master:pure-token@3.2.0 SLAVE slave:pure-token REPLICA replica:pure-token@5.0.0 "
        "PUBSUB pubsub:pure-token)@2.8.12] [USER username:string] [ADDR addr:string'ip:port'] "
        "[LADDR laddr:string'ip:port'@6.2.0] [SKIPME skipme:oneof(YES yes:pure-token "
        "NO no:pure-token)])...)",
    "client|list":
        "[TYPE client-type:oneof(NORMAL normal:pure-token MASTER master:pure-token "
        "REPLICA replica:pure-token PUBSUB pubsub:pure-token)@5.0.0] [ID client-id:integer@6.2.0...]",
    "command|getkeys": "command:string [arg:string...]",
    "command|getkeysandflags": "command:string [arg:string...]",
    "config|get": "parameter:string...",
    "lcs": "key1:key#0 key2:key#0 [LEN len:pure-token] [IDX idx:pure-token] "
           "[MINMATCHLEN min-match-len:integer] [WITHMATCHLEN withmatchlen:pure-token]",
    "pfmerge": "destkey:key#0 [sourcekey:key#1...]",
    "psubscribe": "pattern:pattern...",
    "sort_ro":
        "key:key#0 [BY by-pattern:pattern'pattern'#1] [LIMIT limit:block(offset:integer count:integer)] "
        "[GET get-pattern:pattern'pattern'#1]... [order:oneof(ASC asc:pure-token DESC desc:pure-token)] "
        "[ALPHA sorting:pure-token]",
    "xclaim":
        "key:key#0 group:string consumer:string min-idle-time:string id:string... [IDLE ms:integer] "
        "[TIME unix-time-milliseconds:unix-time] [RETRYCOUNT count:integer] [FORCE force:pure-token] "
        "[JUSTID justid:pure-token] [LASTID lastid:string]",
    "xgroup|create":
        "key:key#0 group:string id-selector:oneof(id:string $ new-id:pure-token) "
        "[MKSTREAM mkstream:pure-token] [ENTRIESREAD entries-read:integer]",
    "xgroup|createconsumer": "key:key#0 group:string consumer:string",
    "xgroup|delconsumer": "key:key#0 group:string consumer:string",
    "xgroup|destroy": "key:key#0 group:string",
    "xgroup|setid": "key:key#0 group:string id-selector:oneof(id:string $ new-id:pure-token) "
                    "[ENTRIESREAD entries-read:integer]",
    "xinfo|consumers": "key:key#0 group:string",
    "xinfo|stream": "key:key#0 [full-block:block(FULL full:pure-token [COUNT count:integer])]",
    "xsetid": "key:key#0 last-id:string [ENTRIESADDED entries-added:integer@7.0.0] "
              "[MAXDELETEDID max-deleted-id:string@7.0.0]",
    "zrank": "key:key#0 member:string [WITHSCORE withscore:pure-token]",
    "set":
        "key:key#0 value:string [condition:oneof(NX nx:pure-token XX xx:pure-token "
        "IFEQ comparison-value:string@8.1.0)@2.6.12] [GET get:pure-token@6.2.0] "
        "[expiration:oneof(EX seconds:integer@2.6.12 PX milliseconds:integer@2.6.12 "
        "EXAT unix-time-seconds:unix-time@6.2.0 PXAT unix-time-milliseconds:unix-time@6.2.0 "
        "KEEPTTL keepttl:pure-token@6.0.0)]",
}
OF_GEORADIUS = (
    "radius:double unit:oneof(M m:pure-token KM km:pure-token FT ft:pure-token MI mi:pure-token) "
    "[WITHCOORD withcoord:pure-token] [WITHDIST withdist:pure-token] [WITHHASH withhash:pure-token] "
    "[count-block:block(COUNT count:integer [ANY any:pure-token%s])] "
    "[order:oneof(ASC asc:pure-token DESC desc:pure-token)] [store:oneof("
    "STORE storekey:key'key'#1 STOREDIST storedistkey:key'key'#2)]")
NEWER_SYNTAX["georadius"] = ("key:key#0 longitude:double latitude:double " +
                             OF_GEORADIUS % "@6.2.0")
NEWER_SYNTAX["georadiusbymember"] = "key:key#0 member:string " + OF_GEORADIUS % ""
NEWER_SYNTAX["geohash"] = NEWER_SYNTAX["geopos"] = "key:key#0 [member:string...]"
NEWER_SYNTAX["sort"] = NEWER_SYNTAX["sort_ro"] + " [STORE destination:key#2]"
NEWER_SYNTAX["zrevrank"] = NEWER_SYNTAX["zrank"]
# What has been deprecated since.
NEWER_FACTS = {"psetex", "quit", "setex", "setnx"}


def test_commands_are_documented_as_stock_does(server, stock):
    ours, theirs = (by_name(documents(s)) for s in (server, stock))
    names = ours.keys() & theirs.keys()
    assert len(names) > 200
    syntaxes = [{name: syntax(facts[name]["arguments"]) for name in names if "arguments" in facts[name]}
                for facts in (ours, theirs)]
    assert {name: text for name, text in syntaxes[0].items()
            if text != syntaxes[1].get(name)} == NEWER_SYNTAX
    assert syntaxes[1].keys() <= syntaxes[0].keys()
    facts = ("since", "group", "deprecated_since", "replaced_by")
    assert {name for name in names for fact in facts
            if ours[name].get(fact) != theirs[name].get(fact)} == NEWER_FACTS


# Changes since 7.0, by their versions.
NEWER_HISTORY = {"set": ["8.1.0"], "xinfo|consumers": ["7.2.0"], "xinfo|stream": ["7.2.0"], "zrank": ["7.2.0"],
                 "zrevrank": ["7.2.0"]}


def test_changes_are_of_the_versions_that_stock_names(server, stock):
    """In words of our own."""
    ours, theirs = ({name: [version for version, _text in facts.get("history", [])]
                     for name, facts in by_name(documents(s)).items()} for s in (server, stock))
    for name in ours.keys() & theirs.keys():
        assert ours[name] == theirs[name] + NEWER_HISTORY.get(name, []), name
    for facts in by_name(documents(server, resp=2)).values():
        for version, text in facts.get("history", []):
            assert version.count(".") == 2 and text.endswith("."), text


def told_arguments(arguments):
    for argument in map(pairs, arguments):
        yield argument
        yield from told_arguments(argument.get("arguments", []))


def test_every_argument_is_shown_or_consists_of_others(server):
    """As in 7.2, where clients show one by its display_text."""
    arguments = [argument for facts in by_name(documents(server)).values()
                 for argument in told_arguments(facts.get("arguments", []))]
    assert len(arguments) > 400
    for argument in arguments:
        is_group = argument["type"] in ("oneof", "block")
        assert ("arguments" in argument) == is_group != bool(argument.get("display_text")), argument
        assert (argument["type"] == "key") <= ("key_spec_index" in argument), argument


def test_command_docs_cover_all(server):
    told = documents(server)
    assert len(pairs(told)) == server.client().execute_command("COMMAND COUNT")
    for facts in by_name(told).values():
        assert facts["summary"] and facts["since"] and facts["group"] and facts["complexity"]
    assert documents(server, resp=2) == told
    some = documents(server, "SET", "nosuch", "client|kill")
    assert some[::2] == ["set", "client|kill"]
    assert by_name(some).items() <= by_name(told).items()



@pytest.mark.vellum
@pytest.mark.parametrize("subcommand", ["DOCS", "INFO"])
def test_more_names_than_anybody_needs(server, subcommand):
    """The description of a command is many times as long as its name."""
    with server.raw() as raw:
        asked = raw.call("COMMAND", subcommand, *["client"] * 200)
        assert asked.startswith((b"*200\r\n", b"*400\r\n"))
        asked = raw.call("COMMAND", subcommand, *["client"] * 100000)
        assert asked == b"-ERR too many command names\r\n"
