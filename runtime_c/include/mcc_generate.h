/* mcc_generate.h - what programs that generate text share: how text is handed over, and why it ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_GENERATE_H
#define MCC_GENERATE_H

#include "mcc_detokens.h"
#include "mcc_sample.h"

/* Takes whole characters of UTF-8 as they come; gives 0 to go on, anything else to end. */
typedef int (*mcc_told)(const char *text, size_t bytes, void *user);

#define MCC_END_STOP 0    /* the model ended its text */
#define MCC_END_MOST 1    /* as many tokens as were asked for */
#define MCC_END_CONTEXT 2 /* there is no room for more tokens */
#define MCC_END_CALLER 3  /* the callback said so */

#define MCC_END_TEXT (-1)   /* the prompt is no UTF-8, or there is none */
#define MCC_END_LONG (-2)   /* the prompt is longer than there is room for; nothing of it was taken */
#define MCC_END_LOGITS (-3) /* no logit is a number */
#define MCC_END_RUN (-4)    /* the network ended with the status of the session */
#define MCC_END_SYSTEM (-5) /* the chat has begun, or the model does not take this system message */
#define MCC_END_DATE (-6)   /* the chat template has the date, and the session lacks it */

#endif
