/* Syntaxes as the command table writes them, and what is read from them. */
#include "server/core/command_syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TEXT_MAX 1000

struct description {
    char text[TEXT_MAX];
    size_t len;
};

static void say(struct description *said, const char *before, struct resp_slice word)
{
    if (word.len == 0)
        return;
    said->len += (size_t)snprintf(said->text + said->len, TEXT_MAX - said->len, "%s%.*s", before,
                                  (int)word.len, word.data);
    assert_true(said->len < TEXT_MAX);
}

/* Each argument as: name type, what else it has, and in parentheses what it consists of. */
static void describe(struct description *said, struct resp_slice syntax)
{
    static const char *const flags[] = {" optional", " multiple", " multiple_token"};
    struct syntax_argument argument;
    size_t count = 0;
    char number[16];
    for (; syntax_next(&syntax, &argument); count++) {
        say(said, count > 0 ? ", " : "", syntax_of(argument.name));
        say(said, " ", syntax_of(syntax_type_name(argument.type)));
        say(said, " token ", argument.token);
        say(said, " shown ", argument.shown);
        snprintf(number, sizeof number, "%d", argument.key_spec);
        say(said, " spec ", syntax_of(argument.key_spec >= 0 ? number : ""));
        say(said, " since ", argument.since);
        say(said, " until ", argument.deprecated_since);
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
            say(said, "", syntax_of((argument.flags & 1u << i) != 0 ? flags[i] : ""));
        if (!syntax_is_group(&argument))
            continue;
        say(said, "", syntax_of(" ("));
        describe(said, argument.arguments);
        say(said, "", syntax_of(")"));
    }
}

static void assert_read(const char *syntax, const char *expected)
{
    struct description said = {.len = 0};
    describe(&said, syntax_of(syntax));
    assert_string_equal(said.text, expected);
}

static void names_tell_types(void **state)
{
    (void)state;
    assert_read("", "");
    assert_read("value", "value string");
    assert_read("key seconds", "key key spec 0, seconds integer");
    assert_read("score member pattern", "score double, member string, pattern pattern");
    assert_read("unix-time-milliseconds", "unix-time-milliseconds unix-time");
    assert_read("increment:double min:string", "increment double, min string");
    assert_read("sha1 keys second", "sha1 string, keys string, second string");
}

static void tokens_stand_alone_or_before_arguments(void **state)
{
    (void)state;
    assert_read("NX", "nx pure-token token NX");
    assert_read("change=CH", "change pure-token token CH");
    assert_read("EX seconds", "seconds integer token EX");
    assert_read("[GET] [WITHVALUES]", "get pure-token token GET optional, "
                                      "withvalues pure-token token WITHVALUES optional");
    assert_read("LIB-NAME libname", "libname string token LIB-NAME");
    assert_read("NX [XX]", "nx pure-token token NX, xx pure-token token XX optional");
    assert_read("AUTH2 auth(username password)",
                "auth block token AUTH2 (username string, password string)");
}

static void arguments_are_optional_and_repeated(void **state)
{
    (void)state;
    assert_read("[count]", "count integer optional");
    assert_read("key...", "key key spec 0 multiple");
    assert_read("[element...] value", "element string optional multiple, value string");
    assert_read("[WEIGHTS weight...]", "weight integer token WEIGHTS optional multiple");
    assert_read("[GET pattern]...", "pattern pattern token GET optional multiple multiple_token");
    assert_read("data(score member)...", "data block multiple (score double, member string)");
}

static void groups_are_choices_or_blocks(void **state)
{
    (void)state;
    assert_read("[condition(NX|XX)] value",
                "condition oneof optional (nx pure-token token NX, xx pure-token token XX), "
                "value string");
    assert_read("[a(EX seconds|KEEPTTL)]",
                "a oneof optional (seconds integer token EX, keepttl pure-token token KEEPTTL)");
    /* What is chosen from in there makes no choice out here. */
    assert_read("a(b(c|d) [E f(g|h)])", "a block (b oneof (c string, d string), "
                                        "f oneof token E optional (g string, h string))");
    assert_read("a([b]|[c(d e)]...)",
                "a oneof (b string optional, c block optional multiple multiple_token "
                "(d string, e string))");
}

static void what_stands_behind_an_argument(void **state)
{
    (void)state;
    assert_read("[count@6.2.0]", "count integer since 6.2.0 optional");
    assert_read("[ID client-id@6.2.10...]",
                "client-id integer token ID since 6.2.10 optional multiple");
    assert_read("[GET@6.2.0] a(NX@7.0.0|XX)@2.6.12 b",
                "get pure-token token GET since 6.2.0 optional, a oneof since 2.6.12 "
                "(nx pure-token token NX since 7.0.0, xx pure-token token XX), b string");
    assert_read("[change=CH@3.0.2]", "change pure-token token CH since 3.0.2 optional");
    assert_read("addr'ip:port'!2.8.12@2.4.0", "addr string shown ip:port since 2.4.0 until 2.8.12");
    assert_read("source destination#1", "source key spec 0, destination key spec 1");
    assert_read("key#2... [BY by-pattern'pattern'#1]",
                "key key spec 2 multiple, "
                "by-pattern pattern token BY shown pattern spec 1 optional");
}

static void what_is_shown_is_the_name_unless_it_says(void **state)
{
    (void)state;
    struct syntax_argument argument;
    struct resp_slice text = syntax_of("addr'ip:port' KEEPTTL"), shown;
    assert_true(syntax_next(&text, &argument));
    shown = syntax_shown(&argument);
    assert_memory_equal(shown.data, "ip:port", shown.len);
    assert_true(syntax_next(&text, &argument));
    shown = syntax_shown(&argument);
    assert_int_equal(shown.len, strlen("keepttl"));
    assert_memory_equal(shown.data, "keepttl", shown.len);
    assert_false(syntax_next(&text, &argument));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_types),
        cmocka_unit_test(tokens_stand_alone_or_before_arguments),
        cmocka_unit_test(arguments_are_optional_and_repeated),
        cmocka_unit_test(groups_are_choices_or_blocks),
        cmocka_unit_test(what_stands_behind_an_argument),
        cmocka_unit_test(what_is_shown_is_the_name_unless_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
