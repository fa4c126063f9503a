"""The check of prototypes finds what it is there for: breaches planted in a small tree of its own."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted  # noqa: E402
import prototypes  # noqa: E402

SOUND = {
    "storage/store.h": "int store_get(void);\n",
    "storage/exec/get.c": '#include "storage/store.h"\nint store_get(void) { return 1; }\n',
    "server/net/conn.h": """
        /* int in_a_comment(void); */
        #define CONN_CALL(x) \\
            int in_a_macro(int x);
        struct conn { int (*read)(struct conn *conn, int size); };
        typedef int conn_fn(struct conn *conn);
        static inline int conn_twice(int x) { return x * 2; }
        extern const char *conn_words[];
        static_assert(sizeof(int) == 4, "int f(void);");
        __attribute__((warn_unused_result)) int conn_read(struct conn *conn,
                                                         int (*each)(int));
        #ifdef __cplusplus
        extern "C" {
        #endif
        const struct conn *const *conn_all(void);
        #ifdef __cplusplus
        }
        #endif
        #ifdef ODD_BUILD
        void conn_odd(void);
        #endif
        """,
    "server/net/conn.c": """
        #include "server/net/conn.h"
        int conn_read(struct conn *conn, int (*each)(int)) { return each(1); }
        const struct conn *const *conn_all(void) { static int calls; calls++; return 0; }
        #ifdef ODD_BUILD
        void conn_odd(void) {}
        #endif
        """,
    "server/net/conn_output.h": "void conn_flush(void);\n",
    "server/net/conn_output.c": '#include "server/net/conn_output.h"\nvoid conn_flush(void) {}\n',
}
FLUSH = "which server/net/conn_output.c defines: it belongs in server/net/conn_output.h"

PLANTED = [
    ({"server/net/conn_output.h": "", "server/net/other.h": "void conn_flush(void);\n",
      "server/net/conn_output.c": '#include "server/net/other.h"\nvoid conn_flush(void) {}\n'},
     f"server/net/other.h declares conn_flush, {FLUSH}"),
    ({"server/net/conn.h": SOUND["server/net/conn.h"] + "struct x *far_from(int a,\n int b);\nvoid conn_flush(void);",
      "server/net/far.c": "struct x { int y; };\nstruct x *far_from(int a, int b) { return 0; }\n"},
     "server/net/conn.h declares far_from, which server/net/far.c defines: it belongs in server/net/far.h"),
    ({"server/net/conn.h": SOUND["server/net/conn.h"] + "void conn_flush(void);\n"},
     f"server/net/conn.h declares conn_flush, {FLUSH}"),
    ({"server/net/conn.h": SOUND["server/net/conn.h"] + "void conn_gone(void);\n"},
     "server/net/conn.h declares conn_gone, which nothing defines"),
    ({"clients/vellum_async.h": 'extern "C" {\nint vellum_get(void);\n}\n',
      "clients/get.c": "int vellum_get(void) { return 1; }\n"},
     "clients/vellum_async.h declares vellum_get, which clients/get.c defines: it belongs in clients/get.h"),
    ({"server/net/use.c": "void conn_flush(void);\nvoid use(void) { conn_flush(); }\n"},
     "server/net/use.c declares conn_flush: a prototype stands in a header"),
    ({"server/net/use.c": "void use(void) { }\nextern void conn_flush(void);\n"},
     "server/net/use.c declares conn_flush: a prototype stands in a header"),
    ({"storage/store.h": "int store_get(void);\nint store_put(void);\n",
      "server/put.c": "int store_put(void) { return 1; }\n"},
     "storage/store.h declares store_put, which nothing in storage/ defines"),
]


@pytest.fixture
def plant(tmp_path, monkeypatch):
    return planted.planter(tmp_path, monkeypatch, prototypes)


def test_a_sound_tree_passes(plant):
    assert plant(SOUND) == []


@pytest.mark.parametrize("change,expected", PLANTED, ids=[expected for _, expected in PLANTED])
def test_a_breach_is_found(plant, change, expected):
    assert expected in plant(SOUND | change)
