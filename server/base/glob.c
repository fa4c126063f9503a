/*
 * Glob patterns. Every element except * matches exactly one character. So after a mismatch it is
 * enough to let the last * match one character more: the earlier stars already leave the most room
 * for the rest. The time is therefore bounded by a product, not by an exponential.
 */
#include "server/base/glob.h"

static signed char fold(char c, bool ignore_case)
{
    return (signed char)(ignore_case && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool in_range(char first, char last, char c, bool ignore_case)
{
    /* Bounds in the wrong order are swapped before case folding, as in Redis. */
    bool swapped = (signed char)first > (signed char)last;
    signed char low = fold(swapped ? last : first, ignore_case);
    signed char high = fold(swapped ? first : last, ignore_case);
    signed char folded = fold(c, ignore_case);
    return folded >= low && folded <= high;
}

/* pattern[0] is '['. A class without a closing ']' ends with the pattern. */
static bool match_class(const char *pattern, size_t len, char c, bool ignore_case, size_t *used)
{
    size_t i = 1;
    bool matched = false, negated = i < len && pattern[i] == '^';
    for (i += negated; i < len && pattern[i] != ']'; i++) {
        if (pattern[i] == '\\' && len - i >= 2) {
            i++;
            matched |= pattern[i] == c;
        } else if (len - i >= 3 && pattern[i + 1] == '-') {
            matched |= in_range(pattern[i], pattern[i + 2], c, ignore_case);
            i += 2;
        } else {
            matched |= fold(pattern[i], ignore_case) == fold(c, ignore_case);
        }
    }
    *used = i < len ? i + 1 : len;
    return matched != negated;
}

/* Does the pattern's first element, which is not a star, match c? Sets *used to the element's
 * length. */
static bool match_one(const char *pattern, size_t len, char c, bool ignore_case, size_t *used)
{
    if (pattern[0] == '[')
        return match_class(pattern, len, c, ignore_case, used);
    *used = 1;
    if (pattern[0] == '?')
        return true;
    if (pattern[0] == '\\' && len >= 2) {
        *used = 2;
        pattern++;
    }
    return fold(pattern[0], ignore_case) == fold(c, ignore_case);
}

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
                bool ignore_case)
{
    size_t p = 0, t = 0, star = 0, taken = 0; /* star: after the last one, 0: none yet */
    if (text_len == 0)
        return pattern_len == 0; /* in Redis no pattern matches an empty text, not even a star */
    while (t < text_len) {
        size_t used;
        if (p < pattern_len && pattern[p] == '*') {
            star = ++p;
            taken = t;
        } else if (p < pattern_len &&
                   match_one(pattern + p, pattern_len - p, text[t], ignore_case, &used)) {
            p += used;
            t++;
        } else if (star != 0) {
            if (star == pattern_len)
                return true;
            p = star;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern_len && pattern[p] == '*')
        p++;
    return p == pattern_len;
}
