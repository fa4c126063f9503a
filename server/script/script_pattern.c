/*
 * A backtracking matcher. `pattern` and `subject` are delimited by pointers, so zero bytes are
 * ordinary bytes.
 */
#include "server/script/script_pattern.h"

#include <ctype.h>
#include <string.h>

#include <lauxlib.h>

#include "server/script/script_busy.h"
#include "server/script/script_state.h"

#define CAPTURES_MAX 32
#define DEPTH_MAX 200
#define STEPS_MIN 100000000 /* allowed for any subject, in addition to those per byte */
#define STEPS_PER_BYTE 16
#define WORK_BETWEEN_LOOKS (1 << 20) /* in bytes of subject and pattern */
#define WORK_PER_COMPARED_BYTES 64

enum { CAPTURE_OPEN = -1, CAPTURE_PLACE = -2 };

struct capture {
    const char *start;
    ptrdiff_t len;
};

struct match {
    lua_State *lua;
    const char *subject, *end, *pattern_end;
    int level;
    int depth;
    uint64_t steps, steps_max;
    uint64_t work; /* since the last interrupt check */
    struct capture captures[CAPTURES_MAX];
};

static const char *match_here(struct match *match, const char *at, const char *pattern);

static void count_work(struct match *match, size_t work)
{
    match->work += work;
    if (match->work < WORK_BETWEEN_LOOKS)
        return;
    match->work = 0;
    script_check_interrupt(match->lua);
}

/* `work`: additional bytes. A step may examine a whole set or a whole capture. */
static void count_step(struct match *match, size_t work)
{
    if (++match->steps > match->steps_max)
        luaL_error(match->lua, "pattern too complex");
    count_work(match, work + 1);
}

/* ---- one character ---- */

static bool is_in_class(int byte, int letter)
{
    bool is_in;
    switch (tolower(letter)) {
    case 'a':
        is_in = isalpha(byte);
        break;
    case 'c':
        is_in = iscntrl(byte);
        break;
    case 'd':
        is_in = isdigit(byte);
        break;
    case 'l':
        is_in = islower(byte);
        break;
    case 'p':
        is_in = ispunct(byte);
        break;
    case 's':
        is_in = isspace(byte);
        break;
    case 'u':
        is_in = isupper(byte);
        break;
    case 'w':
        is_in = isalnum(byte);
        break;
    case 'x':
        is_in = isxdigit(byte);
        break;
    case 'z':
        is_in = byte == 0;
        break;
    default:
        return letter == byte;
    }
    return islower(letter) ? is_in : !is_in;
}

/* The end of the single-character item that begins at `pattern`. */
static const char *item_end(const struct match *match, const char *pattern)
{
    const char *end = match->pattern_end;
    char first = *pattern++;
    if (first == '%') {
        if (pattern == end)
            luaL_error(match->lua, "malformed pattern (ends with '%%')");
        return pattern + 1;
    }
    if (first != '[')
        return pattern;
    if (pattern < end && *pattern == '^')
        pattern++;
    do { /* a ']' in first place is a member of the set */
        if (pattern == end)
            luaL_error(match->lua, "malformed pattern (missing ']')");
        if (*pattern++ == '%' && pattern < end)
            pattern++;
    } while (pattern == end || *pattern != ']');
    return pattern + 1;
}

/* `set` points to the '[', `last` to the ']'. */
static bool is_in_set(int byte, const char *set, const char *last)
{
    bool is_wanted = true;
    if (set[1] == '^') {
        is_wanted = false;
        set++;
    }
    while (++set < last) {
        if (*set == '%') {
            if (is_in_class(byte, (unsigned char)*++set))
                return is_wanted;
        } else if (set[1] == '-' && set + 2 < last) {
            set += 2;
            if ((unsigned char)set[-2] <= byte && byte <= (unsigned char)*set)
                return is_wanted;
        } else if ((unsigned char)*set == byte) {
            return is_wanted;
        }
    }
    return !is_wanted;
}

static bool is_item(struct match *match, const char *at, const char *pattern, const char *end)
{
    count_step(match, (size_t)(end - pattern));
    if (at == match->end)
        return false;
    int byte = (unsigned char)*at;
    switch (*pattern) {
    case '.':
        return true;
    case '%':
        return is_in_class(byte, (unsigned char)pattern[1]);
    case '[':
        return is_in_set(byte, pattern, end - 1);
    default:
        return (unsigned char)*pattern == byte;
    }
}

/* ---- repetitions ---- */

