// Translates a text.   translate models/en-de "Good morning. How are you?"
#include <heed/translate.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fputs("translate MODEL TEXT\n", stderr), 2;
  heed::Translator translator(heed::Model::load(argv[1]));
  std::printf("%s\n", translator.translate(argv[2]).text.c_str());
} catch (const heed::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
