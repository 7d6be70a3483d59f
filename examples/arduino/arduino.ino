// Reads digits from pictures in flash, and says the scores of each, over the serial port.
#include <avr/sleep.h>
#include <digits.h>

#include "pictures.h"

static digits_model model;
static MCC_ALIGNED(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES];

static void stop(const char *why) {
  Serial.println(why);
  Serial.flush();
  noInterrupts();
  sleep_mode();  // with no interrupts, for good; an emulator ends here
}

void setup() {
  Serial.begin(115200);
  mcc_status status = digits_init(&model, arena, sizeof arena, digits_weights, digits_weights_bytes);
  uint8_t right = 0;
  for (uint8_t picture = 0; picture < PICTURES && status == MCC_OK; picture++) {
    memcpy_P(digits_input_image(&model), pictures[picture], sizeof pictures[picture]);
    const unsigned long begin = micros();
    status = digits_run(&model);
    const unsigned long took = micros() - begin;
    const int8_t *scores = digits_output_scores(&model);
    uint8_t best = 0;
    for (uint8_t digit = 0; digit < DIGITS_OUTPUT_SCORES_COUNT; digit++) {
      if (scores[digit] > scores[best]) best = digit;
      Serial.print(scores[digit]);
      Serial.print(' ');
    }
    Serial.print(": ");
    Serial.print(best);
    Serial.print(" in us ");
    Serial.println(took);
    right += best == pgm_read_byte(&labels[picture]);
  }
  Serial.print(right);
  Serial.print(" of ");
  Serial.print(PICTURES);
  Serial.println(" pictures are read right");
  stop(mcc_status_text(status));
}

void loop() {}