static const char *match_most(struct match *match, const char *at, const char *pattern,
                              const char *end)
{
    ptrdiff_t count = 0;
    while (is_item(match, at + count, pattern, end))
        count++;
    for (; count >= 0; count--) {
        const char *found = match_here(match, at + count, end + 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static const char *match_least(struct match *match, const char *at, const char *pattern,
                               const char *end)
{
    for (;; at++) {
        const char *found = match_here(match, at, end + 1);
        if (found != NULL || !is_item(match, at, pattern, end))
            return found;
    }
}

/* ---- captures and results ---- */

static const char *open_capture(struct match *match, const char *at, const char *pattern,
                                ptrdiff_t what)
{
    if (match->level >= CAPTURES_MAX)
        luaL_error(match->lua, "too many captures");
    match->captures[match->level] = (struct capture){.start = at, .len = what};
    match->level++;
    const char *found = match_here(match, at, pattern);
    if (found == NULL)
        match->level--;
    return found;
}

static const char *close_capture(struct match *match, const char *at, const char *pattern)
{
    int which = match->level - 1;
    while (which >= 0 && match->captures[which].len != CAPTURE_OPEN)
        which--;
    if (which < 0)
        luaL_error(match->lua, "invalid pattern capture");
    match->captures[which].len = at - match->captures[which].start;
    const char *found = match_here(match, at, pattern);
    if (found == NULL)
        match->captures[which].len = CAPTURE_OPEN;
    return found;
}

/* "%1": the captured text again. */
static const char *match_again(struct match *match, const char *at, char digit)
{
    int which = digit - '1';
    if (which < 0 || which >= match->level || match->captures[which].len == CAPTURE_OPEN)
        luaL_error(match->lua, "invalid capture index");
    struct capture *capture = &match->captures[which];
    ptrdiff_t len = capture->len < 0 ? 0 : capture->len;
    if (match->end - at < len)
        return NULL;
    count_work(match, (size_t)len / WORK_PER_COMPARED_BYTES);
    if (memcmp(capture->start, at, (size_t)len) != 0)
        return NULL;
    return at + len;
}

/* "%bxy" */
static const char *match_balance(struct match *match, const char *at, const char *pattern)
{
    if (match->pattern_end - pattern < 2)
        luaL_error(match->lua, "unbalanced pattern");
    if (at == match->end || *at != pattern[0])
        return NULL;
    size_t open = 1;
    for (const char *next = at + 1; next < match->end; next++) {
        count_step(match, 0);
        if (*next == pattern[1]) {
            if (--open == 0)
                return next + 1;
        } else if (*next == pattern[0]) {
            open++;
        }
    }
    return NULL;
}

/* "%f[set]": `pattern` points to the '['. */
static bool is_frontier(const struct match *match, const char *at, const char *pattern,
                        const char *end)
{
    int before = at == match->subject ? 0 : (unsigned char)at[-1];
    int here = at == match->end ? 0 : (unsigned char)*at;
    return !is_in_set(before, pattern, end - 1) && is_in_set(here, pattern, end - 1);
}

/* ---- the pattern ---- */

/* Matches an item that begins with '%' and is not a character class. *handled: it was such an item.
 * *next: the rest of the pattern is to be matched at the returned position. */
static const char *match_special(struct match *match, const char *at, const char *pattern,
                                 const char **next, bool *handled)
{
    char kind = pattern + 1 < match->pattern_end ? pattern[1] : '\0';
    *handled = true;
    if (kind == 'b') {
        *next = pattern + 4;
        return match_balance(match, at, pattern + 2);
    }
    if (kind == 'f') {
        const char *set = pattern + 2;
        if (set >= match->pattern_end || *set != '[')
            luaL_error(match->lua, "missing '[' after '%%f' in pattern");
        *next = item_end(match, set);
        count_work(match, (size_t)(*next - set));
        return is_frontier(match, at, set, *next) ? at : NULL;
    }
    if (isdigit((unsigned char)kind)) {
        *next = pattern + 2;
        return match_again(match, at, kind);
    }
    *handled = false;
    return at;
}

/* Matches a single-character item and its suffix. *next NULL: the result is that of the whole rest.
 */
static const char *match_item(struct match *match, const char *at, const char *pattern,
                              const char **next)
{
    const char *end = item_end(match, pattern);
    count_work(match, (size_t)(end - pattern));
    char suffix = end < match->pattern_end ? *end : '\0';
    *next = NULL;
    if (suffix == '*')
        return match_most(match, at, pattern, end);
    if (suffix == '-')
        return match_least(match, at, pattern, end);
    bool is_there = is_item(match, at, pattern, end);
    if (suffix == '+')
        return is_there ? match_most(match, at + 1, pattern, end) : NULL;
    if (suffix == '?') {
        const char *found = is_there ? match_here(match, at + 1, end + 1) : NULL;
        if (found != NULL)
            return found;
        *next = end + 1;
        return at;
    }
    *next = end;
    return is_there ? at + 1 : NULL;
}

static const char *match_rest(struct match *match, const char *at, const char *pattern)
{
    while (at != NULL && pattern < match->pattern_end) {
        const char *rest = pattern + 1;
        if (*pattern == '(') {
            bool is_place = rest < match->pattern_end && *rest == ')';
            return is_place ? open_capture(match, at, rest + 1, CAPTURE_PLACE)
                            : open_capture(match, at, rest, CAPTURE_OPEN);
        }
        if (*pattern == ')')
            return close_capture(match, at, rest);
        if (*pattern == '$' && rest == match->pattern_end)
            return at == match->end ? at : NULL;
        bool handled = false;
        if (*pattern == '%')
            at = match_special(match, at, pattern, &rest, &handled);
        if (!handled)
            at = match_item(match, at, pattern, &rest);
        if (rest == NULL)
            return at;
        pattern = rest;
    }
    return at;
}

static const char *match_here(struct match *match, const char *at, const char *pattern)
{
    if (++match->depth > DEPTH_MAX)
        luaL_error(match->lua, "pattern too complex");
    const char *found = match_rest(match, at, pattern);
    match->depth--;
    return found;
}

/* ---- results ---- */

static struct match begin(lua_State *lua, struct resp_slice subject, struct resp_slice pattern)
{
    return (struct match){.lua = lua,
                          .subject = subject.data,
                          .end = subject.data + subject.len,
                          .pattern_end = pattern.data + pattern.len,
                          .steps_max = STEPS_MIN + STEPS_PER_BYTE * (uint64_t)subject.len};
}

static const char *try_at(struct match *match, const char *at, const char *pattern)
{
    match->level = match->depth = 0;
    count_step(match, 0);
    return match_here(match, at, pattern);
}

static void push_capture(struct match *match, int which, const char *start, const char *end)
{
    lua_State *lua = match->lua;
    if (which >= match->level) {
        if (which != 0)
            luaL_error(lua, "invalid capture index");
        lua_pushlstring(lua, start, (size_t)(end - start));
        return;
    }
    const struct capture *capture = &match->captures[which];
    if (capture->len == CAPTURE_OPEN)
        luaL_error(lua, "unfinished capture");
    if (capture->len == CAPTURE_PLACE)
        lua_pushinteger(lua, capture->start - match->subject + 1);
    else
        lua_pushlstring(lua, capture->start, (size_t)capture->len);
}

/* Pushes all captures. Without any, pushes the whole match if `start` is given. */
static int push_captures(struct match *match, const char *start, const char *end)
{
    int count = match->level == 0 && start != NULL ? 1 : match->level;
    luaL_checkstack(match->lua, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(match, i, start, end);
    return count;
}

static struct resp_slice check_slice(lua_State *lua, int index)
{
    struct resp_slice slice;
    slice.data = luaL_checklstring(lua, index, &slice.len);
    return slice;
}

/* ---- find, match ---- */

static size_t start_of(lua_State *lua, size_t len)
{
    lua_Number first = luaL_optnumber(lua, 3, 1);
    if (first < 0)
        first += (lua_Number)len + 1;
    if (!(first > 1))
        return 0;
    return first > (lua_Number)len + 1 ? len : (size_t)first - 1;
}

static bool is_plain(struct resp_slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.data[i] != '\0' && strchr("^$*+?.([%-", pattern.data[i]) != NULL)
            return false;
    return true;
}

static int find_plain(lua_State *lua, struct resp_slice subject, struct resp_slice text,
                      size_t start)
{
    const char *found = memmem(subject.data + start, subject.len - start, text.data, text.len);
    if (found == NULL) {
        lua_pushnil(lua);
        return 1;
    }
    lua_pushinteger(lua, found - subject.data + 1);
    lua_pushinteger(lua, found - subject.data + (ptrdiff_t)text.len);
    return 2;
}

static int search(lua_State *lua, bool is_find)
{
    struct resp_slice subject = check_slice(lua, 1), pattern = check_slice(lua, 2);
    size_t start = start_of(lua, subject.len);
    if (subject.len + pattern.len > WORK_BETWEEN_LOOKS)
        script_check_interrupt(lua);
    if (is_find && (lua_toboolean(lua, 4) || is_plain(pattern)))
        return find_plain(lua, subject, pattern, start);
    struct match match = begin(lua, subject, pattern);
    bool is_anchored = pattern.len > 0 && pattern.data[0] == '^';
    const char *at = subject.data + start;
    do {
        const char *end = try_at(&match, at, pattern.data + is_anchored);
        if (end == NULL)
            continue;
        if (!is_find)
            return push_captures(&match, at, end);
        lua_pushinteger(lua, at - subject.data + 1);
        lua_pushinteger(lua, end - subject.data);
        return push_captures(&match, NULL, NULL) + 2;
    } while (at++ < match.end && !is_anchored);
    lua_pushnil(lua);
    return 1;
}

static int string_find(lua_State *lua)
{
    return search(lua, true);
}

static int string_match(lua_State *lua)
{
    return search(lua, false);
}

/* ---- gmatch ---- */

static int next_match(lua_State *lua)
{
    struct resp_slice subject, pattern;
    subject.data = lua_tolstring(lua, lua_upvalueindex(1), &subject.len);
    pattern.data = lua_tolstring(lua, lua_upvalueindex(2), &pattern.len);
    struct match match = begin(lua, subject, pattern);
    size_t start = (size_t)lua_tonumber(lua, lua_upvalueindex(3));
    for (; start <= subject.len; start++) {
        const char *at = subject.data + start, *end = try_at(&match, at, pattern.data);
        if (end == NULL)
            continue;
        lua_pushnumber(lua, (lua_Number)(end - subject.data + (end == at)));
        lua_replace(lua, lua_upvalueindex(3));
        return push_captures(&match, at, end);
    }
    return 0;
}

static int string_gmatch(lua_State *lua)
{
    luaL_checkstring(lua, 1);
    luaL_checkstring(lua, 2);
    lua_settop(lua, 2);
    lua_pushinteger(lua, 0);
    lua_pushcclosure(lua, next_match, 3);
    return 1;
}

/* ---- gsub ---- */

/* Expands a replacement text: "%0" is the match, "%1" a capture. */
static void add_text(struct match *match, luaL_Buffer *out, const char *start, const char *end)
{
    size_t len;
    const char *text = lua_tolstring(match->lua, 3, &len);
    count_work(match, len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%' || ++i == len) {
            if (i < len)
                luaL_addchar(out, text[i]);
        } else if (!isdigit((unsigned char)text[i])) {
            luaL_addchar(out, text[i]);
        } else if (text[i] == '0') {
            luaL_addlstring(out, start, (size_t)(end - start));
        } else {
            push_capture(match, text[i] - '1', start, end);
            luaL_addvalue(out);
        }
    }
}

/* Replacement by a function or a table. Without a result the match is kept. */
static void add_value(struct match *match, luaL_Buffer *out, const char *start, const char *end)
{
    lua_State *lua = match->lua;
    if (lua_type(lua, 3) == LUA_TFUNCTION) {
        lua_pushvalue(lua, 3);
        int count = push_captures(match, start, end);
        lua_call(lua, count, 1);
    } else {
        push_capture(match, 0, start, end);
        lua_gettable(lua, 3);
    }
    if (!lua_toboolean(lua, -1)) {
        lua_pop(lua, 1);
        lua_pushlstring(lua, start, (size_t)(end - start));
    } else if (!lua_isstring(lua, -1)) {
        luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
    }
    luaL_addvalue(out);
}

static int string_gsub(lua_State *lua)
{
    struct resp_slice subject = check_slice(lua, 1), pattern = check_slice(lua, 2);
    int type = lua_type(lua, 3);
    lua_Number most = luaL_optnumber(lua, 4, (lua_Number)subject.len + 1);
    bool is_anchored = pattern.len > 0 && pattern.data[0] == '^', is_text = lua_isstring(lua, 3);
    luaL_argcheck(lua, is_text || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                  "string/function/table expected");
    lua_settop(lua, 3);
    struct match match = begin(lua, subject, pattern);
    const char *at = subject.data;
    lua_Number count = 0;
    luaL_Buffer out;
    luaL_buffinit(lua, &out);
    while (count < most) {
        const char *end = try_at(&match, at, pattern.data + is_anchored);
        if (end != NULL) {
            count++;
            (is_text ? add_text : add_value)(&match, &out, at, end);
        }
        if (end != NULL && end > at)
            at = end;
        else if (at < match.end)
            luaL_addchar(&out, *at++);
        else
            break;
        if (is_anchored)
            break;
    }
    luaL_addlstring(&out, at, (size_t)(match.end - at));
    luaL_pushresult(&out);
    lua_pushnumber(lua, count);
    return 2;
}

void script_open_patterns(lua_State *lua)
{
    static const luaL_Reg ours[] = {{"find", string_find},     {"match", string_match},
                                    {"gmatch", string_gmatch}, {"gfind", string_gmatch},
                                    {"gsub", string_gsub},     {NULL, NULL}};
    luaL_register(lua, NULL, ours);
}
