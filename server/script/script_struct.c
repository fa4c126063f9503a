/*
 * `struct`: packs values into bytes and unpacks them, by a format:
 *
 *     > < !       byte order; alignment to the size given after '!'
 *     b B h H l L T i I    integers of 1, 2, 8, size_t's and 4 bytes; i and I may be followed by
 *                 a size; capitals are unsigned
 *     f d         numbers; s: a zero-terminated string; c and a number: that many characters
 *     x           a zero byte; a blank is ignored
 */
#include "server/script/script_struct.h"

#include <assert.h>
#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "server/script/script_busy.h"
#include "server/script/script_state.h"
#include "server/script/script_value.h"

#define INTEGER_MAX 32
#define ALIGN_NATIVE 8
#define LETTERS_BETWEEN_CHECKS 64

struct format {
    lua_State *lua;
    const char *at;
    bool is_little;
    size_t align;     /* most */
    uint32_t letters; /* since the last check of the clock */
};

struct item {
    char kind;
    size_t size, padding; /* the padding before it */
};

/* Called for every letter: a format may be as long as memory allows. */
static void check_clock(struct format *format)
{
    if (++format->letters < LETTERS_BETWEEN_CHECKS)
        return;
    format->letters = 0;
    script_check_clock(format->lua);
}

static size_t read_size(struct format *format, size_t otherwise)
{
    if (!isdigit((unsigned char)*format->at))
        return otherwise;
    size_t size = 0;
    for (; isdigit((unsigned char)*format->at); format->at++) {
        check_clock(format);
        size = size * 10 + (size_t)(*format->at - '0');
        if (size > INT32_MAX)
            luaL_error(format->lua, "integral size overflow");
    }
    return size;
}

static size_t size_of(struct format *format, char kind)
{
    switch (kind) {
    case 'b':
    case 'B':
    case 'x':
        return 1;
    case 'h':
    case 'H':
        return 2;
    case 'l':
    case 'L':
    case 'T':
    case 'd':
        return 8;
    case 'f':
        return 4;
    case 'c':
        return read_size(format, 1);
    case 'i':
    case 'I':
        break;
    default:
        return 0;
    }
    size_t size = read_size(format, 4);
    if (size > INTEGER_MAX)
        luaL_error(format->lua, "integral size %d is larger than limit of %d", (int)size,
                   INTEGER_MAX);
    return size;
}

static void set_order(struct format *format, char kind)
{
    if (kind == '!') {
        size_t align = read_size(format, ALIGN_NATIVE);
        if (align == 0 || (align & (align - 1)) != 0)
            luaL_error(format->lua, "alignment is not a power of 2");
        format->align = align;
    } else if (kind != ' ') {
        format->is_little = kind != '>';
    }
}

/* The next item, at `offset`. False: the end of the format. */
static bool next_item(struct format *format, size_t offset, struct item *item)
{
    check_clock(format);
    while (*format->at != '\0' && strchr("><! ", *format->at) != NULL) {
        set_order(format, *format->at++);
        check_clock(format);
    }
    if (*format->at == '\0')
        return false;
    item->kind = *format->at++;
    item->size = size_of(format, item->kind);
    item->padding = 0;
    if (item->size > 1 && item->kind != 'c') {
        /* As a mask, also for sizes that are no power of two. */
        size_t align = item->size < format->align ? item->size : format->align;
        if (align > 1)
            item->padding = (align - (offset & (align - 1))) & (align - 1);
    }
    return true;
}

static int bad_item(struct format *format, char kind)
{
    lua_pushfstring(format->lua, "invalid format option '%c'", kind);
    return luaL_argerror(format->lua, 1, lua_tostring(format->lua, -1));
}

static struct format begin(lua_State *lua)
{
    return (struct format){
        .lua = lua, .at = luaL_checkstring(lua, 1), .is_little = true, .align = 1};
}

/* ---- pack ---- */

static void put_integer(struct format *format, struct resp_writer *out, lua_Number number,
                        size_t size)
{
    char bytes[INTEGER_MAX];
    assert(size <= sizeof bytes);
    uint64_t bits = number < 0                         ? (uint64_t)script_to_int64(number)
                    : number >= 18446744073709551616.0 ? 0
                                                       : (uint64_t)number;
    for (size_t i = 0; i < size; i++) {
        size_t place = format->is_little ? i : size - 1 - i;
        bytes[place] = (char)(i < 8 ? bits >> 8 * i : number < 0 ? 0xff : 0);
    }
    resp_raw(out, bytes, size);
}

static void put_bytes(struct format *format, struct resp_writer *out, const void *value,
                      size_t size)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[format->is_little ? i : size - 1 - i] = ((const char *)value)[i];
    resp_raw(out, bytes, size);
}

static void put_item(struct format *format, struct resp_writer *out, const struct item *item,
                     int *arg)
{
    lua_State *lua = format->lua;
    size_t len;
    const char *text;
    switch (item->kind) {
    case 'f': {
        float number = (float)luaL_checknumber(lua, (*arg)++);
        put_bytes(format, out, &number, sizeof number);
        break;
    }
    case 'd': {
        double number = luaL_checknumber(lua, (*arg)++);
        put_bytes(format, out, &number, sizeof number);
        break;
    }
    case 's':
    case 'c':
        text = luaL_checklstring(lua, *arg, &len);
        size_t wanted = item->kind == 's' || item->size == 0 ? len : item->size;
        ++*arg; /* as in Redis, the next argument's number is reported */
        luaL_argcheck(lua, len >= wanted, *arg, "string too short");
        resp_raw(out, text, wanted + (item->kind == 's')); /* including its zero byte */
        break;
    case 'x':
        resp_raw(out, "", 1);
        break;
    default:
        if (strchr("bBhHlLTiI", item->kind) == NULL)
            bad_item(format, item->kind);
        put_integer(format, out, luaL_checknumber(lua, (*arg)++), item->size);
    }
}

