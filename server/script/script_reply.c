/*
 * Converts replies to Lua values and Lua values to replies, as Redis does.
 */
#include "server/script/script_reply.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/script/script_busy.h"
#include "server/script/script_error.h"
#include "server/script/script_seal.h"
#include "server/script/script_state.h"
#include "server/script/script_value.h"

/* ---- to Lua ---- */

struct reader {
    lua_State *lua;
    const char *at, *end;
};

static void push_value(struct reader *reader);

/* The line at `at`, without its end. Advances `at` past the line. */
static struct resp_slice read_line(struct reader *reader)
{
    const char *end = memchr(reader->at, '\r', (size_t)(reader->end - reader->at));
    assert(end != NULL && reader->end - end >= 2); /* the server wrote the reply, and all of it */
    struct resp_slice line = {.data = reader->at, .len = (size_t)(end - reader->at)};
    reader->at = end + 2;
    return line;
}

static int64_t to_number(struct resp_slice digits)
{
    int64_t number = -1;
    bool is_good = resp_read_int64(digits.data, digits.len, &number);
    return is_good ? number : -1;
}

static struct resp_slice read_bytes(struct reader *reader, int64_t len)
{
    assert(len >= 0 && len <= reader->end - reader->at - 2);
    struct resp_slice bytes = {.data = reader->at, .len = (size_t)len};
    reader->at += len + 2;
    return bytes;
}

/* {name = line} */
static void push_named(struct reader *reader, const char *name, struct resp_slice line)
{
    lua_createtable(reader->lua, 0, 1);
    lua_pushlstring(reader->lua, line.data, line.len);
    lua_setfield(reader->lua, -2, name);
}

static void push_array(struct reader *reader, int64_t count)
{
    lua_createtable(reader->lua, count < INT16_MAX ? (int)count : INT16_MAX, 0);
    for (int64_t i = 1; i <= count; i++) {
        push_value(reader);
        lua_rawseti(reader->lua, -2, (int)i);
    }
}

static void push_map(struct reader *reader, int64_t count)
{
    lua_createtable(reader->lua, 0, 1);
    lua_newtable(reader->lua);
    for (int64_t i = 0; i < count; i++) {
        push_value(reader);
        push_value(reader);
        lua_rawset(reader->lua, -3);
    }
    lua_setfield(reader->lua, -2, "map");
}

static void push_set(struct reader *reader, int64_t count)
{
    lua_createtable(reader->lua, 0, 1);
    lua_newtable(reader->lua);
    for (int64_t i = 0; i < count; i++) {
        push_value(reader);
        lua_pushboolean(reader->lua, true);
        lua_rawset(reader->lua, -3);
    }
    lua_setfield(reader->lua, -2, "set");
}

static void push_double(struct reader *reader, struct resp_slice line)
{
    double value = 0;
    bool is_good = resp_read_double(line.data, line.len, &value);
    lua_createtable(reader->lua, 0, 1);
    lua_pushnumber(reader->lua, is_good ? value : (lua_Number)NAN);
    lua_setfield(reader->lua, -2, "double");
}

/* "txt:the text" */
static void push_verbatim(struct reader *reader, struct resp_slice bytes)
{
    assert(bytes.len >= 4 && bytes.data[3] == ':');
    lua_createtable(reader->lua, 0, 1);
    lua_createtable(reader->lua, 0, 2);
    lua_pushlstring(reader->lua, bytes.data, 3);
    lua_setfield(reader->lua, -2, "format");
    lua_pushlstring(reader->lua, bytes.data + 4, bytes.len - 4);
    lua_setfield(reader->lua, -2, "string");
    lua_setfield(reader->lua, -2, "verbatim_string");
}

