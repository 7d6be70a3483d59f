/* user_ta_header_defines.h - what the header of the application says of it. */
#ifndef USER_TA_HEADER_DEFINES_H
#define USER_TA_HEADER_DEFINES_H

#include "listener_ta.h"

#define TA_UUID TA_LISTENER_UUID
#define TA_FLAGS 0
#define TA_STACK_SIZE (4 * 1024)
#define TA_DATA_SIZE (32 * 1024) /* the heap: an arena for each session */

#endif
