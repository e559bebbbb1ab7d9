// A minimal program: a translation with the bundled model.
#include <heed/translate.h>

#include <cstdio>

int main() {
  heed::Translator german(heed::Model::load("models/en-de"));
  std::puts(german.translate("Good morning. How are you?").text.c_str());
}
