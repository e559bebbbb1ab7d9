// Cosine similarity of two texts.   embed models/all-MiniLM-L6-v2 "A cat sleeps." "The kitten naps."
#include <heed/tasks.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 4) return std::fputs("embed MODEL TEXT TEXT\n", stderr), 2;
  const heed::Embedder embedder(heed::Model::load(argv[1]));
  const auto vectors =
      embedder.embed({{.text = argv[2]}, {.text = argv[3]}}, heed::embed_options(argv[1]));
  std::printf("%.4f\n", heed::cosine_similarity(vectors[0].vector, vectors[1].vector));
} catch (const heed::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