static int struct_pack(lua_State *lua)
{
    static const char zeros[INTEGER_MAX];
    struct format format = begin(lua);
    struct resp_writer *out = script_scratch(lua);
    struct item item;
    lua_pushnil(lua); /* messages report a missing argument as nil */
    for (int arg = 2; next_item(&format, out->len, &item);) {
        resp_raw(out, zeros, item.padding);
        put_item(&format, out, &item, &arg);
        script_check_scratch(lua);
    }
    script_push_scratch(lua);
    return 1;
}

/* ---- unpack ---- */

static void push_integer(struct format *format, const char *from, const struct item *item)
{
    uint64_t bits = 0;
    size_t used = item->size < 8 ? item->size : 8;
    for (size_t i = 0; i < used; i++) {
        size_t place = format->is_little ? i : item->size - 1 - i;
        bits |= (uint64_t)(unsigned char)from[place] << 8 * i;
    }
    if (islower((unsigned char)item->kind)) {
        unsigned spare = 64 - 8 * (unsigned)used;
        lua_pushnumber(format->lua, (lua_Number)((int64_t)(bits << spare) >> spare));
    } else {
        lua_pushnumber(format->lua, (lua_Number)bits);
    }
}

static void push_float(struct format *format, const char *from, size_t size)
{
    char bytes[8] = {0};
    float single;
    double number;
    for (size_t i = 0; i < size; i++)
        bytes[format->is_little ? i : size - 1 - i] = from[i];
    memcpy(&single, bytes, sizeof single);
    memcpy(&number, bytes, sizeof number);
    lua_pushnumber(format->lua, size == sizeof single ? single : number);
}

/* Pushes the value at `from`, unless the item is 'x'. Returns its size in bytes. `count`: values so
 * far. */
static size_t take_item(struct format *format, const struct item *item, const char *from,
                        size_t left, int *count)
{
    lua_State *lua = format->lua;
    size_t size = item->size;
    if (item->kind == 'c' && size == 0) { /* the previous value is the length */
        if (*count == 0 || !lua_isnumber(lua, -1))
            luaL_error(lua, "format 'c0' needs a previous size");
        lua_Number wanted = lua_tonumber(lua, -1);
        size = wanted >= 0 && wanted <= (lua_Number)left ? (size_t)wanted : left + 1;
        lua_pop(lua, 1);
        --*count;
    }
    if (item->kind == 's') {
        const char *end = memchr(from, '\0', left);
        if (end == NULL)
            luaL_error(lua, "unfinished string in data");
        size = (size_t)(end - from) + 1;
    }
    luaL_argcheck(lua, size <= left, 2, "data string too short");
    luaL_checkstack(lua, 2, "too many results");
    ++*count;
    if (item->kind == 's') {
        lua_pushlstring(lua, from, size - 1);
    } else if (item->kind == 'c') {
        lua_pushlstring(lua, from, size);
    } else if (item->kind == 'f' || item->kind == 'd') {
        push_float(format, from, size);
    } else if (item->kind == 'x') {
        --*count;
    } else {
        if (size == 0 || strchr("bBhHlLTiI", item->kind) == NULL)
            bad_item(format, item->kind);
        push_integer(format, from, item);
    }
    return size;
}

static int struct_unpack(lua_State *lua)
{
    struct format format = begin(lua);
    size_t len;
    const char *data = luaL_checklstring(lua, 2, &len);
    lua_Number first = luaL_optnumber(lua, 3, 1);
    luaL_argcheck(lua, first <= -1 || first >= 1, 3, "offset must be 1 or greater");
    size_t at = first < 0 || first - 1 > (lua_Number)len ? len : (size_t)(first - 1);
    struct item item;
    int count = 0;
    lua_settop(lua, 2);
    while (next_item(&format, at, &item)) {
        luaL_argcheck(lua, item.padding <= len - at, 2, "data string too short");
        at += item.padding;
        at += take_item(&format, &item, data + at, len - at, &count);
    }
    lua_pushnumber(lua, (lua_Number)at + 1);
    return count + 1;
}

static int struct_size(lua_State *lua)
{
    struct format format = begin(lua);
    struct item item;
    lua_Number total = 0;
    while (next_item(&format, (size_t)total, &item)) {
        luaL_argcheck(lua, item.kind != 's', 1, "option 's' has no fixed size");
        luaL_argcheck(lua, item.kind != 'c' || item.size > 0, 1, "option 'c0' has no fixed size");
        if (item.size == 0 && !isalnum((unsigned char)item.kind))
            bad_item(&format, item.kind);
        total += (lua_Number)(item.padding + item.size);
        luaL_argcheck(lua, total <= INT32_MAX, 1, "format result too large");
    }
    lua_pushnumber(lua, total);
    return 1;
}

void script_open_struct(lua_State *lua)
{
    static const luaL_Reg functions[] = {
        {"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}, {NULL, NULL}};
    lua_newtable(lua);
    luaL_register(lua, NULL, functions);
}
