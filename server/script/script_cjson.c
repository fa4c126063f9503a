/*
 * `cjson`: JSON with the options, limits and messages of lua-cjson. Options last for one run.
 */
#include "server/script/script_cjson.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/script/script_busy.h"
#include "server/script/script_state.h"

/* ---- encoding ---- */

#define STRING_PIECE ((size_t)64 * 1024) /* bytes of a string between two looks at the clock */

struct encoder {
    lua_State *lua;
    struct resp_writer *out;
    const struct script_json *options;
};

static void encode_value(struct encoder *encoder, int depth);

static void put(struct encoder *encoder, const char *bytes, size_t len)
{
    resp_raw(encoder->out, bytes, len);
    script_check_scratch(encoder->lua);
}

/* Writes at most six bytes for one; returns the end. */
static char *encode_bytes(char *to, const char *text, size_t len)
{
    static const char plain[] = "\"\\/\b\f\n\r\t", letters[] = "\"\\/bfnrt";
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        const char *found = byte == 0 ? NULL : strchr(plain, byte);
        if (found != NULL) {
            *to++ = '\\';
            *to++ = letters[found - plain];
        } else if (byte < ' ' || byte == 127) {
            memcpy(to, "\\u00", 4);
            to[4] = digits[byte >> 4];
            to[5] = digits[byte & 15];
            to += 6;
        } else {
            *to++ = (char)byte;
        }
    }
    return to;
}

static void encode_string(struct encoder *encoder, int index)
{
    size_t len;
    const char *text = lua_tolstring(encoder->lua, index, &len);
    put(encoder, "\"", 1);
    while (len > 0) {
        size_t piece = len < STRING_PIECE ? len : STRING_PIECE;
        char *start = resp_reserve(encoder->out, 6 * piece);
        if (start == NULL)
            luaL_error(encoder->lua, "not enough memory");
        encoder->out->len += (size_t)(encode_bytes(start, text, piece) - start);
        text += piece;
        len -= piece;
        script_check_scratch(encoder->lua);
        if (len > 0)
            script_check_interrupt(encoder->lua);
    }
    put(encoder, "\"", 1);
}

static int refuse(struct encoder *encoder, int index, const char *reason)
{
    return luaL_error(encoder->lua, "Cannot serialise %s: %s", luaL_typename(encoder->lua, index),
                      reason);
}

static void encode_number(struct encoder *encoder, int index)
{
    lua_Number number = lua_tonumber(encoder->lua, index);
    char text[64];
    if (!isfinite(number)) {
        if (encoder->options->encode_invalid == SCRIPT_JSON_REFUSED)
            refuse(encoder, index, "must not be NaN or Inf");
        if (encoder->options->encode_invalid == SCRIPT_JSON_NULL) {
            put(encoder, "null", 4);
            return;
        }
    }
    int len = snprintf(text, sizeof text, "%.*g", encoder->options->precision, number);
    assert(len > 0 && (size_t)len < sizeof text);
    put(encoder, text, (size_t)len);
}

/* Its length as an array; -1: it is not one. */
static int64_t array_length(struct encoder *encoder)
{
    lua_State *lua = encoder->lua;
    const struct script_json *options = encoder->options;
    lua_Number most = 0, count = 0;
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
        lua_Number key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
        if (key < 1 || floor(key) != key) {
            lua_pop(lua, 2);
            return -1;
        }
        most = key > most ? key : most;
        count++;
    }
    bool is_sparse = options->sparse_ratio > 0 && most > count * options->sparse_ratio &&
                     most > options->sparse_safe;
    if (is_sparse && !options->sparse_converts)
        refuse(encoder, -1, "excessively sparse array");
    return is_sparse || most > INT32_MAX ? -1 : (int64_t)most;
}

static void encode_array(struct encoder *encoder, int64_t len, int depth)
{
    put(encoder, "[", 1);
    for (int64_t i = 1; i <= len; i++) {
        if (i > 1)
            put(encoder, ",", 1);
        lua_rawgeti(encoder->lua, -1, (int)i);
        encode_value(encoder, depth);
        lua_pop(encoder->lua, 1);
    }
    put(encoder, "]", 1);
}

