/* Translates a text.   translate_c models/en-de "Good morning. How are you?" */
#include <heed/heed.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return fputs("translate_c MODEL TEXT\n", stderr), 2;
  const char* text = argv[2];
  heed_model* model = NULL;
  heed_answers* answers = NULL;
  heed_status status = heed_open(argv[1], NULL, &model);
  if (status == HEED_OK) status = heed_translate(model, &text, 1, NULL, &answers);
  if (status == HEED_OK) {
    puts(answers->items[0].texts[0].text);
  } else {
    fprintf(stderr, "%s\n", heed_last_error()->message);
  }
  heed_free(answers);
  heed_close(model);
  return status != HEED_OK;
}
