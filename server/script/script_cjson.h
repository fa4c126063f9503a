/*
 * The library `cjson`.
 */
#ifndef VELLUM_SCRIPT_CJSON_H
#define VELLUM_SCRIPT_CJSON_H

#include <stdbool.h>

#include <lua.h>

void script_open_cjson(lua_State *lua); /* leaves it on the stack */

/* Its options, which are reset for each run. */
enum script_json_invalid { SCRIPT_JSON_REFUSED, SCRIPT_JSON_AS_IS, SCRIPT_JSON_NULL };
struct script_json {
    int encode_depth, decode_depth, precision, sparse_ratio, sparse_safe;
    bool sparse_converts, decode_invalid;
    enum script_json_invalid encode_invalid;
};
void script_begin_cjson(struct script_json *json);

#endif