/* For types that begin with a length; a negative one is null. */
static void push_counted(struct reader *reader, char type, int64_t count)
{
    lua_State *lua = reader->lua;
    if (count < 0)
        lua_pushboolean(lua, false);
    else if (type == '*' || type == '>')
        push_array(reader, count);
    else if (type == '%')
        push_map(reader, count);
    else if (type == '~')
        push_set(reader, count);
    else if (type == '=')
        push_verbatim(reader, read_bytes(reader, count));
    else {
        struct resp_slice bytes = read_bytes(reader, count);
        lua_pushlstring(lua, bytes.data, bytes.len);
    }
}

static void push_value(struct reader *reader)
{
    lua_State *lua = reader->lua;
    if (!lua_checkstack(lua, 6))
        script_raise(lua, "reached lua stack limit");
    script_check_clock(lua);
    assert(reader->at < reader->end);
    char type = *reader->at++;
    struct resp_slice line = read_line(reader);
    switch (type) {
    case ':':
        lua_pushnumber(lua, (lua_Number)to_number(line));
        break;
    case '+':
        push_named(reader, "ok", line);
        break;
    case '-':
        push_named(reader, "err", line);
        break;
    case ',':
        push_double(reader, line);
        break;
    case '(':
        push_named(reader, "big_number", line);
        break;
    case '#':
        lua_pushboolean(lua, line.data[0] == 't');
        break;
    case '_':
        lua_pushnil(lua);
        break;
    case '|': /* skips attributes of the next value, which scripts do not see */
        push_map(reader, to_number(line));
        lua_pop(lua, 1);
        push_value(reader);
        break;
    default:
        push_counted(reader, type, to_number(line));
    }
}

void script_push_reply(lua_State *lua, const struct resp_writer *reply)
{
    struct reader reader = {.lua = lua, .at = reply->data, .end = reply->data + reply->len};
    push_value(&reader);
}

/* ---- from Lua ---- */

struct writer {
    lua_State *lua;
    struct resp_writer *reply;
    uint8_t script_resp;
    size_t before; /* bytes in the reply's buffer */
};

static void write_value(struct writer *writer);

/* A protocol line; line breaks in the text are replaced. */
static void write_line(struct writer *writer, const char *head, int index)
{
    size_t len, head_len = strlen(head);
    const char *text = lua_tolstring(writer->lua, index, &len);
    char *to = resp_reserve(writer->reply, head_len + len + 2);
    if (to == NULL)
        return;
    memcpy(to, head, head_len);
    to += head_len;
    for (size_t i = 0; i < len; i++)
        *to++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    memcpy(to, "\r\n", 2);
    writer->reply->len += head_len + len + 2;
}

static void write_big_number(struct writer *writer)
{
    char head[32] = "(";
    size_t len;
    lua_tolstring(writer->lua, -1, &len);
    if (writer->reply->version < 3)
        snprintf(head, sizeof head, "$%zu\r\n", len);
    write_line(writer, head, -1);
}

/* Pushes a field, without metamethods. False: it is not of the type, and was popped. */
static bool get_field(lua_State *lua, const char *name, int type)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    bool is_good = lua_type(lua, -1) == type;
    if (!is_good)
        lua_pop(lua, 1);
    return is_good;
}

static uint64_t count_pairs(lua_State *lua)
{
    uint64_t count = 0;
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1))
        count++;
    return count;
}

static void write_map(struct writer *writer)
{
    lua_State *lua = writer->lua;
    resp_map(writer->reply, count_pairs(lua));
    for (lua_pushnil(lua); lua_next(lua, -2) != 0;) {
        lua_pushvalue(lua, -2);
        write_value(writer); /* the copy of the key */
        write_value(writer); /* the value */
    }
}

static void write_set(struct writer *writer)
{
    lua_State *lua = writer->lua;
    resp_set(writer->reply, count_pairs(lua));
    for (lua_pushnil(lua); lua_next(lua, -2) != 0;) {
        lua_pop(lua, 1);
        lua_pushvalue(lua, -1);
        write_value(writer);
    }
}

