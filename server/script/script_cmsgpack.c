/*
 * `cmsgpack`: MessagePack as lua-cmsgpack writes and reads it. Tables with the keys 1 to n are
 * arrays. Tables nested deeper than sixteen levels become nil.
 */
#include "server/script/script_cmsgpack.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "server/script/script_busy.h"
#include "server/script/script_state.h"

#define NESTING_MAX 16

/* ---- packing ---- */

struct packer {
    lua_State *lua;
    struct resp_writer *out;
};

static void pack_value(struct packer *packer, int depth);

/* A head byte and a big-endian number of `size` bytes. */
static void put_head(struct packer *packer, unsigned head, uint64_t number, unsigned size)
{
    char bytes[9] = {(char)head};
    assert(size < sizeof bytes && head <= UINT8_MAX);
    for (unsigned i = 0; i < size; i++)
        bytes[1 + i] = (char)(number >> 8 * (size - 1 - i));
    resp_raw(packer->out, bytes, 1 + size);
    script_check_scratch(packer->lua);
}

static void pack_integer(struct packer *packer, int64_t number)
{
    uint64_t bits = (uint64_t)number;
    if (number >= -32 && number <= 127)
        put_head(packer, (unsigned)number & 0xff, 0, 0);
    else if (number >= 0)
        number <= UINT8_MAX    ? put_head(packer, 0xcc, bits, 1)
        : number <= UINT16_MAX ? put_head(packer, 0xcd, bits, 2)
        : number <= UINT32_MAX ? put_head(packer, 0xce, bits, 4)
                               : put_head(packer, 0xcf, bits, 8);
    else
        number >= INT8_MIN    ? put_head(packer, 0xd0, bits, 1)
        : number >= INT16_MIN ? put_head(packer, 0xd1, bits, 2)
        : number >= INT32_MIN ? put_head(packer, 0xd2, bits, 4)
                              : put_head(packer, 0xd3, bits, 8);
}

static void pack_number(struct packer *packer, lua_Number number)
{
    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 &&
        floor(number) == number) {
        pack_integer(packer, (int64_t)number);
        return;
    }
    float single = (float)number;
    uint64_t bits = 0;
    uint32_t single_bits;
    memcpy(&bits, &number, sizeof bits);
    memcpy(&single_bits, &single, sizeof single_bits);
    if ((double)single == number)
        put_head(packer, 0xca, single_bits, 4);
    else
        put_head(packer, 0xcb, bits, 8);
}

static void pack_string(struct packer *packer)
{
    size_t len;
    const char *text = lua_tolstring(packer->lua, -1, &len);
    if (len < 32)
        put_head(packer, 0xa0 | (unsigned)len, 0, 0);
    else if (len <= UINT8_MAX)
        put_head(packer, 0xd9, len, 1);
    else if (len <= UINT16_MAX)
        put_head(packer, 0xda, len, 2);
    else
        put_head(packer, 0xdb, len, 4);
    resp_raw(packer->out, text, len);
    script_check_scratch(packer->lua);
}

/* `fixed`: the head that includes a small count; `wide`: the head before a two-byte count. */
static void put_count(struct packer *packer, uint32_t count, unsigned fixed, unsigned wide)
{
    if (count < 16)
        put_head(packer, fixed | count, 0, 0);
    else if (count <= UINT16_MAX)
        put_head(packer, wide, count, 2);
    else
        put_head(packer, wide + 1, count, 4);
}

/* Counts the entries of the table on top. True: its keys are 1 to *count. */
static bool is_array(lua_State *lua, uint32_t *count)
{
    bool is_good = true;
    lua_Number most = 0;
    *count = 0;
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
        lua_Number key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
        is_good = is_good && key >= 1 && floor(key) == key;
        most = key > most ? key : most;
        ++*count;
    }
    return is_good && most == *count;
}

