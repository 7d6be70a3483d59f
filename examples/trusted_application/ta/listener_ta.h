/* listener_ta.h - what clients of the trusted application know of it. */
#ifndef LISTENER_TA_H
#define LISTENER_TA_H

#define TA_LISTENER_UUID {0x5f2b6a4e, 0x9c1d, 0x4e37, {0xa8, 0x03, 0x6d, 0x70, 0x21, 0xb4, 0xce, 0x58}}

/* [in] memref[0]: the sound, bytes; [out] value[1].a: the number of the word. */
#define TA_LISTENER_HEAR 0u

#endif