static bool write_verbatim(struct writer *writer)
{
    lua_State *lua = writer->lua;
    size_t len;
    if (!get_field(lua, "format", LUA_TSTRING))
        return false;
    char format[4] = "   ";
    size_t format_len;
    const char *text = lua_tolstring(lua, -1, &format_len);
    memcpy(format, text, format_len < 3 ? format_len : 3);
    lua_pop(lua, 1);
    if (!get_field(lua, "string", LUA_TSTRING))
        return false;
    text = lua_tolstring(lua, -1, &len);
    resp_verbatim(writer->reply, format, text, len);
    lua_pop(lua, 1);
    return true;
}

/* A table that names its type. The caller must pop what it pushes. */
static bool write_named(struct writer *writer)
{
    lua_State *lua = writer->lua;
    if (get_field(lua, "err", LUA_TSTRING))
        write_line(writer, "-", -1);
    else if (get_field(lua, "ok", LUA_TSTRING))
        write_line(writer, "+", -1);
    else if (get_field(lua, "double", LUA_TNUMBER))
        resp_double(writer->reply, lua_tonumber(lua, -1));
    else if (get_field(lua, "map", LUA_TTABLE))
        write_map(writer);
    else if (get_field(lua, "set", LUA_TTABLE))
        write_set(writer);
    else if (get_field(lua, "big_number", LUA_TSTRING))
        write_big_number(writer);
    else
        return get_field(lua, "verbatim_string", LUA_TTABLE) && write_verbatim(writer);
    return true;
}

/* Writes the elements up to the first nil. The count is known only at the end, so its digits are
 * inserted before them. */
static void write_elements(struct writer *writer)
{
    lua_State *lua = writer->lua;
    int count = 0;
    for (;; count++) {
        lua_rawgeti(lua, -1, count + 1);
        bool is_end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (is_end)
            break;
    }
    resp_array(writer->reply, (uint64_t)count);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        write_value(writer);
    }
}

static void write_table(struct writer *writer)
{
    lua_State *lua = writer->lua;
    int top = lua_gettop(lua);
    if (script_is_sealed(lua, -1)) /* pushes the table behind it */
        top++;
    if (!write_named(writer)) {
        lua_settop(lua, top);
        write_elements(writer);
    }
    lua_settop(lua, top);
}

static void write_boolean(struct writer *writer, bool value)
{
    if (writer->script_resp >= 3)
        resp_boolean(writer->reply, value);
    else if (value)
        resp_integer(writer->reply, 1);
    else
        resp_null(writer->reply);
}

static void note_growth(struct writer *writer, size_t more)
{
    assert(writer->reply->len >= writer->before || writer->reply->failed);
    size_t bytes = writer->reply->len - writer->before + more;
    if (!script_note_reply(script_state_of(writer->lua), bytes))
        script_raise(writer->lua, "the script's reply is too large");
}

/* Pops the value. */
static void write_value(struct writer *writer)
{
    lua_State *lua = writer->lua;
    int top = lua_gettop(lua);
    assert(top > 0);
    if (!lua_checkstack(lua, 8))
        script_raise(lua, "reached lua stack limit");
    size_t len;
    const char *text;
    script_check_clock(lua);
    note_growth(writer, 0);
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &len);
        note_growth(writer, len);
        resp_bulk(writer->reply, text, len);
        break;
    case LUA_TNUMBER:
        resp_integer(writer->reply, script_to_int64(lua_tonumber(lua, -1)));
        break;
    case LUA_TBOOLEAN:
        write_boolean(writer, lua_toboolean(lua, -1));
        break;
    case LUA_TTABLE:
        write_table(writer);
        break;
    default:
        resp_null(writer->reply);
    }
    lua_settop(lua, top - 1);
}

void script_write_reply(lua_State *lua, struct call *call, uint8_t script_resp)
{
    struct writer writer = {
        .lua = lua, .reply = call->reply, .script_resp = script_resp, .before = call->reply->len};
    write_value(&writer);
}
