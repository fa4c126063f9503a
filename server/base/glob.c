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

/* change[c + 128]: the number of ranges that begin at character c, as a signed char, less those
 * that end just before it. Escaped characters are apart: their case is never ignored. */
struct class_set {
    int64_t change[257];
    bool is_exact[256];
};

static void add_range(struct class_set *set, signed char low, signed char high)
{
    if (low > high)
        return;
    set->change[low + 128]++;
    set->change[high + 129]--;
}

static void read_class(const char *pattern, size_t len, bool ignore_case, struct class_set *set)
{
    for (size_t i = 1 + (len > 1 && pattern[1] == '^'); i < len && pattern[i] != ']'; i++) {
        char first = pattern[i];
        if (first == '\\' && len - i >= 2) {
            set->is_exact[(uint8_t)pattern[++i]] = true;
        } else if (len - i >= 3 && pattern[i + 1] == '-') {
            char last = pattern[i + 2];
            bool swapped = (signed char)first > (signed char)last;
            add_range(set, fold(swapped ? last : first, ignore_case),
                      fold(swapped ? first : last, ignore_case));
            i += 2;
        } else {
            add_range(set, fold(first, ignore_case), fold(first, ignore_case));
        }
    }
}

/* What match_class() answers for each character. */
static void compile_class(const char *pattern, size_t len, bool ignore_case, uint64_t bits[4])
{
    struct class_set set = {.change = {0}};
    bool covered[256], negated = len > 1 && pattern[1] == '^';
    int64_t depth = 0;
    read_class(pattern, len, ignore_case, &set);
    for (int i = 0; i < 256; i++) {
        depth += set.change[i];
        covered[i] = depth > 0;
    }
    for (int c = 0; c < 256; c++) {
        bool matched = set.is_exact[c] || covered[fold((char)c, ignore_case) + 128];
        if (matched != negated)
            bits[c / 64] |= UINT64_C(1) << c % 64;
    }
}

#define LONG_CLASS 32 /* characters: as many as the bits of it take */

size_t glob_find_classes(const struct glob *glob, struct glob_class *classes, size_t room)
{
    size_t count = 0;
    for (size_t at = 0, used; at < glob->len; at += used) {
        const char *here = glob->pattern + at;
        size_t left = glob->len - at;
        used = here[0] == '\\' && left >= 2 ? 2 : 1;
        if (here[0] != '[')
            continue;
        (void)match_class(here, left, 0, false, &used);
        if (used < LONG_CLASS)
            continue;
        if (count < room) {
            classes[count] = (struct glob_class){.at = at, .end = at + used};
            compile_class(here, used, glob->ignore_case, classes[count].bits);
        }
        count++;
    }
    return count;
}

static const struct glob_class *find_class(const struct glob *glob, size_t at)
{
    size_t low = 0, high = glob->class_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (glob->classes[middle].at == at)
            return &glob->classes[middle];
        if (glob->classes[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool match_class_at(const struct glob *glob, size_t at, char c, size_t *used)
{
    const struct glob_class *found = glob->class_count > 0 ? find_class(glob, at) : NULL;
    if (found == NULL)
        return match_class(glob->pattern + at, glob->len - at, c, glob->ignore_case, used);
    *used = found->end - at;
    return (found->bits[(uint8_t)c / 64] >> (uint8_t)c % 64 & 1) != 0;
}

/* Does the pattern's first element, which is neither a star nor a class, match c? Sets *used to the
 * element's length. */
static bool match_one(const char *pattern, size_t len, char c, bool ignore_case, size_t *used)
{
    *used = 1;
    if (pattern[0] == '?')
        return true;
    if (pattern[0] == '\\' && len >= 2) {
        *used = 2;
        pattern++;
    }
    return fold(pattern[0], ignore_case) == fold(c, ignore_case);
}

/* The same for an element that is not a star, at `at`. */
static bool match_at(const struct glob *glob, size_t at, char c, bool ignore_case, size_t *used)
{
    const char *here = glob->pattern + at;
    return here[0] == '[' ? match_class_at(glob, at, c, used)
                          : match_one(here, glob->len - at, c, ignore_case, used);
}

bool glob_matches(const struct glob *glob, const char *text, size_t text_len)
{
    const char *pattern = glob->pattern;
    size_t pattern_len = glob->len;
    bool ignore_case = glob->ignore_case;
    size_t p = 0, t = 0, star = 0, taken = 0; /* star: after the last one, 0: none yet */
    if (text_len == 0)
        return pattern_len == 0; /* in Redis no pattern matches an empty text, not even a star */
    while (t < text_len) {
        size_t used;
        if (p < pattern_len && pattern[p] == '*') {
            star = ++p;
            taken = t;
        } else if (p < pattern_len && match_at(glob, p, text[t], ignore_case, &used)) {
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

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
                bool ignore_case)
{
    struct glob glob = {.pattern = pattern, .len = pattern_len, .ignore_case = ignore_case};
    return glob_matches(&glob, text, text_len);
}
