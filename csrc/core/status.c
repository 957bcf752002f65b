/* status.c - the text of each status, from PS_STATUS_LIST in pysolvers.h. */
#include "pysolvers.h"

const char *
ps_status_text(ps_status status)
{
    switch (status) {
#define PS_TEXT_(name, text) \
    case name:               \
        return text;
        PS_STATUS_LIST(PS_TEXT_)
#undef PS_TEXT_
    default:
        return "unknown status";
    }
}
