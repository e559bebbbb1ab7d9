// The translation of one sentence.   translate models/opus-mt-en-de "Good morning."
#include <heed/engine.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fputs("translate MODEL SENTENCE\n", stderr), 2;
  heed::Engine engine(heed::Model::load(argv[1]));
  const heed::Result result = engine.submit({.text = argv[2]}).get();
  std::printf("%s\n", result.best().text.c_str());
} catch (const heed::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
