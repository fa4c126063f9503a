/*
 * `bit`: operations on 32-bit integers, as LuaBitOp defines them. Numbers are taken modulo 2^32
 * and results are signed.
 */
#include "server/script/script_bit.h"

#include <lauxlib.h>
#include <math.h>
#include <stdint.h>

static uint32_t check_bits(lua_State *lua, int index)
{
    double number = fmod(nearbyint(luaL_checknumber(lua, index)), 4294967296.0);
    if (isnan(number))
        return 0;
    return (uint32_t)(int64_t)number;
}

static int push_bits(lua_State *lua, uint32_t bits)
{
    lua_pushnumber(lua, (lua_Number)(int32_t)bits);
    return 1;
}

static int bit_tobit(lua_State *lua)
{
    return push_bits(lua, check_bits(lua, 1));
}

static int bit_bnot(lua_State *lua)
{
    return push_bits(lua, ~check_bits(lua, 1));
}

static int bit_band(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    for (int i = lua_gettop(lua); i > 1; i--)
        bits &= check_bits(lua, i);
    return push_bits(lua, bits);
}

static int bit_bor(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    for (int i = lua_gettop(lua); i > 1; i--)
        bits |= check_bits(lua, i);
    return push_bits(lua, bits);
}

static int bit_bxor(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    for (int i = lua_gettop(lua); i > 1; i--)
        bits ^= check_bits(lua, i);
    return push_bits(lua, bits);
}

static int bit_lshift(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    return push_bits(lua, bits << (check_bits(lua, 2) & 31));
}

static int bit_rshift(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    return push_bits(lua, bits >> (check_bits(lua, 2) & 31));
}

static int bit_arshift(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1), by = check_bits(lua, 2) & 31;
    uint32_t sign = bits >> 31 != 0 && by != 0 ? ~0u << (32 - by) : 0;
    return push_bits(lua, bits >> by | sign);
}

static uint32_t rotate(uint32_t bits, uint32_t by)
{
    return by == 0 ? bits : bits << by | bits >> (32 - by);
}

static int bit_rol(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    return push_bits(lua, rotate(bits, check_bits(lua, 2) & 31));
}

static int bit_ror(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    return push_bits(lua, rotate(bits, -check_bits(lua, 2) & 31));
}

static int bit_bswap(lua_State *lua)
{
    return push_bits(lua, __builtin_bswap32(check_bits(lua, 1)));
}

/* The number of digits is optional; a negative one selects capital letters. */
static int bit_tohex(lua_State *lua)
{
    uint32_t bits = check_bits(lua, 1);
    int32_t count = lua_isnone(lua, 2) ? 8 : (int32_t)check_bits(lua, 2);
    const char *digits = count < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[8];
    if (count < 0)
        count = count < -8 ? 8 : -count;
    if (count > 8)
        count = 8;
    for (int32_t i = count; i-- > 0; bits >>= 4)
        text[i] = digits[bits & 15];
    lua_pushlstring(lua, text, (size_t)count);
    return 1;
}

void script_open_bit(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"tobit", bit_tobit},
                                         {"bnot", bit_bnot},
                                         {"band", bit_band},
                                         {"bor", bit_bor},
                                         {"bxor", bit_bxor},
                                         {"lshift", bit_lshift},
                                         {"rshift", bit_rshift},
                                         {"arshift", bit_arshift},
                                         {"rol", bit_rol},
                                         {"ror", bit_ror},
                                         {"bswap", bit_bswap},
                                         {"tohex", bit_tohex},
                                         {NULL, NULL}};
    lua_newtable(lua);
    luaL_register(lua, NULL, functions);
}