static void encode_key(struct encoder *encoder)
{
    lua_State *lua = encoder->lua;
    if (lua_type(lua, -2) == LUA_TNUMBER) {
        put(encoder, "\"", 1);
        encode_number(encoder, -2);
        put(encoder, "\":", 2);
    } else if (lua_type(lua, -2) == LUA_TSTRING) {
        encode_string(encoder, -2);
        put(encoder, ":", 1);
    } else {
        refuse(encoder, -2, "table key must be a number or string");
    }
}

static void encode_object(struct encoder *encoder, int depth)
{
    lua_State *lua = encoder->lua;
    bool is_first = true;
    put(encoder, "{", 1);
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
        if (!is_first)
            put(encoder, ",", 1);
        is_first = false;
        encode_key(encoder);
        encode_value(encoder, depth);
    }
    put(encoder, "}", 1);
}

static void encode_table(struct encoder *encoder, int depth)
{
    lua_State *lua = encoder->lua;
    if (depth > encoder->options->encode_depth || !lua_checkstack(lua, 6))
        luaL_error(lua, "Cannot serialise, excessive nesting (%d)", depth);
    int64_t len = array_length(encoder);
    if (len > 0)
        encode_array(encoder, len, depth);
    else
        encode_object(encoder, depth);
}

/* The value on top of the stack. */
static void encode_value(struct encoder *encoder, int depth)
{
    lua_State *lua = encoder->lua;
    script_check_clock(lua);
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        encode_string(encoder, -1);
        break;
    case LUA_TNUMBER:
        encode_number(encoder, -1);
        break;
    case LUA_TBOOLEAN:
        put(encoder, lua_toboolean(lua, -1) ? "true" : "false", lua_toboolean(lua, -1) ? 4 : 5);
        break;
    case LUA_TTABLE:
        encode_table(encoder, depth + 1);
        break;
    case LUA_TNIL:
        put(encoder, "null", 4);
        break;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(lua, -1) == NULL)
            put(encoder, "null", 4);
        else
            refuse(encoder, -1, "type not supported");
        break;
    default:
        refuse(encoder, -1, "type not supported");
    }
}

static int json_encode(lua_State *lua)
{
    luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
    struct encoder encoder = {
        .lua = lua, .out = script_scratch(lua), .options = &script_state_of(lua)->json};
    encode_value(&encoder, 0);
    script_push_scratch(lua);
    return 1;
}

/* ---- decoding: tokens ---- */

enum token {
    TOKEN_OBJECT,
    TOKEN_OBJECT_END,
    TOKEN_ARRAY,
    TOKEN_ARRAY_END,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NULL,
    TOKEN_COLON,
    TOKEN_COMMA,
    TOKEN_END,
    TOKEN_ERROR,
};

struct decoder {
    lua_State *lua;
    const char *start, *at, *end;
    const struct script_json *options;
    int depth;
    enum token token;
    const char *token_at; /* or where the error is */
    const char *problem;  /* of TOKEN_ERROR */
    double number;
};

static void fail_token(struct decoder *decoder, const char *problem)
{
    decoder->token = TOKEN_ERROR;
    decoder->problem = problem;
}

static bool take_word(struct decoder *decoder, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(decoder->end - decoder->at) < len || memcmp(decoder->at, word, len) != 0)
        return false;
    decoder->at += len;
    return true;
}

/* Lua's strings are NUL-terminated. */
static void read_number(struct decoder *decoder)
{
    const char *digits = decoder->at + (*decoder->at == '-');
    char *end;
    bool is_plain = *digits >= '0' && *digits <= '9' &&
                    (*digits != '0' || (digits[1] | 0x20) != 'x') &&
                    !(*digits == '0' && digits[1] >= '0' && digits[1] <= '9');
    if (!is_plain && !decoder->options->decode_invalid) {
        fail_token(decoder, "invalid number");
        return;
    }
    decoder->number = strtod(decoder->at, &end);
    if (end == decoder->at) {
        fail_token(decoder, "invalid number");
        return;
    }
    decoder->at = end;
    decoder->token = TOKEN_NUMBER;
}

