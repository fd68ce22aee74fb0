/* The functions that nvcc's code calls and no PTX defines. */
#include "library.h"

#include <cstdio>

namespace ptx
{

/* Arguments lie behind each other, of 4 or 8 bytes, as a struct's members. What is printed goes to stderr. */
void
call_vprintf(const thread &, const where &at, unsigned char *result, unsigned char *format_, unsigned char *arguments)
{
    const char *format;
    const unsigned char *from;
    int n = 0;
    memcpy(&format, format_, sizeof format);
    memcpy(&from, arguments, sizeof from);
    for (size_t offset = 0; *format != '\0';) {
        const size_t plain = strcspn(format, "%");
        fprintf(stderr, "%.*s", (int)plain, format);
        format += plain;
        if (*format == '\0')
            break;
        const size_t length = 1 + strspn(format + 1, "-+ #0123456789.lhz");
        const char kind = format[length];
        char one[32];
        if (length + 1 >= sizeof one || strchr("diuxXcsfeEgGp%", kind) == nullptr || kind == '\0')
            emulation::misuse(at, "prints in a way that is not known: %s", format);
        snprintf(one, sizeof one, "%.*s", (int)length + 1, format);
        const bool wide = strchr("sfeEgGp", kind) != nullptr || strchr(one, 'l') != nullptr;
        const size_t size = kind == '%' ? 0 : wide ? 8 : 4;
        uint64_t bits = 0;
        offset = size > 0 ? (offset + size - 1) / size * size : offset;
        memcpy(&bits, from + offset, size);
        offset += size;
        n += size > 0;
        if (strchr("feEgG", kind) != nullptr)
            fprintf(stderr, one, value<double>(bits));
        else if (wide)
            fprintf(stderr, one, bits);
        else
            fprintf(stderr, one, (uint32_t)bits);
        format += length + 1;
    }
    memcpy(result, &n, sizeof n);
}

/* assert(): what was asserted, the file, the line, the function, the size of a character. */
void
call_assertfail(const thread &, const where &at, unsigned char *what, unsigned char *file, unsigned char *line,
                unsigned char *, unsigned char *)
{
    const char *said, *name;
    int number;
    memcpy(&said, what, sizeof said);
    memcpy(&name, file, sizeof name);
    memcpy(&number, line, sizeof number);
    emulation::misuse(at, "finds that not %s (%s:%d)", said, name, number);
}

} // namespace ptx