static void pack_table(struct packer *packer, int depth)
{
    lua_State *lua = packer->lua;
    uint32_t count;
    luaL_checkstack(lua, 6, "too many nested tables");
    if (depth >= NESTING_MAX) {
        put_head(packer, 0xc0, 0, 0);
    } else if (is_array(lua, &count)) {
        put_count(packer, count, 0x90, 0xdc);
        for (uint32_t i = 1; i <= count; i++) {
            lua_rawgeti(lua, -1, (int)i);
            pack_value(packer, depth + 1);
        }
    } else {
        put_count(packer, count, 0x80, 0xde);
        for (lua_pushnil(lua); lua_next(lua, -2) != 0;) {
            lua_pushvalue(lua, -2);
            pack_value(packer, depth + 1);
            pack_value(packer, depth + 1);
        }
    }
}

/* Pops the value. */
static void pack_value(struct packer *packer, int depth)
{
    lua_State *lua = packer->lua;
    script_check_clock(lua);
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        pack_string(packer);
        break;
    case LUA_TBOOLEAN:
        put_head(packer, lua_toboolean(lua, -1) ? 0xc3 : 0xc2, 0, 0);
        break;
    case LUA_TNUMBER:
        pack_number(packer, lua_tonumber(lua, -1));
        break;
    case LUA_TTABLE:
        pack_table(packer, depth);
        break;
    default:
        put_head(packer, 0xc0, 0, 0);
    }
    lua_pop(lua, 1);
}

static int msgpack_pack(lua_State *lua)
{
    int count = lua_gettop(lua);
    if (count == 0)
        return luaL_argerror(lua, 0, "MessagePack pack needs input.");
    luaL_checkstack(lua, 4, "too many arguments");
    struct packer packer = {.lua = lua, .out = script_scratch(lua)};
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(lua, i);
        pack_value(&packer, 0);
    }
    script_push_scratch(lua);
    return 1;
}

/* ---- unpacking ---- */

struct unpacker {
    lua_State *lua;
    const unsigned char *at, *end;
};

static void unpack_value(struct unpacker *unpacker);

static void need(struct unpacker *unpacker, uint64_t size)
{
    if ((uint64_t)(unpacker->end - unpacker->at) < size)
        luaL_error(unpacker->lua, "Missing bytes in input.");
}

static uint64_t take_number(struct unpacker *unpacker, unsigned size)
{
    uint64_t number = 0;
    need(unpacker, size);
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | *unpacker->at++;
    return number;
}

static void unpack_string(struct unpacker *unpacker, uint64_t len)
{
    need(unpacker, len);
    lua_pushlstring(unpacker->lua, (const char *)unpacker->at, (size_t)len);
    unpacker->at += len;
}

static void unpack_array(struct unpacker *unpacker, uint64_t count)
{
    lua_newtable(unpacker->lua);
    for (uint64_t i = 1; i <= count; i++) {
        unpack_value(unpacker);
        lua_rawseti(unpacker->lua, -2, (int)i);
    }
}

static void unpack_map(struct unpacker *unpacker, uint64_t count)
{
    lua_State *lua = unpacker->lua;
    lua_newtable(lua);
    for (uint64_t i = 0; i < count; i++) {
        unpack_value(unpacker);
        unpack_value(unpacker);
        lua_rawset(lua, -3); /* raises the error for an invalid key */
    }
}

static void unpack_float(struct unpacker *unpacker, unsigned size)
{
    uint64_t bits = take_number(unpacker, size);
    uint32_t single_bits = (uint32_t)bits;
    float single;
    double number;
    memcpy(&single, &single_bits, sizeof single);
    memcpy(&number, &bits, sizeof number);
    lua_pushnumber(unpacker->lua, size == sizeof single ? single : number);
}

static void unpack_signed(struct unpacker *unpacker, unsigned size)
{
    unsigned spare = 64 - 8 * size;
    int64_t number = (int64_t)(take_number(unpacker, size) << spare) >> spare;
    lua_pushnumber(unpacker->lua, (lua_Number)number);
}