/* Whether a number begins here; what follows decides whether it is a sound one. */
static bool is_number(const struct decoder *decoder)
{
    const char *at = decoder->at;
    if (*at == '-' || (*at >= '0' && *at <= '9'))
        return true;
    return decoder->options->decode_invalid &&
           (*at == '+' || strncasecmp(at, "inf", 3) == 0 || strncasecmp(at, "nan", 3) == 0);
}

static int read_hex(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = (char)(at[i] | 0x20);
        if (at[i] >= '0' && at[i] <= '9')
            value = value * 16 + at[i] - '0';
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + c - 'a' + 10;
        else
            return -1;
    }
    return value;
}

static void put_utf8(struct resp_writer *out, unsigned code)
{
    char bytes[4];
    assert(code < 0x110000);
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (char)(heads[len] | code);
    resp_raw(out, bytes, len);
}

/* After "\u". */
static bool read_unicode(struct decoder *decoder, struct resp_writer *out)
{
    int code = read_hex(decoder->at, decoder->end);
    if (code < 0 || (code >= 0xdc00 && code < 0xe000))
        return false;
    decoder->at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(decoder, "\\u"))
            return false;
        int low = read_hex(decoder->at, decoder->end);
        if (low < 0xdc00 || low >= 0xe000)
            return false;
        decoder->at += 4;
        code = 0x10000 + (code - 0xd800) * 1024 + (low - 0xdc00);
    }
    put_utf8(out, (unsigned)code);
    return true;
}

static const char *read_escape(struct decoder *decoder, struct resp_writer *out)
{
    static const char letters[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    char c = decoder->at < decoder->end ? *decoder->at++ : '\0';
    if (c == 'u')
        return read_unicode(decoder, out) ? NULL : "invalid unicode escape code";
    const char *found = c == '\0' ? NULL : strchr(letters, c);
    if (found == NULL)
        return "invalid escape code";
    resp_raw(out, &plain[found - letters], 1);
    return NULL;
}

/* Leaves the string in the scratch buffer. */
static void read_string(struct decoder *decoder)
{
    struct resp_writer *out = script_scratch(decoder->lua);
    const char *problem = NULL;
    for (decoder->at++; problem == NULL;) {
        const char *from = decoder->at;
        while (*decoder->at != '\0' && *decoder->at != '"' && *decoder->at != '\\')
            decoder->at++;
        resp_raw(out, from, (size_t)(decoder->at - from));
        const char *stop = decoder->at;
        if (*stop == '\0') {
            problem = "unexpected end of string";
        } else if (*decoder->at++ == '"') {
            decoder->token = TOKEN_STRING;
            return;
        } else {
            problem = read_escape(decoder, out);
        }
        decoder->token_at = stop;
    }
    fail_token(decoder, problem);
}

static void next_token(struct decoder *decoder)
{
    static const char signs[] = "{}[]", more[] = ":,";
    decoder->at += strspn(decoder->at, " \t\r\n");
    decoder->token_at = decoder->at;
    char c = *decoder->at; /* a NUL ends the text, too */
    const char *sign = c == '\0' ? NULL : strchr(signs, c), *other = strchr(more, c);
    if (c == '\0') {
        decoder->token = TOKEN_END;
    } else if (sign != NULL) {
        decoder->token = (enum token)(sign - signs);
        decoder->at++;
    } else if (other != NULL) {
        decoder->token = c == ':' ? TOKEN_COLON : TOKEN_COMMA;
        decoder->at++;
    } else if (c == '"') {
        read_string(decoder);
    } else if (take_word(decoder, "true")) {
        decoder->token = TOKEN_TRUE;
    } else if (take_word(decoder, "false")) {
        decoder->token = TOKEN_FALSE;
    } else if (take_word(decoder, "null")) {
        decoder->token = TOKEN_NULL;
    } else if (is_number(decoder)) {
        read_number(decoder);
    } else {
        fail_token(decoder, "invalid token");
    }
}

/* ---- decoding: values ---- */

static int fail(struct decoder *decoder, const char *expected)
{
    static const char *const names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                        "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_BOOLEAN",
                                        "T_NULL",      "T_COLON",   "T_COMMA",     "T_END"};
    assert(decoder->token < sizeof names / sizeof *names || decoder->token == TOKEN_ERROR);
    const char *found = decoder->token == TOKEN_ERROR ? decoder->problem : names[decoder->token];
    return luaL_error(decoder->lua, "Expected %s but found %s at character %d", expected, found,
                      (int)(decoder->token_at - decoder->start) + 1);
}

