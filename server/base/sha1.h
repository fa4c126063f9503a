/*
 * SHA-1 (FIPS 180-4), the name of a script. Not for anything that must withstand an attack.
 */
#ifndef VELLUM_SHA1_H
#define VELLUM_SHA1_H

#include <stddef.h>

#define SHA1_HEX_LEN 40

/* Lower-case hexadecimal digits and a terminating NUL. */
void sha1_hex(const char *data, size_t len, char hex[SHA1_HEX_LEN + 1]);

#endif