/* Heads from 0xc0 to 0xdf. */
static void unpack_long(struct unpacker *unpacker, unsigned head)
{
    lua_State *lua = unpacker->lua;
    if (head == 0xc0)
        lua_pushnil(lua);
    else if (head == 0xc2 || head == 0xc3)
        lua_pushboolean(lua, head == 0xc3);
    else if (head == 0xca || head == 0xcb)
        unpack_float(unpacker, head == 0xca ? 4 : 8);
    else if (head >= 0xcc && head <= 0xcf) /* 8-byte ones are read as signed */
        lua_pushnumber(lua, (lua_Number)(int64_t)take_number(unpacker, 1u << (head - 0xcc)));
    else if (head >= 0xd0 && head <= 0xd3)
        unpack_signed(unpacker, 1u << (head - 0xd0));
    else if (head >= 0xd9 && head <= 0xdb)
        unpack_string(unpacker, take_number(unpacker, 1u << (head - 0xd9)));
    else if (head == 0xdc || head == 0xdd)
        unpack_array(unpacker, take_number(unpacker, head == 0xdc ? 2 : 4));
    else if (head == 0xde || head == 0xdf)
        unpack_map(unpacker, take_number(unpacker, head == 0xde ? 2 : 4));
    else
        luaL_error(lua, "Bad data format in input.");
}

static void unpack_value(struct unpacker *unpacker)
{
    lua_State *lua = unpacker->lua;
    script_check_clock(lua);
    need(unpacker, 1);
    luaL_checkstack(lua, 5, "too many nested values");
    unsigned head = *unpacker->at++;
    if (head < 0x80)
        lua_pushinteger(lua, (lua_Integer)head);
    else if (head < 0x90)
        unpack_map(unpacker, head & 15);
    else if (head < 0xa0)
        unpack_array(unpacker, head & 15);
    else if (head < 0xc0)
        unpack_string(unpacker, head & 31);
    else if (head < 0xe0)
        unpack_long(unpacker, head);
    else
        lua_pushinteger(lua, (lua_Integer)head - 256);
}

/* Decodes up to `limit` values from `offset` on; all if both are 0. Unless all are wanted, pushes
 * the offset of the next one first, or -1 at the end. */
static int unpack_from(lua_State *lua, lua_Number limit, lua_Number offset)
{
    size_t len;
    const char *data = luaL_checklstring(lua, 1, &len);
    if (!(offset >= 0) || !(limit >= 0))
        return luaL_error(lua, "Invalid request to unpack with offset of %f and limit of %f.",
                          offset, (lua_Number)len);
    if (offset > (lua_Number)len)
        return luaL_error(lua, "Start offset %f greater than input length %f.", offset,
                          (lua_Number)len);
    struct unpacker unpacker = {.lua = lua,
                                .at = (const unsigned char *)data + (size_t)offset,
                                .end = (const unsigned char *)data + len};
    bool is_all = limit == 0 && offset == 0;
    int count = 0;
    lua_settop(lua, 1);
    while (unpacker.at < unpacker.end && (is_all || count < limit)) {
        unpack_value(&unpacker);
        count++;
    }
    if (is_all)
        return count;
    bool is_end = unpacker.at == unpacker.end;
    lua_pushnumber(lua, is_end ? -1 : (lua_Number)(unpacker.at - (const unsigned char *)data));
    lua_insert(lua, 2);
    return count + 1;
}

static int msgpack_unpack(lua_State *lua)
{
    return unpack_from(lua, 0, 0);
}

static int msgpack_unpack_one(lua_State *lua)
{
    return unpack_from(lua, 1, luaL_optnumber(lua, 2, 0));
}

static int msgpack_unpack_limit(lua_State *lua)
{
    return unpack_from(lua, luaL_checknumber(lua, 2), luaL_optnumber(lua, 3, 0));
}

void script_open_cmsgpack(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"pack", msgpack_pack},
                                         {"unpack", msgpack_unpack},
                                         {"unpack_one", msgpack_unpack_one},
                                         {"unpack_limit", msgpack_unpack_limit},
                                         {NULL, NULL}};
    lua_newtable(lua);
    luaL_register(lua, NULL, functions);
    lua_pushliteral(lua, "cmsgpack");
    lua_setfield(lua, -2, "_NAME");
    lua_pushliteral(lua, "lua-cmsgpack 0.4.0");
    lua_setfield(lua, -2, "_VERSION");
}