static void decode_value(struct decoder *decoder);

static void go_down(struct decoder *decoder)
{
    if (++decoder->depth > decoder->options->decode_depth || !lua_checkstack(decoder->lua, 6))
        luaL_error(decoder->lua, "Found too many nested data structures (%d) at character %d",
                   decoder->depth, (int)(decoder->at - decoder->start));
}

static void decode_object(struct decoder *decoder)
{
    lua_State *lua = decoder->lua;
    go_down(decoder);
    lua_newtable(lua);
    next_token(decoder);
    while (decoder->token != TOKEN_OBJECT_END) {
        if (decoder->token != TOKEN_STRING)
            fail(decoder, "object key string");
        script_push_scratch(lua);
        next_token(decoder);
        if (decoder->token != TOKEN_COLON)
            fail(decoder, "colon");
        next_token(decoder);
        decode_value(decoder);
        lua_rawset(lua, -3);
        next_token(decoder);
        if (decoder->token == TOKEN_OBJECT_END)
            break;
        if (decoder->token != TOKEN_COMMA)
            fail(decoder, "comma or object end");
        next_token(decoder);
        if (decoder->token == TOKEN_OBJECT_END)
            fail(decoder, "object key string");
    }
    decoder->depth--;
}

static void decode_array(struct decoder *decoder)
{
    lua_State *lua = decoder->lua;
    go_down(decoder);
    lua_newtable(lua);
    next_token(decoder);
    for (int i = 1; decoder->token != TOKEN_ARRAY_END; i++) {
        decode_value(decoder);
        lua_rawseti(lua, -2, i);
        next_token(decoder);
        if (decoder->token == TOKEN_ARRAY_END)
            break;
        if (decoder->token != TOKEN_COMMA)
            fail(decoder, "comma or array end");
        next_token(decoder);
        if (decoder->token == TOKEN_ARRAY_END)
            fail(decoder, "value");
    }
    decoder->depth--;
}

static void decode_value(struct decoder *decoder)
{
    lua_State *lua = decoder->lua;
    script_check_clock(lua);
    switch (decoder->token) {
    case TOKEN_STRING:
        script_push_scratch(lua);
        break;
    case TOKEN_NUMBER:
        lua_pushnumber(lua, decoder->number);
        break;
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        lua_pushboolean(lua, decoder->token == TOKEN_TRUE);
        break;
    case TOKEN_NULL:
        lua_pushlightuserdata(lua, NULL);
        break;
    case TOKEN_OBJECT:
        decode_object(decoder);
        break;
    case TOKEN_ARRAY:
        decode_array(decoder);
        break;
    default:
        fail(decoder, "value");
    }
}

static int json_decode(lua_State *lua)
{
    size_t len;
    luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
    const char *text = luaL_checklstring(lua, 1, &len);
    if (len >= 2 && (text[0] == '\0' || text[1] == '\0'))
        return luaL_error(lua, "JSON parser does not support UTF-16 or UTF-32");
    struct decoder decoder = {.lua = lua,
                              .start = text,
                              .at = text,
                              .end = text + len,
                              .options = &script_state_of(lua)->json};
    next_token(&decoder);
    decode_value(&decoder);
    next_token(&decoder);
    if (decoder.token != TOKEN_END)
        return fail(&decoder, "the end");
    return 1;
}

/* ---- options ---- */

/* Reads an optional argument. */
static void set_number(lua_State *lua, int arg, int *option, int least, int most)
{
    if (lua_isnoneornil(lua, arg))
        return;
    lua_Integer value = luaL_checkinteger(lua, arg);
    if (value < least || value > most) {
        lua_pushfstring(lua, "expected integer between %d and %d", least, most);
        luaL_argerror(lua, 1, lua_tostring(lua, -1));
    }
    *option = (int)value;
}

