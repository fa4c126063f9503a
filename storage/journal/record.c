#include "storage/journal/record.h"

char *commit_add_operation(char *at, enum format_op kind, uint32_t file, uint32_t page,
                           uint32_t slot, uint32_t length)
{
    *(struct format_operation *)at = (struct format_operation){.kind = (uint8_t)kind,
                                                               .file = (uint8_t)file,
                                                               .length = (uint16_t)length,
                                                               .page = page,
                                                               .slot = (uint8_t)slot};
    return at + sizeof(struct format_operation);
}