static int set_one_number(lua_State *lua, int *option, int most)
{
    set_number(lua, 1, option, 1, most);
    lua_pushinteger(lua, *option);
    return 1;
}

static int json_encode_max_depth(lua_State *lua)
{
    return set_one_number(lua, &script_state_of(lua)->json.encode_depth, INT32_MAX);
}

static int json_decode_max_depth(lua_State *lua)
{
    return set_one_number(lua, &script_state_of(lua)->json.decode_depth, INT32_MAX);
}

static int json_encode_number_precision(lua_State *lua)
{
    return set_one_number(lua, &script_state_of(lua)->json.precision, 14);
}

static int json_encode_keep_buffer(lua_State *lua)
{
    lua_pushboolean(lua, lua_isnoneornil(lua, 1) || lua_toboolean(lua, 1));
    return 1;
}

static int json_encode_sparse_array(lua_State *lua)
{
    struct script_json *json = &script_state_of(lua)->json;
    if (!lua_isnoneornil(lua, 1))
        json->sparse_converts = lua_toboolean(lua, 1);
    set_number(lua, 2, &json->sparse_ratio, 0, INT32_MAX);
    set_number(lua, 3, &json->sparse_safe, 0, INT32_MAX);
    lua_pushboolean(lua, json->sparse_converts);
    lua_pushinteger(lua, json->sparse_ratio);
    lua_pushinteger(lua, json->sparse_safe);
    return 3;
}

static int json_encode_invalid_numbers(lua_State *lua)
{
    static const char *const names[] = {"off", "on", "null", NULL};
    static const int choices[] = {SCRIPT_JSON_REFUSED, SCRIPT_JSON_AS_IS, SCRIPT_JSON_NULL};
    struct script_json *json = &script_state_of(lua)->json;
    if (lua_isboolean(lua, 1))
        json->encode_invalid = choices[lua_toboolean(lua, 1)];
    else if (!lua_isnoneornil(lua, 1))
        json->encode_invalid = choices[luaL_checkoption(lua, 1, NULL, names)];
    if (json->encode_invalid == SCRIPT_JSON_NULL)
        lua_pushliteral(lua, "null");
    else
        lua_pushboolean(lua, json->encode_invalid == SCRIPT_JSON_AS_IS);
    return 1;
}

static int json_decode_invalid_numbers(lua_State *lua)
{
    struct script_json *json = &script_state_of(lua)->json;
    if (!lua_isnoneornil(lua, 1))
        json->decode_invalid = lua_toboolean(lua, 1);
    lua_pushboolean(lua, json->decode_invalid);
    return 1;
}

static int json_new(lua_State *lua)
{
    script_open_cjson(lua);
    return 1;
}

void script_begin_cjson(struct script_json *json)
{
    *json = (struct script_json){.encode_depth = 1000,
                                 .decode_depth = 1000,
                                 .precision = 14,
                                 .sparse_ratio = 2,
                                 .sparse_safe = 10,
                                 .decode_invalid = true};
}

void script_open_cjson(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"encode", json_encode},
                                         {"decode", json_decode},
                                         {"encode_sparse_array", json_encode_sparse_array},
                                         {"encode_max_depth", json_encode_max_depth},
                                         {"decode_max_depth", json_decode_max_depth},
                                         {"encode_number_precision", json_encode_number_precision},
                                         {"encode_keep_buffer", json_encode_keep_buffer},
                                         {"encode_invalid_numbers", json_encode_invalid_numbers},
                                         {"decode_invalid_numbers", json_decode_invalid_numbers},
                                         {"new", json_new},
                                         {NULL, NULL}};
    lua_newtable(lua);
    luaL_register(lua, NULL, functions);
    lua_pushlightuserdata(lua, NULL);
    lua_setfield(lua, -2, "null");
    lua_pushliteral(lua, "cjson");
    lua_setfield(lua, -2, "_NAME");
    lua_pushliteral(lua, "2.1.0");
    lua_setfield(lua, -2, "_VERSION");
}
